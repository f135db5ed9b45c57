/* OpenMP: what its runtime (LLVM's libomp) says of teams, tasks and what orders them, by OMPT. What it does not say, or
 * says too late, is learnt from its calls: openmp_calls.c. */
#include "preload_record.h"

#include "ompt.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static uint8_t ours[OMPT_EVENTS];
static uint64_t teams, tasks; /* numbered so far */
static ompt_get_task_memory_t get_task_memory;

static uint64_t next_number(uint64_t *counter)
{
    return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static uint64_t taken_ticket(void)
{
    uint64_t ticket = tk_taken ? tk_taken - 1 : tk_ticket();
    tk_taken = 0;
    return ticket;
}

/* Call what the other tool set for an event. Locks that it takes are no order of the program. */
#define THEIRS(event, type, ...) \
    do { \
        if (TK_UNLIKELY(tk_is_another_tool) && tk_their_callbacks[event]) { \
            tk_openmp_tool++; \
            ((type)tk_their_callbacks[event])(__VA_ARGS__); \
            tk_openmp_tool--; \
        } \
    } while (0)

/* -- threads ---------------------------------------------------------------------------------- */

/* The thread's own copies of thread-local variables. */
static int note_thread_local(struct dl_phdr_info *image, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int row = 0; image->dlpi_tls_data && row < image->dlpi_phnum; row++)
        if (image->dlpi_phdr[row].p_type == PT_TLS && image->dlpi_phdr[row].p_memsz)
            TK_RECORD2(own_memory, (uintptr_t)image->dlpi_tls_data, image->dlpi_phdr[row].p_memsz);
    return 0;
}

typedef void (*thread_begin_t)(int, ompt_data_t *);

static void thread_begin(int type, ompt_data_t *data)
{
    if (tk_current && type == OMPT_THREAD_WORKER)
        tk_current->is_worker = 1;
    if (tk_noting()) {
        TK_RECORD2(openmp_thread, tk_ticket(), (uint64_t)type);
        dl_iterate_phdr(note_thread_local, NULL);
    }
    THEIRS(OMPT_THREAD_BEGIN, thread_begin_t, type, data);
}

/* -- which task a thread is in ---------------------------------------------------------------- */

static __thread uint64_t entered; /* the one that it is in by what was recorded, 0: none is known */

/* libomp does not say that a part of an untied task ends while another part of it is still under way on another thread:
 * the next event that names the thread's own task shows it. */
static void note_in(const ompt_data_t *task)
{
    uint64_t number = tk_number_of(task);
    if (!number)
        return;
    if (entered && entered != number && tk_noting())
        TK_RECORD4(task_schedule, tk_ticket(), TK_TASK_STATUS_DETACH, number, entered);
    entered = number;
}

/* -- teams ------------------------------------------------------------------------------------ */

/* The numbers of the teams that a thread has begun and not ended. libomp gives a team back before it says that it is
 * over: in nested regions another thread may have begun that one anew, with a number of its own. */
#define MOST_NESTED 256
static __thread uint64_t begun[MOST_NESTED];
static __thread unsigned nested;

static void begin_nested(uint64_t team)
{
    if (nested++ < MOST_NESTED)
        begun[nested - 1] = team;
}

static uint64_t end_nested(const ompt_data_t *team)
{
    if (nested == 0 || nested-- > MOST_NESTED)
        return tk_number_of(team);
    return begun[nested];
}

typedef void (*parallel_begin_t)(ompt_data_t *, const void *, ompt_data_t *, unsigned, int, const void *);

static void parallel_begin(ompt_data_t *task, const void *frame, ompt_data_t *team, unsigned threads, int flags,
                           const void *caller)
{
    tk_number_data(team, next_number(&teams));
    begin_nested(tk_number_of(team));
    note_in(task);
    if (tk_noting())
        TK_RECORD3(parallel_begin, tk_ticket(), tk_number_of(team), threads);
    THEIRS(OMPT_PARALLEL_BEGIN, parallel_begin_t, tk_theirs(task), frame, tk_theirs(team), threads, flags, caller);
}

