/* The part of OMPT (OpenMP 5.2, chapter 19) that the recorder uses. The compiler's omp-tools.h need not be there where
 * the runtime is built. */
#ifndef TRACEKIT_OMPT_H
#define TRACEKIT_OMPT_H

#include <stddef.h>
#include <stdint.h>

typedef union {
    uint64_t value;
    void *ptr;
} ompt_data_t;

typedef void (*ompt_function_t)(void);
typedef ompt_function_t (*ompt_lookup_t)(const char *name);
typedef int (*ompt_set_callback_t)(int event, ompt_function_t callback);
typedef int (*ompt_get_callback_t)(int event, ompt_function_t *callback);
typedef int (*ompt_get_parallel_info_t)(int level, ompt_data_t **parallel, int *size);
typedef int (*ompt_get_task_info_t)(int level, int *flags, ompt_data_t **task, void **frame, ompt_data_t **parallel,
                                    int *thread);
typedef ompt_data_t *(*ompt_get_thread_data_t)(void);
typedef int (*ompt_get_task_memory_t)(void **address, size_t *size, int block);

typedef struct {
    int (*initialize)(ompt_lookup_t lookup, int device, ompt_data_t *data);
    void (*finalize)(ompt_data_t *data);
    ompt_data_t data;
} ompt_start_tool_result_t;

typedef struct {
    ompt_data_t variable;
    int kind;
} ompt_dependence_t;

typedef struct {
    uint64_t start, iterations;
} ompt_dispatch_chunk_t;

enum { OMPT_BEGIN = 1, OMPT_END = 2, OMPT_BEGIN_END = 3 };

enum {
    OMPT_THREAD_BEGIN = 1,
    OMPT_PARALLEL_BEGIN = 3,
    OMPT_PARALLEL_END = 4,
    OMPT_TASK_CREATE = 5,
    OMPT_TASK_SCHEDULE = 6,
    OMPT_IMPLICIT_TASK = 7,
    OMPT_TARGET = 8,
    OMPT_SYNC_REGION_WAIT = 16,
    OMPT_MUTEX_RELEASED = 17,
    OMPT_DEPENDENCES = 18,
    OMPT_TASK_DEPENDENCE = 19,
    OMPT_WORK = 20,
    OMPT_MASKED = 21,
    OMPT_SYNC_REGION = 23,
    OMPT_LOCK_INIT = 24,
    OMPT_LOCK_DESTROY = 25,
    OMPT_MUTEX_ACQUIRE = 26,
    OMPT_MUTEX_ACQUIRED = 27,
    OMPT_FLUSH = 29,
    OMPT_CANCEL = 30,
    OMPT_REDUCTION = 31,
    OMPT_DISPATCH = 32,
    OMPT_TARGET_EMI = 33,
    OMPT_EVENTS = 64
};

enum { OMPT_DISPATCH_SECTION = 2 };

enum { OMPT_THREAD_WORKER = 2 };

/* openmp_calls.c: one more than the ticket of what a thread is giving up, 0 if it took none (tickets count from 0);
 * what libomp keeps for tools of a thread. */
extern __thread uint64_t tk_taken;
extern ompt_get_thread_data_t tk_thread_data;

/* openmp_calls.c: where the task lies that the thread has allocated last, by a call that said so (`task_memory`). */
extern __thread uintptr_t tk_last_task;

/* Another tool that runs beside the recorder (openmp_tools.c): what teams and tasks keep for us, and for it. */
struct tk_pair {
    uint64_t number;
    ompt_data_t theirs;
};

extern ompt_function_t tk_their_callbacks[OMPT_EVENTS];
extern int tk_is_another_tool;
ompt_start_tool_result_t *tk_start_other_tool(unsigned version, const char *runtime);
void tk_initialize_other_tool(ompt_lookup_t lookup, int device, const uint8_t *ours);
void tk_finalize_other_tool(void);
void tk_number_data(ompt_data_t *data, uint64_t number);

/* In the number of a task that has not begun: no call has said where its memory lies. */
#define TK_UNKNOWN_MEMORY (1ull << 63)

/* The number that we gave a team or a task; 0: none. */
static inline uint64_t tk_number_of(const ompt_data_t *data)
{
    if (!data)
        return 0;
    if (!tk_is_another_tool)
        return data->value & ~TK_UNKNOWN_MEMORY;
    return data->ptr ? ((const struct tk_pair *)data->ptr)->number & ~TK_UNKNOWN_MEMORY : 0;
}

/* Whether the memory of a task is not known when it begins, as it does now. */
static inline int tk_begins_in_unknown_memory(ompt_data_t *task)
{
    uint64_t *number = !tk_is_another_tool ? &task->value : task->ptr ? &((struct tk_pair *)task->ptr)->number : NULL;
    if (!number || !(*number & TK_UNKNOWN_MEMORY))
        return 0;
    *number &= ~TK_UNKNOWN_MEMORY;
    return 1;
}

static inline ompt_data_t *tk_theirs(const ompt_data_t *data)
{
    return data && data->ptr ? &((struct tk_pair *)data->ptr)->theirs : NULL;
}

#endif
