/* What the runtime uses of glibc, and musl does not have. */
#include "preload.h"

#include <link.h>
#include <stdlib.h>

/* -- how the program ends ------------------------------------------------------------------------ */

static int exit_status;
static void (*last_handler)(int, void *);
static void *its_argument;

static void call_handler(void)
{
    last_handler(exit_status, its_argument);
}

/* For one handler. */
int on_exit(void (*handler)(int, void *), void *argument)
{
    last_handler = handler;
    its_argument = argument;
    return atexit(call_handler);
}

/* musl calls it with what `main` returns. */
TK_EXPORT _Noreturn void exit(int status)
{
    exit_status = status;
    tk_await_others();
    TK_REAL(exit)(status);
    __builtin_unreachable();
}

/* -- what libgcc's unwinder, which was compiled for glibc, asks of the dynamic linker ------------------- */

struct found_object { /* glibc's struct dl_find_object */
    unsigned long long flags;
    void *low, *high;
    void *link_map;
    const void *unwinding;
    unsigned long long reserved[7];
};

struct search {
    uintptr_t code;
    struct found_object *found;
};

static int look_into(struct dl_phdr_info *image, size_t size, void *searching)
{
    struct search *search = searching;
    uintptr_t low = UINTPTR_MAX, high = 0, unwinding = 0;
    int is_inside = 0;
    (void)size;
    for (int index = 0; index < image->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &image->dlpi_phdr[index];
        uintptr_t begin = image->dlpi_addr + header->p_vaddr, end = begin + header->p_memsz;
        if (header->p_type == PT_GNU_EH_FRAME)
            unwinding = begin;
        if (header->p_type != PT_LOAD)
            continue;
        low = begin < low ? begin : low;
        high = end > high ? end : high;
        is_inside |= search->code >= begin && search->code < end;
    }
    if (!is_inside || !unwinding)
        return 0;
    *search->found = (struct found_object){.low = (void *)low, .high = (void *)high, .unwinding = (void *)unwinding};
    return 1;
}

__attribute__((weak)) int _dl_find_object(void *code, struct found_object *found)
{
    struct search search = {(uintptr_t)code, found};
    return dl_iterate_phdr(look_into, &search) ? 0 : -1;
}
