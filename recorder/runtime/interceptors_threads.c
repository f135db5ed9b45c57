/* Threads: the parent numbers the child's stream, so that creation and start can be told to be one thread's. */
#include "preload_record.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static pthread_key_t farewell;

/* Destructors of thread-specific data run in rounds; the last round is the thread's end, because others may still
 * run instrumented code. */
static void say_farewell(void *value)
{
    struct tk_thread *thread = value;
    if (++thread->farewells < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(farewell, thread);
        return;
    }
    if (tk_noting())
        TK_RECORD2(thread_exit, tk_ticket(), thread->stream.number);
    tk_end_thread();
}

void tk_watch_threads(void)
{
    pthread_key_create(&farewell, say_farewell);
}

static void *run_thread(void *argument)
{
    struct tk_thread *thread = argument;
    tk_begin_thread(thread);
    pthread_setspecific(farewell, thread);
    if (tk_noting())
        TK_RECORD2(thread_start, tk_ticket(), thread->stream.number);
    return thread->start(thread->argument);
}

TK_EXPORT int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*start)(void *),
                             void *argument)
{
    if (!tk_pool)
        return TK_REAL(pthread_create)(handle, attributes, start, argument);
    uint32_t number = tk_number_stream();
    struct tk_thread *thread = tk_new_thread(number);
    if (!thread)
        return EAGAIN;
    thread->start = start;
    thread->argument = argument;
    if (tk_noting())
        TK_RECORD2(thread_create, tk_ticket(), number);
    int result = TK_REAL(pthread_create)(handle, attributes, run_thread, thread);
    if (result != 0)
        __atomic_store_n(&thread->use, TK_UNUSED, __ATOMIC_RELEASE);
    else if (!thread->handle)
        thread->handle = *handle; /* it may be joined before it has said so itself */
    return result;
}

/* The entry is looked up before the thread is joined: afterwards its handle may be another's. */
static int joined(struct tk_thread *thread, uint32_t number, int result)
{
    if (!thread || result != 0)
        return result;
    if (tk_noting())
        TK_RECORD2(thread_join, tk_ticket(), number);
    __atomic_store_n(&thread->use, TK_UNUSED, __ATOMIC_RELEASE);
    return 0;
}

#define WRAP_JOIN(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        struct tk_thread *thread = tk_pool ? tk_find_thread(handle) : NULL; \
        uint32_t number = thread ? thread->stream.number : TK_NO_STREAM; \
        return joined(thread, number, TK_REAL(name)(__VA_ARGS__)); \
    }

WRAP_JOIN(pthread_join, (pthread_t handle, void **value), handle, value)
WRAP_JOIN(pthread_tryjoin_np, (pthread_t handle, void **value), handle, value)
WRAP_JOIN(pthread_timedjoin_np, (pthread_t handle, void **value, const struct timespec *time), handle, value, time)
WRAP_JOIN(pthread_clockjoin_np, (pthread_t handle, void **value, clockid_t clock, const struct timespec *time), handle,
          value, clock, time)

/* A lock is held from after the call that takes it until before the call that releases it. */
#define WRAP_LOCK(name, type, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0 && tk_noting()) \
            TK_RECORD2(lock, tk_ticket(), (uintptr_t)lock); \
        return result; \
    }

#define WRAP_UNLOCK(name, type) \
    TK_EXPORT int name(type *lock) \
    { \
        if (tk_noting()) \
            TK_RECORD2(unlock, tk_ticket(), (uintptr_t)lock); \
        return TK_REAL(name)(lock); \
    }

typedef const struct timespec *deadline;

WRAP_LOCK(pthread_mutex_lock, pthread_mutex_t, (pthread_mutex_t * lock), lock)
WRAP_LOCK(pthread_mutex_trylock, pthread_mutex_t, (pthread_mutex_t * lock), lock)
WRAP_LOCK(pthread_mutex_timedlock, pthread_mutex_t, (pthread_mutex_t * lock, deadline time), lock, time)
WRAP_LOCK(pthread_mutex_clocklock, pthread_mutex_t, (pthread_mutex_t * lock, clockid_t clock, deadline time), lock,
          clock, time)
WRAP_UNLOCK(pthread_mutex_unlock, pthread_mutex_t)
WRAP_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t, (pthread_rwlock_t * lock), lock)
WRAP_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t, (pthread_rwlock_t * lock), lock)
WRAP_LOCK(pthread_rwlock_tryrdlock, pthread_rwlock_t, (pthread_rwlock_t * lock), lock)
WRAP_LOCK(pthread_rwlock_trywrlock, pthread_rwlock_t, (pthread_rwlock_t * lock), lock)
WRAP_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_t, (pthread_rwlock_t * lock, deadline time), lock, time)
WRAP_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_t, (pthread_rwlock_t * lock, deadline time), lock, time)
WRAP_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t, (pthread_rwlock_t * lock, clockid_t clock, deadline time), lock,
          clock, time)
WRAP_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t, (pthread_rwlock_t * lock, clockid_t clock, deadline time), lock,
          clock, time)
WRAP_UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t)
WRAP_LOCK(pthread_spin_lock, pthread_spinlock_t, (pthread_spinlock_t * lock), lock)
WRAP_LOCK(pthread_spin_trylock, pthread_spinlock_t, (pthread_spinlock_t * lock), lock)
WRAP_UNLOCK(pthread_spin_unlock, pthread_spinlock_t)

/* Waiting for a condition releases the mutex and takes it again. */
#define WRAP_WAIT(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        if (tk_noting()) \
            TK_RECORD2(unlock, tk_ticket(), (uintptr_t)lock); \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (tk_noting()) \
            TK_RECORD2(lock, tk_ticket(), (uintptr_t)lock); \
        return result; \
    }

WRAP_WAIT(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *lock), condition, lock)
WRAP_WAIT(pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t *lock, deadline time), condition, lock,
          time)

WRAP_WAIT(pthread_cond_clockwait, (pthread_cond_t * condition, pthread_mutex_t *lock, clockid_t clock, deadline time),
          condition, lock, clock, time)

TK_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    int result = TK_REAL(pthread_barrier_wait)(barrier);
    if ((result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD) && tk_noting())
        TK_RECORD2(barrier, tk_ticket(), (uintptr_t)barrier);
    return result;
}
