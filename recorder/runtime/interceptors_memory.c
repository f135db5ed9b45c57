/* The malloc family. operator new and delete come through here too: libstdc++ calls malloc and free.
 *
 * Tickets: an allocation's is taken after the real call, a deallocation's before it, so that in ticket order no
 * object is handed out before it was given back. */
#include "preload_record.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#ifdef TK_STATIC

/* What the C library allocates for the thread-local storage of a thread is not the program's. */
#define IS_PROGRAMS() (!tk_within_library)

#else

#define IS_PROGRAMS() (!tk_is_linker((uintptr_t)__builtin_return_address(0)))

#endif

/* What an allocator of the program's own asks for is its business; the blocks that it makes of that are recorded. */
#define RECORDING() (!tk_is_allocating(__builtin_frame_address(0)) && IS_PROGRAMS() && tk_noting())

/* dlsym may allocate while it looks up malloc: those few bytes come from here and are never given back. */
static char bootstrap[1 << 14] __attribute__((aligned(16)));
static size_t bootstrap_used;
static __thread int resolving __attribute__((tls_model("initial-exec")));

static int from_bootstrap(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)bootstrap < sizeof bootstrap;
}

/* Zeroed; the size stands before the block. */
static void *bootstrap_allocate(size_t size)
{
    size_t bytes = (size + 31) & ~(size_t)15;
    size_t offset = __atomic_fetch_add(&bootstrap_used, bytes, __ATOMIC_RELAXED);
    if (size > sizeof bootstrap || offset + bytes > sizeof bootstrap)
        return NULL;
    *(size_t *)(bootstrap + offset) = size;
    return bootstrap + offset + 16;
}

#ifdef TK_STATIC
#define REAL TK_REAL
/* A call of the real functions, of which one may use another. */
#define WITHIN(call) \
    ({ \
        tk_within_library++; \
        __typeof__(call) result_within = call; \
        tk_within_library--; \
        result_within; \
    })
#define OF_LINKER(pointer) 0
#define KEEP(pointer) (void)0
#else
#define OF_LINKER(pointer) tk_forget_linker_block((uintptr_t)(pointer))
#define KEEP(pointer) tk_keep_linker_block((uintptr_t)(pointer))

static void *resolve(void **slot, const char *name)
{
    resolving++;
    void *found = tk_find_real(slot, name);
    resolving--;
    return found;
}

