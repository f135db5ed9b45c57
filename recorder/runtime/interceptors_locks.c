/* Locks: one is held from after the call that takes it until before the call that gives it up. */
#include "preload_record.h"

#include <errno.h>
#include <stdio.h>
#include <threads.h>

/* libgcc takes locks when a static program begins and ends, which a dynamic one does not show. */
#define IS_NOTED() (TK_BY_PROGRAM() && tk_noting_for(__builtin_return_address(0)))

/* A robust mutex whose owner died is held, too. */
static int is_held(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

#define WRAP_TAKING(event, name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        TK_USE(lock); \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (is_held(result) && IS_NOTED()) \
            TK_RECORD2(event, tk_ticket(), (uintptr_t)lock); \
        return result; \
    }
#define WRAP_LOCK(name, parameters, ...) WRAP_TAKING(lock, name, parameters, __VA_ARGS__)
#define WRAP_READ_LOCK(name, parameters, ...) WRAP_TAKING(lock_shared, name, parameters, __VA_ARGS__)

#define WRAP_UNLOCK(name, type) \
    TK_EXPORT int name(type *lock) \
    { \
        if (IS_NOTED()) \
            TK_RECORD2(unlock, tk_ticket(), (uintptr_t)lock); \
        return TK_REAL(name)(lock); \
    }

typedef const struct timespec *deadline;

WRAP_LOCK(pthread_mutex_lock, (pthread_mutex_t * lock), lock)
WRAP_LOCK(pthread_mutex_trylock, (pthread_mutex_t * lock), lock)
WRAP_LOCK(pthread_mutex_timedlock, (pthread_mutex_t * lock, deadline time), lock, time)
WRAP_LOCK(pthread_mutex_clocklock, (pthread_mutex_t * lock, clockid_t clock, deadline time), lock, clock, time)
WRAP_UNLOCK(pthread_mutex_unlock, pthread_mutex_t)
WRAP_READ_LOCK(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), lock)
WRAP_LOCK(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), lock)
WRAP_READ_LOCK(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), lock)
WRAP_LOCK(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), lock)
WRAP_READ_LOCK(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, deadline time), lock, time)
WRAP_LOCK(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, deadline time), lock, time)
WRAP_READ_LOCK(pthread_rwlock_clockrdlock, (pthread_rwlock_t * lock, clockid_t clock, deadline time), lock, clock, time)
WRAP_LOCK(pthread_rwlock_clockwrlock, (pthread_rwlock_t * lock, clockid_t clock, deadline time), lock, clock, time)
WRAP_UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t)
WRAP_LOCK(pthread_spin_lock, (pthread_spinlock_t * lock), lock)
WRAP_LOCK(pthread_spin_trylock, (pthread_spinlock_t * lock), lock)
WRAP_UNLOCK(pthread_spin_unlock, pthread_spinlock_t)

/* A stream of the C library is a lock as well, which its owner may take again. What other calls do under it is not
 * noted: they order nothing that a program could rely on. */
TK_EXPORT void flockfile(FILE *stream)
{
    TK_REAL(flockfile)(stream);
    if (IS_NOTED())
        TK_RECORD2(lock, tk_ticket(), (uintptr_t)stream);
}

TK_EXPORT int ftrylockfile(FILE *stream)
{
    int result = TK_REAL(ftrylockfile)(stream);
    if (result == 0 && IS_NOTED())
        TK_RECORD2(lock, tk_ticket(), (uintptr_t)stream);
    return result;
}

TK_EXPORT void funlockfile(FILE *stream)
{
    if (IS_NOTED())
        TK_RECORD2(unlock, tk_ticket(), (uintptr_t)stream);
    TK_REAL(funlockfile)(stream);
}

/* Waiting for a condition releases the mutex and takes it again, also where the waiting thread is cancelled. The
 * condition is not used any more by who was woken: it may be destroyed. */
static void take_again(void *lock)
{
    TK_USE(lock);
    if (IS_NOTED())
        TK_RECORD2(lock, tk_ticket(), (uintptr_t)lock);
}

#define WRAP_WAIT(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result; \
        if (!tk_is_programs(__builtin_return_address(0))) \
            return TK_REAL(name)(__VA_ARGS__); \
        TK_USE(condition); \
        if (IS_NOTED()) \
            TK_RECORD2(unlock, tk_ticket(), (uintptr_t)lock); \
        pthread_cleanup_push(take_again, lock); \
        result = TK_REAL(name)(__VA_ARGS__); \
        pthread_cleanup_pop(1); \
        return result; \
    }

WRAP_WAIT(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *lock), condition, lock)
WRAP_WAIT(pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *lock, deadline time), condition, lock,
          time)
WRAP_WAIT(pthread_cond_clockwait, (pthread_cond_t * condition, pthread_mutex_t *lock, clockid_t clock, deadline time),
          condition, lock, clock, time)

/* C11's: the library's own calls of the functions above do not come through symbols that can be interposed. */
#define WRAP_C11_LOCK(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        TK_USE(lock); \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == thrd_success && IS_NOTED()) \
            TK_RECORD2(lock, tk_ticket(), (uintptr_t)lock); \
        return result; \
    }

WRAP_C11_LOCK(mtx_lock, (mtx_t * lock), lock)
WRAP_C11_LOCK(mtx_trylock, (mtx_t * lock), lock)
WRAP_C11_LOCK(mtx_timedlock, (mtx_t *restrict lock, const struct timespec *restrict time), lock, time)
WRAP_UNLOCK(mtx_unlock, mtx_t)
WRAP_WAIT(cnd_wait, (cnd_t * condition, mtx_t *lock), condition, lock)
WRAP_WAIT(cnd_timedwait, (cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict time),
          condition, lock, time)
