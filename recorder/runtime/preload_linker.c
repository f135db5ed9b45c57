/* What the dynamic linker allocates. It does so in the middle of a record, for thread-local storage, so its calls are
 * no events. But the C library frees the text of a failed dlsym or dlopen, which the linker has allocated: without its
 * allocation such a free would look like a second one of whatever lay there before. So the linker's latest blocks are
 * kept here, and their frees are no events either. */
#include "preload.h"

#include <link.h>
#include <sys/auxv.h>

#define GROUPS 64
#define BLOCKS 8 /* of a group: a cache line */

static uintptr_t linker_low, linker_size;
static uintptr_t blocks[GROUPS][BLOCKS] __attribute__((aligned(64)));
static unsigned turn;

static int note_linker(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    if ((void *)info->dlpi_addr != base)
        return 0;
    uintptr_t high = info->dlpi_addr;
    for (int index = 0; index < info->dlpi_phnum; index++)
        if (info->dlpi_phdr[index].p_type == PT_LOAD) {
            uintptr_t end = info->dlpi_addr + info->dlpi_phdr[index].p_vaddr + info->dlpi_phdr[index].p_memsz;
            high = end > high ? end : high;
        }
    linker_low = info->dlpi_addr;
    linker_size = high - linker_low;
    return 1;
}

void tk_find_linker(void)
{
    dl_iterate_phdr(note_linker, (void *)getauxval(AT_BASE));
}

/* Whether code is the linker's. */
int tk_is_linker(uintptr_t code)
{
    return code - linker_low < linker_size;
}

static uintptr_t *group_of(uintptr_t block)
{
    return blocks[(block >> 4) * 0x9e3779b97f4a7c15ull >> 58];
}

/* Of more blocks than there is room for, one is given up: most of the linker's live as long as the program. */
void tk_keep_linker_block(uintptr_t block)
{
    uintptr_t *group = group_of(block);
    for (int index = 0; index < BLOCKS; index++) {
        uintptr_t none = 0;
        if (__atomic_compare_exchange_n(&group[index], &none, block, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
    unsigned any = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % BLOCKS;
    __atomic_store_n(&group[any], block, __ATOMIC_RELAXED);
}

/* Whether a block is one of these; it no longer is. */
int tk_forget_linker_block(uintptr_t block)
{
    uintptr_t *group = group_of(block);
    for (int index = 0; index < BLOCKS; index++)
        if (TK_UNLIKELY(__atomic_load_n(&group[index], __ATOMIC_RELAXED) == block)) {
            __atomic_store_n(&group[index], 0, __ATOMIC_RELAXED);
            return 1;
        }
    return 0;
}
