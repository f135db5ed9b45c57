/* Threads: the parent numbers the child's stream, so that creation and start can be told to be one thread's. */
#include "preload_record.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <threads.h>

int tk_has_threads;

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

/* The stack and the thread-local storage of a thread that nobody joined serve another one: that this one may use them
 * is an order that no event says, so what was done to them is to be forgotten. */
static void forget_memory(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (!tk_replace_exited(tk_current) || pthread_getattr_np(pthread_self(), &attributes))
        return;
    if (!pthread_attr_getstack(&attributes, &low, &size) && tk_noting())
        TK_RECORD2(thread_memory, (uintptr_t)low, size);
    pthread_attr_destroy(&attributes);
}

static void *run_thread(void *argument)
{
    struct tk_thread *thread = argument;
    tk_begin_thread(thread);
    pthread_setspecific(farewell, thread);
    if (tk_noting())
        TK_RECORD2(thread_start, tk_ticket(), thread->stream.number);
    forget_memory();
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
    tk_has_threads = 1;
    if (TK_IS_RECORDED())
        tk_library_store(handle, sizeof *handle); /* before the thread begins, as glibc does */
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
        int result = joined(thread, number, TK_REAL(name)(__VA_ARGS__)); \
        if (result == 0 && value && TK_IS_RECORDED()) \
            tk_library_store(value, sizeof *value); \
        return result; \
    }

WRAP_JOIN(pthread_join, (pthread_t handle, void **value), handle, value)
WRAP_JOIN(pthread_tryjoin_np, (pthread_t handle, void **value), handle, value)
WRAP_JOIN(pthread_timedjoin_np, (pthread_t handle, void **value, const struct timespec *time), handle, value, time)
WRAP_JOIN(pthread_clockjoin_np, (pthread_t handle, void **value, clockid_t clock, const struct timespec *time), handle,
          value, clock, time)

/* C11's: the library makes such a thread without a call of pthread_create that could be interposed. Its int is the
 * lower half of what a thread returns. */
TK_EXPORT int thrd_create(thrd_t *handle, thrd_start_t start, void *argument)
{
    if (!tk_pool)
        return TK_REAL(thrd_create)(handle, start, argument);
    int result = pthread_create(handle, NULL, (void *(*)(void *))(void (*)(void))start, argument);
    return result == 0 ? thrd_success : result == ENOMEM ? thrd_nomem : thrd_error;
}

WRAP_JOIN(thrd_join, (thrd_t handle, int *value), handle, value)