typedef void (*parallel_end_t)(ompt_data_t *, ompt_data_t *, int, const void *);

static void parallel_end(ompt_data_t *team, ompt_data_t *task, int flags, const void *caller)
{
    uint64_t number = end_nested(team);
    if (tk_noting())
        TK_RECORD2(parallel_end, tk_ticket(), number);
    entered = tk_number_of(task);
    THEIRS(OMPT_PARALLEL_END, parallel_end_t, tk_theirs(team), tk_theirs(task), flags, caller);
}

typedef void (*implicit_task_t)(int, ompt_data_t *, ompt_data_t *, unsigned, unsigned, int);

/* Below what calls us nothing on the stack is alive, and the runtime will keep there what it hands to the region. */
#define NEW_STACK 4096

static void implicit_task(int endpoint, ompt_data_t *team, ompt_data_t *task, unsigned size, unsigned index, int flags)
{
    if (endpoint == OMPT_BEGIN) {
        if (flags & TK_TASK_INITIAL && team && !tk_number_of(team))
            tk_number_data(team, next_number(&teams));
        tk_number_data(task, next_number(&tasks));
        entered = tk_number_of(task);
        if (tk_noting()) {
            uintptr_t top = (uintptr_t)__builtin_dwarf_cfa();
            TK_RECORD4(implicit_begin, tk_ticket(), index, tk_number_of(team), tk_number_of(task));
            TK_RECORD3(task_memory, tk_ticket(), top - NEW_STACK, NEW_STACK);
        }
    } else if (endpoint == OMPT_END) {
        entered = 0;
        if (tk_noting())
            TK_RECORD2(implicit_end, tk_ticket(), tk_number_of(task));
    }
    THEIRS(OMPT_IMPLICIT_TASK, implicit_task_t, endpoint, tk_theirs(team), tk_theirs(task), size, index, flags);
}

/* -- tasks ------------------------------------------------------------------------------------ */

/* libomp keeps our data in front of a task, in the same memory: 64 bytes in LLVM 19. No two tasks lie so close. */
#define IN_FRONT 256

/* The tasks of a taskloop are copies that libomp makes by itself, without a call that allocates them. */
static int is_copy(const ompt_data_t *task)
{
    return tk_last_task - (uintptr_t)task >= IN_FRONT;
}

static void note_task(ompt_data_t *task, uint32_t flags)
{
    tk_number_data(task, next_number(&tasks) | (is_copy(task) ? TK_UNKNOWN_MEMORY : 0));
    if (tk_noting())
        TK_RECORD3(task_create, tk_ticket(), flags, tk_number_of(task));
}

typedef void (*task_create_t)(ompt_data_t *, const void *, ompt_data_t *, int, int, const void *);

static void task_create(ompt_data_t *creator, const void *frame, ompt_data_t *task, int flags, int depends,
                        const void *caller)
{
    note_in(creator);
    note_task(task, (uint32_t)flags);
    THEIRS(OMPT_TASK_CREATE, task_create_t, tk_theirs(creator), frame, tk_theirs(task), flags, depends, caller);
}

/* A task's arguments and private variables lie where those of another may have lain. */
static void note_memory(void)
{
    void *address = NULL;
    size_t size = 0;
    if (get_task_memory)
        get_task_memory(&address, &size, 0); /* whether there is a second block is nothing to us */
    if (size > 0)
        TK_RECORD3(task_memory, tk_ticket(), (uintptr_t)address, size);
}

typedef void (*task_schedule_t)(ompt_data_t *, int, ompt_data_t *);

