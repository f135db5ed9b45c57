/* The clock of windows by time: a thread of the runtime, which wakes up when one of them has to open or close. Code
 * that runs outside of windows never looks at the time.
 *
 * The C library does not know it: a process that has one thread for the C library allocates, reads and writes without
 * locks. So the clock calls nothing of it that takes locks or keeps anything for its thread but `errno`, and ends with
 * the process. */
#include "preload.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <time.h>

enum { STACK = 256 << 10, MARGIN = 4096 };

static uint32_t changes; /* futex: what there is to wait for has changed */
static int is_over, is_running;

static void sleep_until(uint64_t when, uint32_t seen)
{
    uint64_t now = tk_nanoseconds() - tk_windows.began;
    uint64_t length = when > now ? when - now : 1;
    const struct timespec timeout = {(time_t)(length / 1000000000u), (long)(length % 1000000000u)};
    syscall(SYS_futex, &changes, FUTEX_WAIT, seen, when == UINT64_MAX ? NULL : &timeout, NULL, 0);
}

static int run_clock(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
        uint32_t seen = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
        tk_look_at_the_clock();
        sleep_until(tk_next_change(), seen);
    }
    return 0;
}

#ifdef __x86_64__

static uintptr_t thread_pointer(void)
{
    uintptr_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* Where the thread pointer holds its own address. */
static void set_thread_pointer(uintptr_t pointer)
{
    *(uintptr_t *)pointer = pointer;
}

#else

static uintptr_t thread_pointer(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static void set_thread_pointer(uintptr_t pointer)
{
    (void)pointer;
}

#endif

/* What a thread has for itself, as far as the clock touches it, all zeros; then its stack. */
struct clock_memory {
    uintptr_t pointer; /* the thread pointer */
    char *top;         /* of the stack */
};

static struct clock_memory new_memory(void)
{
    uintptr_t own = thread_pointer(), low = own, high = own;
    const uintptr_t used[] = {(uintptr_t)&errno, (uintptr_t)&tk_current, (uintptr_t)&__tk_state,
                              (uintptr_t)&tk_has_lock};
    for (size_t index = 0; index < sizeof used / sizeof *used; index++) {
        low = used[index] < low ? used[index] : low;
        high = used[index] > high ? used[index] : high;
    }
    size_t below = ((own - low + MARGIN) & -(size_t)MARGIN) + MARGIN;
    size_t above = ((high - own + MARGIN) & -(size_t)MARGIN) + MARGIN;
    char *memory = tk_mmap(below + above + STACK, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!memory)
        return (struct clock_memory){0, NULL};
    uintptr_t pointer = (uintptr_t)memory + below;
    set_thread_pointer(pointer);
    return (struct clock_memory){pointer, memory + below + above + STACK};
}

/* It starts with the caller's signals, all of which are blocked, and keeps them so. */
void tk_start_clock(void)
{
    static struct clock_memory memory; /* in a child made by `fork`, that of its parent's clock */
    const int shared = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
    uint64_t signals;
    if (tk_next_change() == UINT64_MAX && !tk_has_lengths())
        return;
    if (!memory.top)
        memory = new_memory();
    if (!memory.top)
        return;
    tk_block_signals(&signals);
    __atomic_store_n(&is_over, 0, __ATOMIC_SEQ_CST);
    is_running = clone(run_clock, memory.top, shared, NULL, NULL, (void *)memory.pointer, NULL) > 0;
    tk_restore_signals(&signals);
}

void tk_wake_clock(void)
{
    if (!is_running)
        return;
    __atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &changes, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void tk_stop_clock(void)
{
    __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
    tk_wake_clock();
}