#define REAL(name) \
    ({ \
        static void *real_##name; \
        (__typeof__(&name))(TK_LIKELY(real_##name) ? real_##name : resolve(&real_##name, #name)); \
    })
#define WITHIN(call) (call)
#endif

#ifdef TK_STATIC
#define KEEP_IF_LINKERS(pointer) (void)0
#else
#define KEEP_IF_LINKERS(pointer) (tk_is_linker((uintptr_t)__builtin_return_address(0)) ? KEEP(pointer) : (void)0)
#endif

#define ALLOCATED(pointer, size) \
    (!(pointer)    ? (void)0 \
     : RECORDING() ? TK_RECORD3(heap_alloc, tk_ticket(), (uintptr_t)(pointer), size) \
                   : KEEP_IF_LINKERS(pointer))

TK_EXPORT void *malloc(size_t size)
{
    if (TK_UNLIKELY(resolving))
        return bootstrap_allocate(size);
    void *pointer = REAL(malloc)(size);
    ALLOCATED(pointer, size);
    return pointer;
}

TK_EXPORT void *calloc(size_t count, size_t size)
{
    if (TK_UNLIKELY(resolving))
        return bootstrap_allocate(count * size);
    void *pointer = WITHIN(REAL(calloc)(count, size));
    ALLOCATED(pointer, count * size);
    return pointer;
}

/* What OpenMP's runtime gives back held the data of tasks, or of blocks that omp_free gave back before: all of that is
 * over, and its order with this thread, by counts of the runtime's own, is nowhere in the trace. So the bytes are new
 * before they end, unless it is one block that the program gives back now: whoever uses that has to come before. */
static void forget_tasks(void *pointer, const void *caller)
{
    if (TK_LIKELY(tk_is_programs(caller)))
        return;
    size_t size = malloc_usable_size(pointer);
    if (size <= TK_OPENMP_POOL || (uintptr_t)tk_given_back - (uintptr_t)pointer >= size)
        TK_RECORD3(task_memory, tk_ticket(), (uintptr_t)pointer, size);
}

TK_EXPORT void free(void *pointer)
{
    if (!pointer || from_bootstrap(pointer) || TK_UNLIKELY(resolving))
        return; /* dlsym gives back the text of an earlier error of the program's: a few bytes are lost */
    if (!OF_LINKER(pointer) && RECORDING()) {
        forget_tasks(pointer, __builtin_return_address(0));
        TK_RECORD2(heap_free, tk_ticket(), (uintptr_t)pointer);
    }
    REAL(free)(pointer);
}

/* While a real realloc runs, the old block may already be another thread's and the new one was. So a recorded realloc
 * that moves is made of its parts, with the ticket between them: new block, ticket, old block freed. */
static void *reallocate(void *old, size_t size)
{
    size_t usable = malloc_usable_size(old);
    if (size <= usable && size >= usable / 2) {
        uint64_t ticket = tk_ticket();
        void *same = WITHIN(REAL(realloc)(old, size));
        if (same)
            TK_RECORD4(heap_realloc, ticket, (uintptr_t)old, (uintptr_t)same, size);
        return same;
    }
    void *pointer = REAL(malloc)(size);
    if (!pointer)
        return NULL;
    memcpy(pointer, old, size < usable ? size : usable);
    if (tk_recording()) {
        TK_RECORD4(heap_realloc, tk_ticket(), (uintptr_t)old, (uintptr_t)pointer, size);
    } else { /* outside of windows: without the copy */
        TK_RECORD3(heap_alloc, tk_ticket(), (uintptr_t)pointer, size);
        TK_RECORD2(heap_free, tk_ticket(), (uintptr_t)old);
    }
    REAL(free)(old);
    return pointer;
}

static void *resize(void *old, size_t size, int recording)
{
    if (TK_UNLIKELY(from_bootstrap(old))) {
        void *pointer = malloc(size);
        size_t before = ((size_t *)old)[-2];
        return pointer ? memcpy(pointer, old, size < before ? size : before) : NULL;
    }
    if (!recording) {
        int linkers = old && OF_LINKER(old);
        void *pointer = WITHIN(REAL(realloc)(old, size));
        if (linkers)
            KEEP(pointer ? pointer : old);
        return pointer;
    }
    if (old && size)
        return reallocate(old, size);
    if (old)
        TK_RECORD2(heap_free, tk_ticket(), (uintptr_t)old);
    void *pointer = WITHIN(REAL(realloc)(old, size));
    if (pointer)
        TK_RECORD3(heap_alloc, tk_ticket(), (uintptr_t)pointer, size);
    return pointer;
}

TK_EXPORT void *realloc(void *old, size_t size)
{
    if (TK_UNLIKELY(resolving))
        return bootstrap_allocate(size);
    return resize(old, size, RECORDING());
}

TK_EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(old, bytes, RECORDING());
}

TK_EXPORT int posix_memalign(void **pointer, size_t alignment, size_t size)
{
    int result = WITHIN(REAL(posix_memalign)(pointer, alignment, size));
    if (result == 0) {
        ALLOCATED(*pointer, size);
        if (tk_recording() && RECORDING())
            TK_RECORD2(library_store, (uintptr_t)pointer, sizeof *pointer);
    }
    return result;
}

#define WRAP_ALIGNED(name, parameters, ...) \
    TK_EXPORT void *name parameters \
    { \
        void *pointer = WITHIN(REAL(name)(__VA_ARGS__)); \
        ALLOCATED(pointer, size); \
        return pointer; \
    }

WRAP_ALIGNED(aligned_alloc, (size_t alignment, size_t size), alignment, size)
WRAP_ALIGNED(memalign, (size_t alignment, size_t size), alignment, size)
WRAP_ALIGNED(valloc, (size_t size), size)
WRAP_ALIGNED(pvalloc, (size_t size), size)