static void task_schedule(ompt_data_t *task, int status, ompt_data_t *next)
{
    if (next && !tk_number_of(next)) /* one that the runtime made by itself, to split a taskloop */
        note_task(next, TK_TASK_EXPLICIT);
    if (next && status != TK_TASK_STATUS_EARLY_FULFILL && status != TK_TASK_STATUS_LATE_FULFILL &&
        status != TK_TASK_STATUS_TASKWAIT_COMPLETE)
        entered = tk_number_of(next);
    if (tk_noting()) {
        TK_RECORD4(task_schedule, tk_ticket(), (uint64_t)status, tk_number_of(next), tk_number_of(task));
        if (next && (status == TK_TASK_STATUS_SWITCH || status == TK_TASK_STATUS_YIELD) &&
            tk_begins_in_unknown_memory(next))
            note_memory();
    }
    THEIRS(OMPT_TASK_SCHEDULE, task_schedule_t, tk_theirs(task), status, tk_theirs(next));
}

typedef void (*dependences_t)(ompt_data_t *, const ompt_dependence_t *, int);

/* The vector of iterations of a doacross loop is one place. */
static void note_doacross(ompt_data_t *task, const ompt_dependence_t *at, int count)
{
    uint64_t place = 0;
    for (int dimension = 0; dimension < count; dimension++)
        place = (place ^ at[dimension].variable.value) * 0x9e3779b97f4a7c15u + 1;
    TK_RECORD4(task_dependence, taken_ticket(), (uint64_t)at[0].kind, place, tk_number_of(task));
}

static void dependences(ompt_data_t *task, const ompt_dependence_t *on, int count)
{
    if (tk_noting() && count > 0) {
        if (on[0].kind == TK_DEPENDENCE_SOURCE || on[0].kind == TK_DEPENDENCE_SINK)
            note_doacross(task, on, count);
        else
            for (int row = 0; row < count; row++)
                TK_RECORD4(task_dependence, tk_ticket(), (uint64_t)on[row].kind, on[row].variable.value,
                           tk_number_of(task));
    }
    THEIRS(OMPT_DEPENDENCES, dependences_t, tk_theirs(task), on, count);
}

typedef void (*task_dependence_t)(ompt_data_t *, ompt_data_t *);

static void task_dependence(ompt_data_t *source, ompt_data_t *sink)
{
    THEIRS(OMPT_TASK_DEPENDENCE, task_dependence_t, tk_theirs(source), tk_theirs(sink));
}

/* -- what orders them ------------------------------------------------------------------------- */

typedef void (*sync_region_t)(int, int, ompt_data_t *, ompt_data_t *, const void *);

static void sync_region(int kind, int endpoint, ompt_data_t *team, ompt_data_t *task, const void *caller)
{
    note_in(task);
    if (tk_noting()) {
        if (endpoint & OMPT_BEGIN)
            TK_RECORD4(sync_begin, tk_ticket(), (uint64_t)kind, tk_number_of(team), tk_number_of(task));
        if (endpoint & OMPT_END)
            TK_RECORD4(sync_end, tk_ticket(), (uint64_t)kind, tk_number_of(team), tk_number_of(task));
    }
    THEIRS(OMPT_SYNC_REGION, sync_region_t, kind, endpoint, tk_theirs(team), tk_theirs(task), caller);
}

static void sync_region_wait(int kind, int endpoint, ompt_data_t *team, ompt_data_t *task, const void *caller)
{
    if (kind == TK_REGION_TASKGROUP && endpoint & OMPT_END && tk_noting())
        TK_RECORD4(sync_waited, tk_ticket(), (uint64_t)kind, tk_number_of(team), tk_number_of(task));
    THEIRS(OMPT_SYNC_REGION_WAIT, sync_region_t, kind, endpoint, tk_theirs(team), tk_theirs(task), caller);
}

static void reduction(int kind, int endpoint, ompt_data_t *team, ompt_data_t *task, const void *caller)
{
    if (tk_noting()) {
        if (endpoint & OMPT_BEGIN)
            TK_RECORD3(reduction_begin, tk_ticket(), tk_number_of(team), tk_number_of(task));
        if (endpoint & OMPT_END)
            TK_RECORD3(reduction_end, tk_ticket(), tk_number_of(team), tk_number_of(task));
    }
    THEIRS(OMPT_REDUCTION, sync_region_t, kind, endpoint, tk_theirs(team), tk_theirs(task), caller);
}

