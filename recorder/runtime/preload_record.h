/* Recording an event: what interposed functions do. */
#ifndef TRACEKIT_PRELOAD_RECORD_H
#define TRACEKIT_PRELOAD_RECORD_H

#include "preload.h"

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

/* What code that is not instrumented reads and writes, for the call that is open in instrumented code. */
static inline void tk_library_load(const void *address, size_t size)
{
    if (size > 0)
        TK_RECORD2(library_load, (uintptr_t)address, size);
}

static inline void tk_library_store(const void *address, size_t size)
{
    if (size > 0)
        TK_RECORD2(library_store, (uintptr_t)address, size);
}

/* Whether the call of an interposed function is recorded. In a static program the C library calls some before there are
 * threads, and that is asked first. */
#define TK_IS_RECORDED() (TK_BY_PROGRAM() && tk_recording_for(__builtin_return_address(0)))

#endif
