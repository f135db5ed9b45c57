/* libtracekit-encoder.so: from raw records to the columns of chunks (formats/SPEC.md, CHNK). Used by several workers,
 * each of which fills a chunk of its own; chunks of one stream need nothing of each other. */
#ifndef TRACEKIT_ENCODER_H
#define TRACEKIT_ENCODER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "format.h"
#include "pool.h"

#define TK_NEVER 0xffffu /* arity of a number that is no record */
#define TK_PADDING 8u    /* zero bytes at the end of the residuals */

#define TK_MOST_STREAMS (1u << 24) /* threads and levels of handlers; a greater number is none */

enum { TK_GONE = 1, TK_ENDED };

/* A pool as this process sees it. The program may write anything into the pool: what stands here is what is believed.
 */
struct tk_view {
    struct tk_layout at;
    uint32_t exited;                 /* TK_GONE, or TK_ENDED: no more is waited for, but it may be running still */
    uint32_t discarded;              /* this process turned the pool to discard */
    uint32_t buffers;                /* that are in use; at first, and as the program says, never fewer */
    uint32_t allocated;              /* buffers that this process has allocated the memory of */
    uint32_t images;                 /* that the program says there are, never fewer */
    uint32_t damaged;                /* something in the pool cannot be so: the program wrote where it should not */
    uint8_t in_hand[TK_MAX_BUFFERS]; /* a worker encodes and frees it: no other looks at it; under the encoder's lock */
};

/* A buffer that can be encoded, as it stood in the pool when it was looked at. */
struct tk_filled {
    struct tk_buffer *buffer;
    uint32_t full; /* else the program died while it wrote here: up to the first zero */
    uint32_t last; /* its stream ends with it */
    uint32_t stream, thread, kind, epoch;
    uint64_t sequence, words;
};

/* The ids of one image while it is loaded; unloaded 0: still. */
struct tk_range {
    uint64_t low, span;
    uint32_t first; /* number of id `low` */
    uint32_t loaded, unloaded;
};

/* What is known of a record number (event code or path number). Rows of tables are given out when a number is first
 * seen: most of a program's paths never run, and the tables of those that do are to stay in the caches. */
struct tk_id {
    uint64_t place; /* where its row begins, in numbers of 4 bytes; its first slot << 32 */
    uint16_t arity;
    uint8_t run;  /* 1: its word is a number of iterations, which are summed up */
    uint8_t seen; /* 0 before its first record: it has no place yet */
};

struct tk_slot {
    uint64_t last, stride, reference; /* reference: the word that its predictor names, when the last one came */
};

/* A slot's predictor: how many words before the one before its own the reference stands, and << 4 by how many bits the
 * difference of two references is shifted to be that of the slot's words. */
enum { TK_WINDOW = 8, TK_SHIFTS = 4, TK_SHIFT_AT = 4 };
#define TK_SAMPLE (1u << 14) /* items at the start of a chunk by which its predictors are chosen */

/* The columns of a chunk; capacity for `capacity` records and words each. */
struct tk_columns {
    uint32_t *literals;
    uint8_t *symbols, *codes, *residuals;
};

/* Row of an id: the three ids that followed it last, and how many records it has. */
enum { TK_RECORDS = 3 };

/* A piece of a stream: the records of its buffers first .. end - 1. */
struct tk_chunk {
    uint32_t stream, thread, kind;
    uint32_t ordinal;   /* of the chunk in its stream */
    uint32_t busy;      /* a worker fills it */
    uint32_t stalled;   /* its next record is unknown until an image is registered */
    uint64_t next, end; /* sequence of its next buffer, of the first one that is not its own */
    uint64_t resume;    /* words of its next buffer that are done */
    uint64_t began;     /* nanoseconds */
    uint64_t unknown;   /* words that no image explained */
    struct tk_columns base, at;
    uint32_t records, words;
    uint32_t previous_row;
    uint32_t calm;              /* most words can be predicted */
    uint64_t recent[TK_WINDOW]; /* the last words, the latest last */
    uint32_t (*successors)[4];  /* by row */
    struct tk_slot *slots;
    uint8_t *predictors;      /* by slot */
    size_t rows, slot_count;  /* that the three have room for */
    uint32_t has_predictors;  /* a predictor is not 0 */
    struct tk_sample *sample; /* TK_SAMPLE of them; only while predictors are chosen */
    uint8_t *column;          /* predictors of the slots in the order of the chunk */
    uint32_t column_count, column_room;
    struct tk_chunk *link; /* in the list of its stream, or of those that can be used again */
};