typedef void (*mutex_t)(int, uint64_t, const void *);
typedef void (*lock_t)(int, unsigned, unsigned, uint64_t, const void *);

static void lock_init(int kind, unsigned hint, unsigned implementation, uint64_t lock, const void *caller)
{
    tk_begin(lock, caller);
    THEIRS(OMPT_LOCK_INIT, lock_t, kind, hint, implementation, lock, caller);
}

static void lock_destroy(int kind, uint64_t lock, const void *caller)
{
    tk_end(lock, caller);
    THEIRS(OMPT_LOCK_DESTROY, mutex_t, kind, lock, caller);
}

/* It is about to wait. What is no lock nobody initialises. */
static void mutex_acquire(int kind, unsigned hint, unsigned implementation, uint64_t mutex, const void *caller)
{
    if (kind >= TK_OPENMP_MUTEX_LOCK && kind <= TK_OPENMP_MUTEX_TEST_NEST_LOCK)
        tk_use(mutex, caller);
    THEIRS(OMPT_MUTEX_ACQUIRE, lock_t, kind, hint, implementation, mutex, caller);
}

static void mutex_acquired(int kind, uint64_t mutex, const void *caller)
{
    if (tk_noting())
        TK_RECORD3(mutex_acquired, tk_ticket(), (uint64_t)kind, mutex);
    THEIRS(OMPT_MUTEX_ACQUIRED, mutex_t, kind, mutex, caller);
}

static void mutex_released(int kind, uint64_t mutex, const void *caller)
{
    if (tk_noting())
        TK_RECORD3(mutex_released, taken_ticket(), (uint64_t)kind, mutex);
    THEIRS(OMPT_MUTEX_RELEASED, mutex_t, kind, mutex, caller);
}

typedef void (*flush_t)(ompt_data_t *, const void *);

static void flush(ompt_data_t *thread, const void *caller)
{
    if (tk_noting())
        TK_RECORD2(fence, tk_ticket(), TK_ATOMIC_ACQUIRE | TK_ATOMIC_RELEASE);
    THEIRS(OMPT_FLUSH, flush_t, thread, caller);
}

/* -- worksharing ------------------------------------------------------------------------------ */

typedef void (*work_t)(int, int, ompt_data_t *, ompt_data_t *, uint64_t, const void *);

static void work(int kind, int endpoint, ompt_data_t *team, ompt_data_t *task, uint64_t count, const void *caller)
{
    if (tk_recording()) {
        if (endpoint & OMPT_BEGIN)
            TK_RECORD3(work_begin, (uint64_t)kind, count, tk_number_of(task));
        if (endpoint & OMPT_END)
            TK_RECORD3(work_end, (uint64_t)kind, count, tk_number_of(task));
    }
    THEIRS(OMPT_WORK, work_t, kind, endpoint, tk_theirs(team), tk_theirs(task), count, caller);
}

typedef void (*dispatch_t)(ompt_data_t *, ompt_data_t *, int, ompt_data_t);

static void dispatch(ompt_data_t *team, ompt_data_t *task, int kind, ompt_data_t instance)
{
    if (tk_recording() && kind > OMPT_DISPATCH_SECTION && instance.ptr) {
        const ompt_dispatch_chunk_t *chunk = instance.ptr;
        TK_RECORD3(dispatch, (uint64_t)kind, chunk->start, chunk->iterations);
    } else if (tk_recording()) {
        TK_RECORD3(dispatch, (uint64_t)kind, instance.value, 1);
    }
    THEIRS(OMPT_DISPATCH, dispatch_t, tk_theirs(team), tk_theirs(task), kind, instance);
}

/* What we do not record and the other tool must not see our data of. */
typedef void (*masked_t)(int, ompt_data_t *, ompt_data_t *, const void *);

static void masked(int endpoint, ompt_data_t *team, ompt_data_t *task, const void *caller)
{
    THEIRS(OMPT_MASKED, masked_t, endpoint, tk_theirs(team), tk_theirs(task), caller);
}

typedef void (*cancel_t)(ompt_data_t *, int, const void *);

