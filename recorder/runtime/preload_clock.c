/* The clock of windows by time: a thread of the runtime, which wakes up when one of them has to open or close. Code
 * that runs outside of windows never looks at the time.
 *
 * It ends when the program's last thread does, for as long as it runs the process would not. */
#include "preload.h"

#include <linux/futex.h>
#include <time.h>

enum { STACK = 256 << 10 };

static uint32_t changes; /* futex: what there is to wait for has changed */
static int is_over, is_running;

static void sleep_until(uint64_t when, uint32_t seen)
{
    uint64_t now = tk_nanoseconds() - tk_windows.began;
    uint64_t length = when > now ? when - now : 1;
    const struct timespec timeout = {(time_t)(length / 1000000000u), (long)(length % 1000000000u)};
    syscall(SYS_futex, &changes, FUTEX_WAIT, seen, when == UINT64_MAX ? NULL : &timeout, NULL, 0);
}

static void *run_clock(void *unused)
{
    (void)unused;
    const uint64_t but_the_library = ~(3ull << 31); /* signals 32 and 33 are the C library's */
    tk_restore_signals(&but_the_library);
    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
        uint32_t seen = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
        tk_look_at_the_clock();
        sleep_until(tk_next_change(), seen);
    }
    return NULL;
}

/* The caller has blocked all signals, or lets the clock handle those that come. */
void tk_start_clock(void)
{
    pthread_t handle;
    pthread_attr_t attributes;
    uint64_t signals;
    if (tk_next_change() == UINT64_MAX && !tk_has_lengths())
        return;
    tk_block_signals(&signals);
    __atomic_store_n(&is_over, 0, __ATOMIC_SEQ_CST);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    is_running = TK_REAL(pthread_create)(&handle, &attributes, run_clock, NULL) == 0;
    pthread_attr_destroy(&attributes);
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
