/* What the C library allocates when threads come and go, in a static program with glibc, is not the program's. */
#include "preload.h"

#include <stdbool.h>

void *__wrap__dl_allocate_tls(void *memory);
void *__real__dl_allocate_tls(void *memory);
void __wrap__dl_deallocate_tls(void *block, bool whole);
void __real__dl_deallocate_tls(void *block, bool whole);

void *__wrap__dl_allocate_tls(void *memory)
{
    tk_within_library++;
    void *block = __real__dl_allocate_tls(memory);
    tk_within_library--;
    return block;
}

void __wrap__dl_deallocate_tls(void *block, bool whole)
{
    tk_within_library++;
    __real__dl_deallocate_tls(block, whole);
    tk_within_library--;
}
