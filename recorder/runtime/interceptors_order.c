/* What orders threads beside locks: semaphores, barriers, initialisation that happens once, atomic operations. */
#include "preload_record.h"

#include <sched.h>
#include <semaphore.h>
#include <threads.h>

/* Releases and acquisitions are a thread's: a signal handler's that of the thread that it interrupts. */
static uint32_t own_thread(void)
{
    return tk_current ? tk_current->stream.number : TK_NO_STREAM;
}

void tk_release(uint64_t object, uint64_t kind)
{
    if (tk_noting())
        TK_RECORD4(release, tk_ticket(), object, kind, own_thread());
}

void tk_acquire(uint64_t object, uint64_t kind)
{
    if (tk_noting())
        TK_RECORD4(acquire, tk_ticket(), object, kind, own_thread());
}

static void released(const void *address, uint64_t kind)
{
    tk_release((uintptr_t)address, kind);
}

static void acquired(const void *address, uint64_t kind)
{
    tk_acquire((uintptr_t)address, kind);
}

/* -- semaphores ------------------------------------------------------------------------------- */

#define WRAP_SEMAPHORE(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        TK_USE(semaphore); \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0 && TK_BY_PROGRAM()) \
            acquired(semaphore, TK_SYNC_SEMAPHORE); \
        return result; \
    }

WRAP_SEMAPHORE(sem_wait, (sem_t * semaphore), semaphore)
WRAP_SEMAPHORE(sem_trywait, (sem_t * semaphore), semaphore)
WRAP_SEMAPHORE(sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict time), semaphore, time)
WRAP_SEMAPHORE(sem_clockwait, (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict time),
               semaphore, clock, time)

TK_EXPORT int sem_post(sem_t *semaphore)
{
    TK_USE(semaphore);
    if (TK_BY_PROGRAM())
        released(semaphore, TK_SYNC_SEMAPHORE);
    return TK_REAL(sem_post)(semaphore);
}

/* -- barriers --------------------------------------------------------------------------------- */

TK_EXPORT int pthread_barrier_init(pthread_barrier_t *restrict barrier,
                                   const pthread_barrierattr_t *restrict attributes, unsigned count)
{
    int result = TK_REAL(pthread_barrier_init)(barrier, attributes, count);
    if (result == 0)
        TK_BEGIN(barrier);
    if (result == 0 && tk_noting())
        TK_RECORD3(barrier_init, tk_ticket(), (uintptr_t)barrier, count);
    return result;
}

TK_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    TK_USE(barrier);
    if (tk_noting())
        TK_RECORD2(barrier_enter, tk_ticket(), (uintptr_t)barrier);
    int result = TK_REAL(pthread_barrier_wait)(barrier);
    if ((result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD) && tk_noting())
        TK_RECORD2(barrier_leave, tk_ticket(), (uintptr_t)barrier);
    return result;
}

/* -- once ------------------------------------------------------------------------------------- */

static __thread struct {
    void (*routine)(void);
    const void *control;
} once;

/* In the place of the routine; that it is over is said before others can see it. One that is left by an exception is
 * not over. */
static void run_once(void)
{
    const void *control = once.control;
    once.routine();
    released(control, TK_SYNC_ONCE);
}

TK_EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    once.routine = routine;
    once.control = control;
    int result = TK_REAL(pthread_once)(control, run_once);
    if (result == 0)
        acquired(control, TK_SYNC_ONCE);
    return result;
}

TK_EXPORT void call_once(once_flag *control, void (*routine)(void))
{
    once.routine = routine;
    once.control = control;
    TK_REAL(call_once)(control, run_once);
    acquired(control, TK_SYNC_ONCE);
}

/* Variables that C++ initialises when control first comes by. Compiled code looks at the guard, atomically, and calls
 * these only if it says nothing: so it is released like an atomic variable, too. */
int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

TK_EXPORT int __cxa_guard_acquire(uint64_t *guard)
{
    int result = TK_REAL(__cxa_guard_acquire)(guard);
    acquired(guard, TK_SYNC_ONCE);
    return result;
}

TK_EXPORT void __cxa_guard_release(uint64_t *guard)
{
    released(guard, TK_SYNC_ONCE);
    tk_atomic_begin(guard);
    TK_REAL(__cxa_guard_release)(guard);
    tk_atomic_end(guard, TK_ATOMIC_SIZE | TK_ATOMIC_STORE | TK_ATOMIC_RELEASE);
}

/* What initialises it threw an exception; the next one that comes tries again. */
TK_EXPORT void __cxa_guard_abort(uint64_t *guard)
{
    released(guard, TK_SYNC_ONCE);
    TK_REAL(__cxa_guard_abort)(guard);
}

/* -- atomic operations ------------------------------------------------------------------------ */

#define LOCKS 1024
#define PATIENCE (1u << 24)

/* An operation and its ticket are one step: those on one address have their tickets in the order in which they
 * happened. Addresses share locks; a thread holds one at a time. */
static struct {
    uint32_t held __attribute__((aligned(64)));
} locks[LOCKS];
static __thread const void *within; /* the operation that this thread is in */

static uint32_t *lock_of(const void *address)
{
    return &locks[((uintptr_t)address >> 3) * 0x9e3779b97f4a7c15u >> 54].held;
}

/* A handler that interrupts an operation must not wait for it, and one that left another by longjmp has left its lock
 * behind: who waits too long goes on without. */
void tk_atomic_begin(const void *address)
{
    if (!tk_noting() || within)
        return;
    uint32_t *lock = lock_of(address);
    for (uint32_t waited = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) && waited < PATIENCE; waited++)
        if (waited % 64 == 63)
            sched_yield();
    within = address;
}

void tk_atomic_end(const void *address, uint32_t order)
{
    if (tk_noting())
        TK_RECORD3(atomic, tk_ticket(), (uintptr_t)address, order);
    if (within == address) {
        within = NULL;
        __atomic_store_n(lock_of(address), 0, __ATOMIC_RELEASE);
    }
}

void tk_fence(uint32_t order)
{
    if (tk_noting())
        TK_RECORD2(fence, tk_ticket(), order);
}

/* In a forked child: whoever held one is not here. */
void tk_free_atomics(void)
{
    for (uint32_t number = 0; number < LOCKS; number++)
        locks[number].held = 0;
    within = NULL;
}