struct tk_stream_chunks {
    uint64_t frontier;     /* sequence of the first buffer that no chunk owns */
    uint32_t thread, kind; /* of its first chunk, and so of all */
    uint32_t ordinals;     /* chunks begun */
    struct tk_chunk *open; /* in the order of the stream */
};

struct tk_encoder {
    pthread_rwlock_t tables; /* read: while records are encoded; write: while an image is added */
    struct tk_range *ranges;
    uint32_t range_count;
    struct tk_id *ids;
    uint64_t *iterations;          /* by id, of runs; added to atomically */
    uint32_t id_count, slot_count; /* slot_count: of all ids */
    uint32_t images;               /* of the pool that have been added */
    uint32_t capacity;             /* records and words of a chunk, one buffer more than the limit */
    uint32_t limit;                /* of records and words, from which on a chunk is complete */
    uint32_t most;                 /* words that a record has */
    uint32_t lanes;                /* words that are encoded at once; the slots of a record are a multiple of it */

    pthread_mutex_t lock; /* over what follows, and over the chunks that are not busy */
    pthread_cond_t work;  /* there may be something to do, for a worker that waits */
    uint32_t workers;
    uint32_t active, watching, waiting; /* workers that encode, that sleep until the program fills a buffer, others */
    uint32_t finished;
    uint32_t cursor;                  /* buffer of the pool where to look first */
    uint32_t unwoken;                 /* buffers freed since the program was woken */
    struct tk_stream_chunks *streams; /* by number */
    uint32_t stream_count;
    struct tk_chunk *idle; /* chunks to be used again */
    uint64_t unknown;      /* words that no image explained */
    uint64_t *counts;      /* by id: records of finished chunks */
    uint32_t *row_ids;     /* by row */
    uint32_t rows, slots;  /* given out */
    uint32_t failed;       /* out of memory */
    uint64_t stuck;        /* nanoseconds: since when the program has had no buffer and no worker one to encode */

    struct tk_trim *trims; /* words that are left out (encoder_trim.c), by image */
    uint32_t trim_count;
    uint32_t trims_any;             /* records or words are left out */
    uint8_t dropped[TK_FIRST_PATH]; /* records of these events are left out */
};

/* Slots of a record. */
static inline uint32_t tk_slots_of(const struct tk_encoder *encoder, uint32_t arity)
{
    uint32_t lanes = arity > 4 ? encoder->lanes : encoder->lanes / 2;
    lanes += !lanes;
    return arity == TK_NEVER ? 0 : (arity + lanes - 1) / lanes * lanes;
}

int tk_damage(struct tk_view *view);
void tk_allocate_ahead(struct tk_view *view, uint32_t used);
int tk_see_buffers(struct tk_view *view);
int tk_see_images(struct tk_view *view);
int tk_see_buffer(struct tk_view *view, uint32_t number, struct tk_filled *filled);
int tk_is_pristine(const struct tk_view *view);
size_t tk_encode(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                 uint32_t epoch);
size_t tk_encode_trimmed(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                         uint32_t epoch);
void tk_encoder_free_trims(struct tk_encoder *encoder);
struct tk_chunk *tk_chunk_begin(struct tk_encoder *encoder, uint32_t stream, uint32_t thread, uint32_t kind);
struct tk_stream_chunks *tk_stream_chunks(struct tk_encoder *encoder, uint32_t stream);
uint32_t tk_vector_lanes(void);
void tk_choose_predictors(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                          uint32_t epoch);
int tk_list_predictors(struct tk_encoder *encoder, struct tk_chunk *chunk);
void tk_free_sample(struct tk_chunk *chunk);
int tk_chunk_room(const struct tk_encoder *encoder, struct tk_chunk *chunk);
void tk_chunk_detach(struct tk_encoder *encoder, struct tk_chunk *chunk);

#endif
