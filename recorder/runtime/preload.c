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

enum { TURNS = 1 << 20 }; /* so often a thread looks for the lock: 0.3 s and more */

static int lock_word;
__thread int tk_has_lock;

void tk_lock(void)
{
    tk_has_lock = 1;
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

void tk_unlock(void)
{
    __atomic_store_n(&lock_word, 0, __ATOMIC_SEQ_CST);
    tk_has_lock = 0;
    if (TK_UNLIKELY(__atomic_load_n(&tk_windows.unheard, __ATOMIC_SEQ_CST)))
        tk_tell_threads();
}

/* Where a signal handler may have interrupted who holds it: not if this very thread does, or another one that does not
 * go on. */
int tk_lock_of_others(void)
{
    for (int turn = 0; turn < TURNS && !tk_has_lock; turn++) {
        tk_has_lock = 1;
        if (!__atomic_exchange_n(&lock_word, 1, __ATOMIC_SEQ_CST))
            return 1;
        tk_has_lock = 0;
        sched_yield();
    }
    return 0;
}

/* Until another thread that holds it has let go. */
void tk_await_lock(void)
{
    for (int turn = 0; turn < TURNS && !tk_has_lock && __atomic_load_n(&lock_word, __ATOMIC_SEQ_CST); turn++)
        sched_yield();
}

#ifndef TK_STATIC
void *tk_find_real(void **slot, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    return found;
}

/* What a library finds that was opened for itself alone (dlopen with RTLD_LOCAL, as Python opens its modules), in
 * itself and in those that it needs: none of these comes next to this one. It stays, for it is called from now on. */
static void *found_by(const void *caller, const char *name)
{
    Dl_info of_caller, of_found, own;
    void *library = dladdr(caller, &of_caller) ? dlopen(of_caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!library)
        return NULL;
    void *found = dlsym(library, name);
    dlclose(library);
    if (!found || !dladdr(found, &of_found) || !dladdr(&lock_word, &own) || of_found.dli_fbase == own.dli_fbase)
        return NULL;
    dlopen(of_found.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return found;
}

void *tk_find_real_for(void **slot, const char *name, const void *caller)
{
    void *found = tk_find_real(slot, name);
    if (!found) {
        found = found_by(caller, name);
        __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    }
    return found;
}
#endif
