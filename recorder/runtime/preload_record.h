/* Recording an event: what interposed functions do. */
#ifndef TRACEKIT_PRELOAD_RECORD_H
#define TRACEKIT_PRELOAD_RECORD_H

#include "preload.h"

#include <stdio.h>
#include <unistd.h>

/* Append an event to the thread's stream; its code becomes visible last, so a killed process leaves whole records. */
static inline __attribute__((always_inline)) void tk_record(enum tk_event event, int words, uint64_t a, uint64_t b,
                                                            uint64_t c, uint64_t d)
{
    const uint64_t values[4] = {a, b, c, d};
    if (TK_UNLIKELY(__tk_state.pos >= __tk_state.limit))
        tk_flip();
    if (TK_UNLIKELY(!__tk_state.stream)) {
        tk_note(event, words, values);
        return;
    }
    uint64_t *pos = __tk_state.pos;
    for (int word = 0; word < words; word++)
        pos[1 + word] = values[word];
    __atomic_store_n(pos, (uint64_t)event, __ATOMIC_RELEASE);
    __tk_state.pos = pos + 1 + words;
}

#define TK_RECORD0(event) tk_record(TK_EVENT_##event, 0, 0, 0, 0, 0)
#define TK_RECORD1(event, a) tk_record(TK_EVENT_##event, 1, a, 0, 0, 0)
#define TK_RECORD2(event, a, b) tk_record(TK_EVENT_##event, 2, a, b, 0, 0)
#define TK_RECORD3(event, a, b, c) tk_record(TK_EVENT_##event, 3, a, b, c, 0)
#define TK_RECORD4(event, a, b, c, d) tk_record(TK_EVENT_##event, 4, a, b, c, d)

/* interceptors_streams.c: memory that a function of a library records itself, not those by which it does its work.
 * These run before anything else is recorded: what comes behind an exception that has left it does not. */
struct tk_lent {
    uintptr_t address, size;
    const uint64_t *pos; /* of the stream */
};
extern __thread struct tk_lent tk_lent __attribute__((tls_model("initial-exec")));

static inline int tk_is_lent(const void *address)
{
    return (uintptr_t)address - tk_lent.address < tk_lent.size && tk_lent.pos == __tk_state.pos;
}

/* What code that is not instrumented reads and writes, for the call that is open in instrumented code. */
static inline void tk_library_load(const void *address, size_t size)
{
    if (size > 0 && !tk_is_lent(address))
        TK_RECORD2(library_load, (uintptr_t)address, size);
}

static inline void tk_library_store(const void *address, size_t size)
{
    if (size > 0 && !tk_is_lent(address))
        TK_RECORD2(library_store, (uintptr_t)address, size);
}

/* What threads share beside memory, synchronisation objects and file descriptors (formats/SPEC.md, `resource_use`):
 * once there are threads. Each is for an interposed function that the program calls. */
#define TK_DESCRIPTOR(fd) (1ull << 62 | (uint32_t)(fd))

static inline void tk_use(uint64_t resource, const void *caller)
{
    if (tk_has_threads && tk_recording_for(caller))
        TK_RECORD1(resource_use, resource);
}

static inline void tk_begin(uint64_t resource, const void *caller)
{
    if (tk_has_threads && tk_noting_for(caller))
        TK_RECORD2(resource_begin, tk_ticket(), resource);
}

static inline void tk_end(uint64_t resource, const void *caller)
{
    if (tk_has_threads && tk_noting_for(caller))
        TK_RECORD2(resource_end, tk_ticket(), resource);
}

/* A child of vfork has the memory of its parent, but descriptors of its own. */
static inline int tk_has_files(void)
{
    return tk_has_threads && tk_pool && tk_pool->owner == (uint32_t)getpid();
}

static inline void tk_begin_file(int fd, const void *caller)
{
    if (tk_has_files())
        tk_begin(TK_DESCRIPTOR(fd), caller);
}

static inline void tk_end_file(int fd, const void *caller)
{
    if (tk_has_files())
        tk_end(TK_DESCRIPTOR(fd), caller);
}

#define TK_ON_RESOURCE(what, resource) \
    do { \
        if (TK_BY_PROGRAM()) \
            what(resource, __builtin_return_address(0)); \
    } while (0)
#define TK_USE(object) TK_ON_RESOURCE(tk_use, (uintptr_t)(object))
#define TK_BEGIN(object) TK_ON_RESOURCE(tk_begin, (uintptr_t)(object))
#define TK_END(object) TK_ON_RESOURCE(tk_end, (uintptr_t)(object))
#define TK_USE_FILE(fd) TK_ON_RESOURCE(tk_use, TK_DESCRIPTOR(fd))
#define TK_BEGIN_FILE(fd) TK_ON_RESOURCE(tk_begin_file, fd)
#define TK_END_FILE(fd) TK_ON_RESOURCE(tk_end_file, fd)

/* What the kernel orders threads by (a pipe, a signal, a message queue), in the place of an address: no address has
 * this bit. */
#define TK_NO_ADDRESS (1ull << 63)

static inline uint64_t tk_kernel_object(uint64_t first, uint64_t second)
{
    return TK_NO_ADDRESS | 2 | (((first * 0x9e3779b97f4a7c15u) ^ second) * 0xbf58476d1ce4e5b9u) >> 4 << 2;
}

/* interceptors_files.c: what a descriptor leads to; 0 if what is done with it orders nothing. */
uint64_t tk_descriptor_object(int fd);
void tk_file_read(int fd);

/* interceptors_kernel.c */
void tk_signals_read(int fd);
void tk_file_closed(int fd);
void tk_stream_read(FILE *stream);

static inline void tk_kernel_release(uint64_t object)
{
    if (object)
        tk_release(object, TK_SYNC_DESCRIPTOR);
}

static inline void tk_kernel_acquire(uint64_t object)
{
    if (object)
        tk_acquire(object, TK_SYNC_DESCRIPTOR);
}

/* As long as there was one thread only, its creating others orders what it did. */
#define TK_ORDERS() (TK_BY_PROGRAM() && tk_has_threads && tk_noting())

/* Whether the call of an interposed function is recorded. In a static program the C library calls some before there are
 * threads, and that is asked first. */
#define TK_IS_RECORDED() (TK_BY_PROGRAM() && tk_recording_for(__builtin_return_address(0)))

#endif