static void cancel(ompt_data_t *task, int flags, const void *caller)
{
    THEIRS(OMPT_CANCEL, cancel_t, tk_theirs(task), flags, caller);
}

/* -- the beginning ---------------------------------------------------------------------------- */

static const struct {
    int event;
    int passed_on; /* only set if there is another tool */
    ompt_function_t callback;
} callbacks[] = {
    {OMPT_THREAD_BEGIN, 0, (ompt_function_t)thread_begin},
    {OMPT_PARALLEL_BEGIN, 0, (ompt_function_t)parallel_begin},
    {OMPT_PARALLEL_END, 0, (ompt_function_t)parallel_end},
    {OMPT_IMPLICIT_TASK, 0, (ompt_function_t)implicit_task},
    {OMPT_TASK_CREATE, 0, (ompt_function_t)task_create},
    {OMPT_TASK_SCHEDULE, 0, (ompt_function_t)task_schedule},
    {OMPT_DEPENDENCES, 0, (ompt_function_t)dependences},
    {OMPT_TASK_DEPENDENCE, 1, (ompt_function_t)task_dependence},
    {OMPT_SYNC_REGION, 0, (ompt_function_t)sync_region},
    {OMPT_SYNC_REGION_WAIT, 0, (ompt_function_t)sync_region_wait},
    {OMPT_REDUCTION, 0, (ompt_function_t)reduction},
    {OMPT_LOCK_INIT, 0, (ompt_function_t)lock_init},
    {OMPT_LOCK_DESTROY, 0, (ompt_function_t)lock_destroy},
    {OMPT_MUTEX_ACQUIRE, 0, (ompt_function_t)mutex_acquire},
    {OMPT_MUTEX_ACQUIRED, 0, (ompt_function_t)mutex_acquired},
    {OMPT_MUTEX_RELEASED, 0, (ompt_function_t)mutex_released},
    {OMPT_FLUSH, 0, (ompt_function_t)flush},
    {OMPT_WORK, 0, (ompt_function_t)work},
    {OMPT_DISPATCH, 0, (ompt_function_t)dispatch},
    {OMPT_MASKED, 1, (ompt_function_t)masked},
    {OMPT_CANCEL, 1, (ompt_function_t)cancel},
};

static int initialize(ompt_lookup_t lookup, int device, ompt_data_t *unused)
{
    (void)unused;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    get_task_memory = (ompt_get_task_memory_t)lookup("ompt_get_task_memory");
    tk_thread_data = (ompt_get_thread_data_t)lookup("ompt_get_thread_data");
    for (size_t row = 0; set && row < sizeof callbacks / sizeof callbacks[0]; row++)
        if (!callbacks[row].passed_on || tk_is_another_tool)
            ours[callbacks[row].event] = (uint8_t)set(callbacks[row].event, callbacks[row].callback);
    tk_initialize_other_tool(lookup, device, ours);
    return set != NULL;
}

static void finalize(ompt_data_t *unused)
{
    (void)unused;
    tk_finalize_other_tool();
}

/* Where the runtime's code lies: its own locks and conditions are no order of the program's. */
static int find_runtime(struct dl_phdr_info *image, size_t size, void *address)
{
    (void)size;
    for (int row = 0; row < image->dlpi_phnum; row++) {
        const ElfW(Phdr) *part = &image->dlpi_phdr[row];
        uintptr_t low = image->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && (uintptr_t)address - low < part->p_memsz) {
            tk_openmp.low = low;
            tk_openmp.bytes = part->p_memsz;
            return 1;
        }
    }
    return 0;
}

TK_EXPORT ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    void *caller = __builtin_return_address(0);
    Dl_info image;
    ompt_start_tool_result_t *other = tk_start_other_tool(version, runtime);
    if (!tk_pool)
        return tk_is_another_tool = 0, other;
    if (dladdr(caller, &image) && strstr(image.dli_fname, ".so")) {
        tk_openmp.library = dlopen(image.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        dl_iterate_phdr(find_runtime, caller);
    }
    return &result;
}
