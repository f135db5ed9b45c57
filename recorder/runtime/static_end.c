/* Linked behind the last object of a static program, before the libraries that clang adds: where its code ends. */
__asm__(".text\n\t.globl __tk_program_end\n\t.hidden __tk_program_end\n__tk_program_end:\n\tret\n");
