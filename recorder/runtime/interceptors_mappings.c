/* Memory that the program maps is an object of the heap: mmap, mremap, munmap. What the runtime, the C library and the
 * dynamic linker map for themselves does not come through here.
 *
 * munmap may take any pages: a table of the mappings that are alive says what becomes of each. As for malloc, the
 * ticket of an allocation is taken after the call, that of a deallocation before it. */
#include "preload_record.h"

#include <errno.h>
#include <stdarg.h>

#define MAPPINGS 4096 /* more than these are not recorded */

struct mapping {
    uintptr_t low, high; /* both 0: unused */
};

static struct mapping mappings[MAPPINGS];
static size_t used; /* entries in use or used before */
static int lock_word;

/* Signals are blocked: a handler may map memory too. */
static void lock_table(uint64_t *signals)
{
    tk_block_signals(signals);
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_sched_yield);
}

static void unlock_table(const uint64_t *signals)
{
    __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
    tk_restore_signals(signals);
}

static void forget_lock(void)
{
    lock_word = 0; /* another thread of the parent may have held it */
}

void tk_watch_mappings(void)
{
    pthread_atfork(NULL, NULL, forget_lock);
}

static uintptr_t page_end(uintptr_t address)
{
    const uintptr_t page = 4096;
    return (address + page - 1) & -page;
}

static int enter(uintptr_t low, uintptr_t high)
{
    size_t entry = 0;
    while (entry < used && mappings[entry].high)
        entry++;
    if (entry == MAPPINGS)
        return 0;
    used += entry == used;
    mappings[entry] = (struct mapping){low, high};
    return 1;
}

/* What is left of a mapping without low .. high: its first part keeps its identity, a second one is a new object. */
static void cut(struct mapping *mapping, uintptr_t low, uintptr_t high)
{
    struct mapping whole = *mapping;
    if (low > whole.low) {
        mapping->high = low;
        TK_RECORD4(heap_realloc, tk_ticket(), whole.low, whole.low, low - whole.low);
    } else {
        *mapping = (struct mapping){0, 0};
        TK_RECORD2(heap_free, tk_ticket(), whole.low);
    }
    if (high < whole.high && enter(high, whole.high))
        TK_RECORD3(heap_alloc, tk_ticket(), high, whole.high - high);
}

static void unmapped(uintptr_t low, uintptr_t high)
{
    size_t last = used; /* what is cut off here is not looked at again */
    for (size_t entry = 0; entry < last; entry++)
        if (mappings[entry].low < high && low < mappings[entry].high)
            cut(&mappings[entry], low, high);
}

static void mapped(uintptr_t low, uintptr_t high)
{
    if (enter(low, high))
        TK_RECORD3(heap_alloc, tk_ticket(), low, high - low);
}

/* An allocator's arenas are no objects: its blocks are. */
static int is_recorded(void)
{
    return tk_noting() && !tk_is_allocating(__builtin_frame_address(0));
}

static void *map(void *address, size_t size, int protection, int flags, int fd, long offset)
{
    uint64_t signals;
    int recording = is_recorded();
    int over = (flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE);
    if (recording) {
        lock_table(&signals);
        if (over)
            unmapped((uintptr_t)address, page_end((uintptr_t)address + size));
    }
    void *memory = (void *)syscall(SYS_mmap, address, size, (long)protection, (long)flags, (long)fd, offset);
    if (recording) {
        int saved = errno;
        if (memory != MAP_FAILED)
            mapped((uintptr_t)memory, (uintptr_t)memory + size);
        unlock_table(&signals);
        errno = saved;
    }
    return memory;
}

TK_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return map(address, size, protection, flags, fd, offset);
}

TK_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return map(address, size, protection, flags, fd, offset);
}

TK_EXPORT int munmap(void *address, size_t size)
{
    if (!is_recorded())
        return (int)syscall(SYS_munmap, address, size);
    uint64_t signals;
    int possible = ((uintptr_t)address & 4095) == 0 && size > 0;
    lock_table(&signals);
    if (possible)
        unmapped((uintptr_t)address, page_end((uintptr_t)address + size));
    int result = (int)syscall(SYS_munmap, address, size);
    int saved = errno;
    unlock_table(&signals);
    errno = saved;
    return result;
}

/* The whole of a mapping that is known changes its size or place; anything else is an unmapping and a mapping. */
static void remapped(uintptr_t old, size_t old_size, uintptr_t memory, size_t size, int kept)
{
    for (size_t entry = 0; !kept && entry < used; entry++)
        if (mappings[entry].low == old && page_end(mappings[entry].high) == page_end(old + old_size)) {
            mappings[entry] = (struct mapping){memory, memory + size};
            if (tk_recording() || old == memory) {
                TK_RECORD4(heap_realloc, tk_ticket(), old, memory, size);
            } else { /* outside of windows: without the copy */
                TK_RECORD2(heap_free, tk_ticket(), old);
                TK_RECORD3(heap_alloc, tk_ticket(), memory, size);
            }
            return;
        }
    if (!kept)
        unmapped(old, page_end(old + old_size));
    mapped(memory, memory + size);
}

TK_EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    void *target = NULL;
    if (flags & MREMAP_FIXED) {
        va_list list;
        va_start(list, flags);
        target = va_arg(list, void *);
        va_end(list);
    }
    if (!is_recorded())
        return (void *)syscall(SYS_mremap, old, old_size, size, (long)flags, target);
    uint64_t signals;
    lock_table(&signals);
    if (flags & MREMAP_FIXED)
        unmapped((uintptr_t)target, page_end((uintptr_t)target + size));
    void *memory = (void *)syscall(SYS_mremap, old, old_size, size, (long)flags, target);
    int saved = errno;
    if (memory != MAP_FAILED)
        remapped((uintptr_t)old, old_size, (uintptr_t)memory, size, old_size == 0 || flags & MREMAP_DONTUNMAP);
    unlock_table(&signals);
    errno = saved;
    return memory;
}
