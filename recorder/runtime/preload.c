/* The ground that the other files stand on: the thread's state, the lock, the C library's own functions. */
#include "preload.h"

#ifndef TK_STATIC
#include <dlfcn.h>
#endif
#include <sched.h>

__thread struct tk_state __tk_state;
__thread struct tk_activation *__tk_activations;

struct tk_openmp tk_openmp;
__thread int tk_openmp_tool;
__thread const void *tk_given_back;

static int lock_word;

void tk_lock(void)
{
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

void tk_unlock(void)
{
    __atomic_store_n(&lock_word, 0, __ATOMIC_SEQ_CST);
    if (TK_UNLIKELY(__atomic_load_n(&tk_windows.unheard, __ATOMIC_SEQ_CST)))
        tk_tell_threads();
}

/* Where a signal handler may have interrupted who holds it. */
int tk_try_lock(void)
{
    return !__atomic_exchange_n(&lock_word, 1, __ATOMIC_SEQ_CST);
}

/* Until whoever holds it has let go, or for a while: a signal handler may have interrupted who does. */
void tk_await_lock(void)
{
    for (int turn = 0; turn < 1000 && __atomic_load_n(&lock_word, __ATOMIC_SEQ_CST); turn++)
        sched_yield();
}

#ifndef TK_STATIC
void *tk_find_real(void **slot, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    return found;
}
#endif
