/* A program that ends while other threads of its are at work: they are given time, so that the trace has what they
 * would have raced with. Else it is chance how far they come: mostly a thread that was made last has done nothing yet.
 * Before the program's handlers of its end, behind which threads would find what these have destroyed. */
#include "preload_record.h"

#include <stdlib.h>
#include <time.h>

#define MILLISECOND 1000000ull
#define LONGEST (250 * MILLISECOND) /* that an end is put off */
#define QUIET (30 * MILLISECOND)    /* nothing new in any thread for so long: they wait for something, or sleep */

struct look {
    int others, pending; /* threads that are not over, and of them those that have not begun */
    uint64_t sum;        /* changes with what they have recorded */
};

/* Under the lock, so that none of the states goes away. */
static struct look look_at_others(void)
{
    struct look seen = {0, 0, 0};
    tk_lock();
    for (struct tk_thread *thread = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE); thread; thread = thread->next) {
        if (thread == tk_current || thread->is_worker || __atomic_load_n(&thread->use, __ATOMIC_ACQUIRE) != TK_RUNNING)
            continue;
        struct tk_state *state = __atomic_load_n(&thread->state, __ATOMIC_ACQUIRE);
        seen.others++;
        seen.pending += !state && !thread->farewells;
        if (state)
            seen.sum = seen.sum * 31 + (uintptr_t)__atomic_load_n(&state->pos, __ATOMIC_RELAXED);
    }
    tk_unlock();
    return seen;
}

void tk_await_others(void)
{
    static int has_waited;
    const struct timespec pause = {0, MILLISECOND};
    if (!tk_has_threads || tk_has_lock || tk_is_without_calls() || !tk_pool || !tk_noting() ||
        tk_pool->owner != (uint32_t)getpid() || __atomic_exchange_n(&has_waited, 1, __ATOMIC_RELAXED))
        return;
    uint64_t begin = tk_nanoseconds(), changed = begin, sum = 0;
    for (uint64_t now = begin; now - begin < LONGEST; now = tk_nanoseconds()) {
        struct look seen = look_at_others();
        if (!seen.others)
            return;
        if (seen.pending || seen.sum != sum)
            changed = now;
        sum = seen.sum;
        if (now - changed >= QUIET)
            return;
        syscall(SYS_nanosleep, &pause, NULL);
    }
}

#ifdef __GLIBC__ /* musl/musl.c has the other one */
TK_EXPORT void exit(int status)
{
    tk_await_others();
    TK_REAL(exit)(status);
    __builtin_unreachable();
}

/* What calls `main`, and ends the program behind it by a call that nobody can come between. */
typedef int (*main_t)(int, char **, char **);
int __libc_start_main(main_t program, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end);

static main_t program_main;

static int run_main(int count, char **arguments, char **environment)
{
    int status = program_main(count, arguments, environment);
    tk_await_others();
    return status;
}

TK_EXPORT int __libc_start_main(main_t program, int count, char **arguments, void (*init)(void), void (*fini)(void),
                                void (*linker_fini)(void), void *stack_end)
{
    program_main = program;
    return TK_REAL(__libc_start_main)(run_main, count, arguments, init, fini, linker_fini, stack_end);
}
#endif
