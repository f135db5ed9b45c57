/* OpenMP: calls of its runtime (LLVM's libomp) that are interposed, for what OMPT does not say: where memory for tasks
 * and copies of threads lies, and when something is given up, which it says only after it was (mutexes, doacross). */
#include "preload_record.h"

#include "ompt.h"

#include <dlfcn.h>

__thread uint64_t tk_taken;
__thread uintptr_t tk_last_task;
ompt_get_thread_data_t tk_thread_data;

/* The runtime's own definition, also if only a library that was loaded later can see it. */
static void *find_in_runtime(void **slot, const char *name)
{
    void *found = tk_find_real(slot, name);
    if (!found && tk_openmp.library)
        *slot = found = dlsym(tk_openmp.library, name);
    return found;
}

#define RUNTIMES(name) \
    ({ \
        static void *real_##name; \
        (__typeof__(&name))(TK_LIKELY(real_##name) ? real_##name : find_in_runtime(&real_##name, #name)); \
    })

#define WRAP_GIVING_UP(name, parameters, ...) \
    void name parameters; \
    TK_EXPORT void name parameters \
    { \
        tk_taken = tk_noting() ? tk_ticket() + 1 : 0; \
        RUNTIMES(name)(__VA_ARGS__); \
        tk_taken = 0; \
    }

WRAP_GIVING_UP(omp_unset_lock, (void *lock), lock)
WRAP_GIVING_UP(omp_unset_nest_lock, (void *lock), lock)
WRAP_GIVING_UP(omp_unset_lock_, (void *lock), lock)
WRAP_GIVING_UP(omp_unset_nest_lock_, (void *lock), lock)
WRAP_GIVING_UP(__kmpc_end_critical, (void *place, int thread, void *lock), place, thread, lock)
WRAP_GIVING_UP(__kmpc_end_ordered, (void *place, int thread), place, thread)

/* libomp keeps the data of a `taskwait depend` in the thread, behind the thread's own, and asserts that there are none
 * when one begins. But those of another may be there, inside of which the thread runs a task that waits, and those of
 * the thread's implicit task, from the barrier at its end on. */
static ompt_data_t *data_of_wait(void)
{
    ompt_data_t *own = tk_thread_data ? tk_thread_data() : NULL;
    return own ? own + 1 : NULL;
}

#define WRAP_WAITING(name, parameters, ...) \
    void name parameters; \
    TK_EXPORT void name parameters \
    { \
        ompt_data_t *data = data_of_wait(), kept = data ? *data : (ompt_data_t){0}; \
        if (data) \
            data->ptr = NULL; \
        RUNTIMES(name)(__VA_ARGS__); \
        if (data) \
            *data = kept; \
    }

WRAP_WAITING(__kmpc_omp_wait_deps, (void *place, int thread, int count, void *on, int more, void *others), place,
             thread, count, on, more, others)
WRAP_WAITING(__kmpc_omp_taskwait_deps_51,
             (void *place, int thread, int count, void *on, int more, void *others, int no_wait), place, thread, count,
             on, more, others, no_wait)
WRAP_GIVING_UP(__kmpc_doacross_post, (void *place, int thread, const int64_t *at), place, thread, at)

/* A reduction in a critical section: OMPT tells of it before the lock is taken and after it is given up, so that those
 * of several threads overlap. 1: the thread is to combine what it has, alone. */
static __thread void *reducing;

#define WRAP_REDUCE(name) \
    int name(void *, int, int, size_t, void *, void (*)(void *, void *), void *); \
    TK_EXPORT int name(void *place, int thread, int count, size_t size, void *data, void (*combine)(void *, void *), \
                       void *lock) \
    { \
        int how = RUNTIMES(name)(place, thread, count, size, data, combine, lock); \
        if (how == 1 && tk_noting()) { \
            reducing = lock; \
            TK_RECORD3(mutex_acquired, tk_ticket(), TK_OPENMP_MUTEX_CRITICAL, (uintptr_t)lock); \
        } \
        return how; \
    }

#define WRAP_END_REDUCE(name) \
    void name(void *, int, void *); \
    TK_EXPORT void name(void *place, int thread, void *lock) \
    { \
        if (reducing && tk_noting()) \
            TK_RECORD3(mutex_released, tk_ticket(), TK_OPENMP_MUTEX_CRITICAL, (uintptr_t)lock); \
        reducing = NULL; \
        RUNTIMES(name)(place, thread, lock); \
    }

WRAP_REDUCE(__kmpc_reduce)
WRAP_REDUCE(__kmpc_reduce_nowait)
WRAP_END_REDUCE(__kmpc_end_reduce)
WRAP_END_REDUCE(__kmpc_end_reduce_nowait)

static void *new_memory(void *address, size_t size)
{
    if (address && tk_noting())
        TK_RECORD3(task_memory, tk_ticket(), (uintptr_t)address, size);
    return address;
}

static __thread size_t last_size; /* of tk_last_task */

#define WRAP_TASK_ALLOC(name, parameters, ...) \
    void *name parameters; \
    TK_EXPORT void *name parameters \
    { \
        void *task = RUNTIMES(name)(__VA_ARGS__); \
        tk_last_task = (uintptr_t)task; \
        last_size = ((size + 7) & ~(size_t)7) + shared; \
        return new_memory(task, last_size); \
    }

/* What is written into a task's memory before the task is there. */
WRAP_TASK_ALLOC(__kmpc_omp_task_alloc, (void *place, int thread, int flags, size_t size, size_t shared, void *entry),
                place, thread, flags, size, shared, entry)
WRAP_TASK_ALLOC(__kmpc_omp_target_task_alloc,
                (void *place, int thread, int flags, size_t size, size_t shared, void *entry, int64_t device), place,
                thread, flags, size, shared, entry, device)

/* A taskloop whose variables are copied by the program's code: libomp makes memory for one more task, and calls that
 * code, before anybody is told of the task. So it calls us, and we that code. Which one follows from the function of
 * the tasks, for each has its own. */
typedef void (*copy_t)(void *task, void *pattern, int is_last);

#define COPIES 1024 /* a power of two: taskloops of a program; those beyond are not seen to */

static struct {
    const void *function; /* of the tasks; NULL: free */
    copy_t copy;
    size_t size;
} copies[COPIES];

static const void *function_of(void *const *task)
{
    return task[1];
}

/* The function's place, one that it takes now if there is none, or COPIES. */
static uint32_t place_of(const void *function)
{
    uint32_t first = (uint32_t)((uintptr_t)function * 0x9e3779b97f4a7c15u >> 32);
    for (uint32_t step = 0; step < COPIES; step++) {
        uint32_t at = (first + step) % COPIES;
        const void *taken = NULL;
        if (__atomic_compare_exchange_n(&copies[at].function, &taken, function, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            taken == function)
            return at;
    }
    return COPIES;
}

static void copy_task(void *task, void *pattern, int is_last)
{
    uint32_t at = place_of(function_of(pattern));
    new_memory(task, __atomic_load_n(&copies[at].size, __ATOMIC_RELAXED));
    __atomic_load_n(&copies[at].copy, __ATOMIC_ACQUIRE)(task, pattern, is_last);
}

/* What libomp is to call in place of `copy`. */
static void *seen_copy(void *task, void *copy)
{
    uint32_t at = COPIES;
    if (copy && (uintptr_t)task == tk_last_task && tk_noting())
        at = place_of(function_of(task));
    if (at == COPIES)
        return copy;
    __atomic_store_n(&copies[at].size, last_size, __ATOMIC_RELAXED);
    __atomic_store_n(&copies[at].copy, (copy_t)copy, __ATOMIC_RELEASE);
    return (void *)copy_task;
}

void __kmpc_taskloop(void *, int, void *, int, uint64_t *, uint64_t *, int64_t, int, int, uint64_t, void *);
TK_EXPORT void __kmpc_taskloop(void *place, int thread, void *task, int is_deferred, uint64_t *low, uint64_t *high,
                               int64_t step, int no_group, int schedule, uint64_t grain, void *copy)
{
    RUNTIMES(__kmpc_taskloop)
    (place, thread, task, is_deferred, low, high, step, no_group, schedule, grain, seen_copy(task, copy));
}

void __kmpc_taskloop_5(void *, int, void *, int, uint64_t *, uint64_t *, int64_t, int, int, uint64_t, int, void *);
TK_EXPORT void __kmpc_taskloop_5(void *place, int thread, void *task, int is_deferred, uint64_t *low, uint64_t *high,
                                 int64_t step, int no_group, int schedule, uint64_t grain, int modifier, void *copy)
{
    RUNTIMES(__kmpc_taskloop_5)
    (place, thread, task, is_deferred, low, high, step, no_group, schedule, grain, modifier, seen_copy(task, copy));
}

/* The runtime's allocators hand memory on without a call of malloc. */
#define WRAP_ALLOC(name, parameters, size, ...) \
    void *name parameters; \
    TK_EXPORT void *name parameters \
    { \
        return new_memory(RUNTIMES(name)(__VA_ARGS__), size); \
    }

WRAP_ALLOC(omp_alloc, (size_t size, uintptr_t allocator), size, size, allocator)
WRAP_ALLOC(omp_aligned_alloc, (size_t alignment, size_t size, uintptr_t allocator), size, alignment, size, allocator)
WRAP_ALLOC(omp_calloc, (size_t count, size_t size, uintptr_t allocator), count *size, count, size, allocator)
WRAP_ALLOC(omp_aligned_calloc, (size_t alignment, size_t count, size_t size, uintptr_t allocator), count *size,
           alignment, count, size, allocator)
WRAP_ALLOC(__kmpc_alloc, (int thread, size_t size, uintptr_t allocator), size, thread, size, allocator)
WRAP_ALLOC(__kmpc_aligned_alloc, (int thread, size_t alignment, size_t size, uintptr_t allocator), size, thread,
           alignment, size, allocator)

/* What the program gives back itself, or has moved. */
#define GIVING_BACK(pointer, call) \
    ({ \
        tk_given_back = pointer; \
        __typeof__(call) moved = call; \
        tk_given_back = NULL; \
        moved; \
    })

void *omp_realloc(void *old, size_t size, uintptr_t allocator, uintptr_t olds);
TK_EXPORT void *omp_realloc(void *old, size_t size, uintptr_t allocator, uintptr_t olds)
{
    return new_memory(GIVING_BACK(old, RUNTIMES(omp_realloc)(old, size, allocator, olds)), size);
}

void omp_free(void *pointer, uintptr_t allocator);
TK_EXPORT void omp_free(void *pointer, uintptr_t allocator)
{
    GIVING_BACK(pointer, (RUNTIMES(omp_free)(pointer, allocator), 0));
}

void __kmpc_free(int thread, void *pointer, uintptr_t allocator);
TK_EXPORT void __kmpc_free(int thread, void *pointer, uintptr_t allocator)
{
    GIVING_BACK(pointer, (RUNTIMES(__kmpc_free)(thread, pointer, allocator), 0));
}

/* -- copies of a thread ----------------------------------------------------------------------- */

/* Copies for reductions of tasks take whole lines, and thread-private ones at least what they are asked for. */
#define LINE 64

void *__kmpc_task_reduction_get_th_data(int thread, void *group, void *data);
TK_EXPORT void *__kmpc_task_reduction_get_th_data(int thread, void *group, void *data)
{
    void *own = RUNTIMES(__kmpc_task_reduction_get_th_data)(thread, group, data);
    if (own && own != data && tk_recording())
        TK_RECORD2(own_memory, (uintptr_t)own, LINE);
    return own;
}

void *__kmpc_threadprivate_cached(void *place, int thread, void *data, size_t size, void ***cache);
TK_EXPORT void *__kmpc_threadprivate_cached(void *place, int thread, void *data, size_t size, void ***cache)
{
    void *before = *cache ? (*cache)[thread] : NULL;
    void *own = RUNTIMES(__kmpc_threadprivate_cached)(place, thread, data, size, cache);
    if (own != before && tk_recording())
        TK_RECORD2(own_memory, (uintptr_t)own, size);
    return own;
}
