/* libtracekit-encoder.so: from raw records to the columns of chunks (formats/SPEC.md, CHNK). Used by one thread. */
#ifndef TRACEKIT_ENCODER_H
#define TRACEKIT_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"
#include "pool.h"

#define TK_EXPORT __attribute__((visibility("default")))
#define TK_LIKELY(x) __builtin_expect(!!(x), 1)
#define TK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TK_NEVER 0xffffu /* arity of a number that is no record */
#define TK_PADDING 8u    /* zero bytes at the end of the residuals */

/* The ids of one image while it is loaded; unloaded 0: still. */
struct tk_range {
    uint64_t low, span;
    uint32_t first; /* number of id `low` */
    uint32_t loaded, unloaded;
};

/* What is known of a record number (event code or path number). */
struct tk_id {
    uint32_t first_slot;
    uint16_t arity;
    uint16_t run;   /* 1: its word is a number of iterations, which are summed up */
    uint64_t count; /* records encoded */
};

struct tk_slot {
    uint64_t last, stride, offset;
};

/* The columns of the chunk that a stream fills; capacity for `capacity` records and words each. */
struct tk_columns {
    uint32_t *literals;
    uint8_t *symbols, *codes, *residuals;
};

struct tk_encoded {
    uint32_t number, thread, kind;
    uint32_t stalled;  /* its next record is unknown until an image is registered */
    uint64_t expected; /* sequence of its next buffer */
    uint64_t resume;   /* words of that buffer that are done */
    uint64_t began;    /* when its chunk was begun, nanoseconds */
    struct tk_columns base, at;
    uint32_t records, words;
    uint32_t previous_id;
    uint64_t previous_word;
    uint32_t calm; /* most words can be predicted */
    uint32_t (*successors)[4]; /* by id: three, and one that is not used */
    struct tk_slot *slots;
    size_t ids, slot_count; /* rows that the two have room for */
};

struct tk_encoder {
    struct tk_range *ranges;
    uint32_t range_count;
    struct tk_id *ids;
    uint64_t *iterations; /* by id, of runs */
    uint32_t id_count, slot_count;
    struct tk_encoded **streams; /* by number; NULL if not seen */
    uint32_t stream_count;
    uint32_t open;     /* streams with an unfinished chunk */
    uint32_t capacity; /* records and words of a chunk, one buffer more than the limit */
    uint32_t limit;    /* of records and words, from which on a chunk is complete */
    uint64_t unknown;  /* words that no image explained */
    uint32_t images;   /* of the pool that have been added */
    uint32_t failed;   /* out of memory */
};

struct tk_encoded *tk_encoder_stream(struct tk_encoder *encoder, uint32_t number, uint32_t thread, uint32_t kind);
size_t tk_encode(struct tk_encoder *encoder, struct tk_encoded *stream, const uint64_t *words, size_t count,
                 uint32_t epoch);

#endif
