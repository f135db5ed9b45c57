/* Allocators of the program's own: its `malloc`, and what `tracekit cc --allocator` names (pass/Allocators.cpp).
 *
 * One may ask another, or the C library, for what it hands on: what is recorded is the outermost call. All within is
 * the allocator's business, as it is the C library's: instrumented code that runs meanwhile writes to scratch memory,
 * and nothing that it maps or allocates is an object. Tickets are as in interceptors_memory.c. */
#include "preload_record.h"

__thread const char *tk_allocator __attribute__((tls_model("initial-exec")));
static __thread int handlers; /* that were open when it was entered */

#ifdef TK_STATIC
#define LOW __start_tk_runtime
#define HIGH __stop_tk_runtime
#define BY_LINKER(allocation) 0
#define FORGET(block) 0
#define KEEP(block) (void)0
#else
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
#define LOW __ehdr_start
#define HIGH etext
#define BY_LINKER(allocation) tk_is_linker((uintptr_t)(allocation)->caller)
#define FORGET(block) tk_forget_linker_block((uintptr_t)(block))
#define KEEP(block) tk_keep_linker_block((uintptr_t)(block))
#endif

/* Whether the call was recorded before it came here: a `malloc` in a library, which this one's stands in front of. */
static int is_known(const struct tk_allocation *allocation)
{
    return (uintptr_t)allocation->caller - (uintptr_t)LOW < (uintptr_t)HIGH - (uintptr_t)LOW;
}

static int is_programs(const struct tk_allocation *allocation)
{
    return !is_known(allocation) && !BY_LINKER(allocation) && tk_noting();
}

/* Where other threads run, one may get the block before its move is told of. So it is given back first, and what comes
 * after is another block, with contents. */
static int gives_back_first(const struct tk_allocation *allocation)
{
    return allocation->kind == TK_ALLOCATION_FREE || (allocation->kind == TK_ALLOCATION_RESIZE && tk_has_threads);
}

/* Not where windows open and close: a thread may be in none, and goes into them and out of them by itself. */
static void mute(void)
{
    if (!tk_windows.paused && __tk_state.stream && tk_current && !tk_current->held.stream) {
        tk_current->held = __tk_state;
        tk_scratch();
    }
}

static void unmute(void)
{
    if (!tk_windows.paused && tk_current && tk_current->held.stream) {
        struct tk_state state = tk_current->held;
        tk_current->held = (struct tk_state){0};
        tk_resume(&state);
    }
}

void tk_allocating(const struct tk_allocation *allocation)
{
    int depth = tk_current ? tk_current->depth : 0;
    if (tk_allocator && (tk_is_allocating(allocation->frame) || depth != handlers))
        return;
    unmute(); /* nobody said that an earlier one was left */
    tk_allocator = allocation->frame;
    handlers = depth;
    if (allocation->block && gives_back_first(allocation) && !FORGET(allocation->block) && is_programs(allocation))
        TK_RECORD2(heap_free, tk_ticket(), (uintptr_t)allocation->block);
    if (depth == 0)
        mute();
}

/* A block begins without bytes, and grows: so it is not taken for more of another that ends where it begins. */
static void made(const void *block, size_t size)
{
    TK_RECORD3(heap_alloc, tk_ticket(), (uintptr_t)block, 0);
    if (size)
        TK_RECORD4(heap_realloc, tk_ticket(), (uintptr_t)block, (uintptr_t)block, size);
}

static void resized(const void *old, const void *block, size_t size)
{
    if (!block && size == 0) {
        TK_RECORD2(heap_free, tk_ticket(), (uintptr_t)old);
    } else if (block == old && size == 0) {
        /* it is still there, and its free is to come */
    } else if (block == old) {
        TK_RECORD4(heap_realloc, tk_ticket(), (uintptr_t)old, (uintptr_t)block, size);
    } else if (block && tk_recording()) {
        made(block, 0);
        TK_RECORD4(heap_realloc, tk_ticket(), (uintptr_t)old, (uintptr_t)block, size);
    } else if (block) { /* outside of windows: without the copy */
        made(block, size);
        TK_RECORD2(heap_free, tk_ticket(), (uintptr_t)old);
    }
}

/* Control is where `frame` lies, perhaps outside of the allocator: it returns, or was left by unwinding. */
void tk_leave_allocator(const void *frame)
{
    if (tk_allocator && !tk_is_allocating(frame)) {
        tk_allocator = NULL;
        unmute();
    }
}

void tk_allocated(const struct tk_allocation *allocation, size_t size, void *result)
{
    if (allocation->frame != tk_allocator)
        return;
    tk_leave_allocator(allocation->frame);
    int is_free = allocation->kind == TK_ALLOCATION_FREE;
    if (BY_LINKER(allocation) && !is_free && result)
        KEEP(result);
    if (is_free || !is_programs(allocation))
        return;
    if (allocation->block && !gives_back_first(allocation)) {
        resized(allocation->block, result, size);
    } else if (result) {
        made(result, size);
        if (allocation->block && tk_recording())
            tk_library_store(result, size);
    }
}
