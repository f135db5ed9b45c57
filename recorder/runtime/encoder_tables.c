/* The encoder's tables: what is known of record ids, and the memory of chunks. */
#define _GNU_SOURCE
#include "encoder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RESET_BY_MEMSET (8u << 20) /* bytes; larger tables are given back to the kernel instead */

/* Zeroed memory that costs nothing until it is touched. */
static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int grow(void **memory, size_t old_bytes, size_t bytes)
{
    void *grown = *memory ? mremap(*memory, old_bytes, bytes, MREMAP_MAYMOVE) : reserve(bytes);
    if (!grown || grown == MAP_FAILED)
        return 0;
    *memory = grown;
    return 1;
}

static void clear(void *memory, size_t bytes)
{
    if (bytes <= RESET_BY_MEMSET || madvise(memory, bytes, MADV_DONTNEED) != 0)
        memset(memory, 0, bytes);
}

/* Bytes of the columns of `capacity` records and words. */
static size_t column_bytes(size_t capacity)
{
    return capacity * 14 + TK_PADDING + 64; /* and what the vector encoder writes beyond its residuals */
}

static int grow_array(void **array, size_t elements, size_t size)
{
    void *grown = realloc(*array, elements * size);
    if (grown)
        *array = grown;
    return grown != NULL;
}

static void free_chunks(const struct tk_encoder *encoder, struct tk_chunk *chunk)
{
    while (chunk) {
        struct tk_chunk *following = chunk->link;
        munmap(chunk->base.literals, column_bytes(encoder->capacity));
        if (chunk->rows)
            munmap(chunk->successors, chunk->rows * sizeof *chunk->successors);
        if (chunk->slot_count)
            munmap(chunk->slots, chunk->slot_count * sizeof *chunk->slots);
        if (chunk->slot_count)
            munmap(chunk->predictors, chunk->slot_count);
        tk_free_sample(chunk);
        free(chunk->column);
        free(chunk);
        chunk = following;
    }
}

/* No worker uses it any more. */
TK_EXPORT void tk_encoder_free(struct tk_encoder *encoder)
{
    for (uint32_t number = 0; number < encoder->stream_count; number++)
        free_chunks(encoder, encoder->streams[number].open);
    free_chunks(encoder, encoder->idle);
    tk_encoder_free_trims(encoder);
    free(encoder->streams);
    free(encoder->ranges);
    free(encoder->ids);
    free(encoder->iterations);
    free(encoder->counts);
    free(encoder->row_ids);
    free(encoder);
}

/* Room for `ids` numbers in the tables that they index. */
static int room_for_ids(struct tk_encoder *encoder, uint32_t ids)
{
    uint32_t old = encoder->id_count;
    if (!grow_array((void **)&encoder->ids, ids, sizeof *encoder->ids) ||
        !grow_array((void **)&encoder->iterations, ids, sizeof *encoder->iterations) ||
        !grow_array((void **)&encoder->counts, ids, sizeof *encoder->counts) ||
        !grow_array((void **)&encoder->row_ids, ids + 1, sizeof *encoder->row_ids))
        return 0;
    memset(encoder->iterations + old, 0, (ids - old) * sizeof *encoder->iterations);
    memset(encoder->counts + old, 0, (ids - old) * sizeof *encoder->counts);
    encoder->id_count = ids;
    return 1;
}

static void init_locks(struct tk_encoder *encoder)
{
    pthread_rwlockattr_t writers_first;
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&encoder->tables, &writers_first);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&encoder->work, &monotonic);
    pthread_mutex_init(&encoder->lock, NULL);
}

static void note_arity(struct tk_encoder *encoder, uint32_t id)
{
    uint32_t arity = encoder->ids[id].arity;
    encoder->slot_count += tk_slots_of(encoder, arity) + (arity > 4 ? 4 : 0);
    if (arity != TK_NEVER && arity > encoder->most)
        encoder->most = arity;
}

/* `limit`: records and words from which on a chunk is complete; `buffer_words`: the most that one call may add;
 * `vector`: use the processor's vectors, if it has those that are needed. */
TK_EXPORT struct tk_encoder *tk_encoder_new(uint32_t limit, uint32_t buffer_words, uint32_t workers, int vector)
{
    struct tk_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder)
        return NULL;
    init_locks(encoder);
    encoder->limit = limit;
    encoder->capacity = (limit + buffer_words + 7) & ~7u;
    encoder->workers = workers;
    encoder->lanes = vector ? tk_vector_lanes() : 1;
    encoder->rows = 1; /* row 0: before the first record of a chunk */
    if (!room_for_ids(encoder, TK_FIRST_PATH)) {
        tk_encoder_free(encoder);
        return NULL;
    }
    for (uint32_t code = 0; code < TK_FIRST_PATH; code++) {
        uint32_t words = TK_EVENT_WORDS[code];
        encoder->ids[code] = (struct tk_id){.arity = words == TK_EVENT_NEVER ? TK_NEVER : (uint16_t)words};
        note_arity(encoder, code);
    }
    return encoder;
}

static uint32_t add_ids(struct tk_encoder *encoder, uint64_t low, uint32_t span, const uint16_t *arities,
                        const uint8_t *runs, uint32_t loaded)
{
    uint32_t first = encoder->id_count;
    if (!grow_array((void **)&encoder->ranges, encoder->range_count + 1, sizeof *encoder->ranges) ||
        !room_for_ids(encoder, first + span))
        return 0;
    for (uint32_t k = 0; k < span; k++) {
        encoder->ids[first + k] = (struct tk_id){.arity = arities[k], .run = arities[k] == 1 && runs[k]};
        note_arity(encoder, first + k);
    }
    encoder->ranges[encoder->range_count++] = (struct tk_range){low, span, first, loaded, 0};
    encoder->images++;
    for (uint32_t number = 0; number < encoder->stream_count; number++)
        for (struct tk_chunk *chunk = encoder->streams[number].open; chunk; chunk = chunk->link)
            chunk->stalled = 0;
    return first;
}

/* Add an image: arities[k] is that of id low + k (TK_NEVER: unused), runs[k] whether it is a run, of one word. The
 * number of its first path, 0 without memory. */
TK_EXPORT uint32_t tk_encoder_add(struct tk_encoder *encoder, uint64_t low, uint32_t span, const uint16_t *arities,
                                  const uint8_t *runs, uint32_t loaded)
{
    pthread_rwlock_wrlock(&encoder->tables);
    pthread_mutex_lock(&encoder->lock);
    uint32_t first = add_ids(encoder, low, span, arities, runs, loaded);
    pthread_cond_broadcast(&encoder->work);
    pthread_mutex_unlock(&encoder->lock);
    pthread_rwlock_unlock(&encoder->tables);
    return first;
}

static void add_counts(const struct tk_encoder *encoder, const struct tk_chunk *chunk, uint64_t *counts, uint32_t ids)
{
    uint32_t rows = chunk->rows < encoder->rows ? (uint32_t)chunk->rows : encoder->rows;
    for (uint32_t row = 1; row < rows; row++)
        if (encoder->row_ids[row] < ids)
            counts[encoder->row_ids[row]] += chunk->successors[row][TK_RECORDS];
}

/* Records encoded of each number so far, but for those of chunks that are just being filled; `ids` of them. */
TK_EXPORT void tk_encoder_counts(struct tk_encoder *encoder, uint64_t *counts, uint32_t ids)
{
    pthread_mutex_lock(&encoder->lock);
    memcpy(counts, encoder->counts, ids * sizeof *counts);
    for (uint32_t number = 0; number < encoder->stream_count; number++)
        for (const struct tk_chunk *chunk = encoder->streams[number].open; chunk; chunk = chunk->link)
            if (!chunk->busy)
                add_counts(encoder, chunk, counts, ids);
    pthread_mutex_unlock(&encoder->lock);
}

/* Iterations that the runs of each number encoded so far have; `ids` of them. */
TK_EXPORT void tk_encoder_iterations(struct tk_encoder *encoder, uint64_t *iterations, uint32_t ids)
{
    pthread_rwlock_rdlock(&encoder->tables);
    memcpy(iterations, encoder->iterations, ids * sizeof *iterations);
    pthread_rwlock_unlock(&encoder->tables);
}

/* Words that are encoded at once: 1 without vectors. */
TK_EXPORT uint32_t tk_encoder_lanes(const struct tk_encoder *encoder)
{
    return encoder->lanes;
}

TK_EXPORT uint32_t tk_encoder_ids(const struct tk_encoder *encoder)
{
    return encoder->id_count;
}

TK_EXPORT uint64_t tk_encoder_unknown(const struct tk_encoder *encoder)
{
    return encoder->unknown;
}

/* One reservation holds all columns, the widest first, so that each is aligned. */
static int allot_columns(struct tk_columns *columns, size_t capacity)
{
    char *memory = reserve(column_bytes(capacity));
    if (!memory)
        return 0;
    columns->literals = (uint32_t *)memory;
    columns->symbols = (uint8_t *)(memory + 4 * capacity);
    columns->codes = columns->symbols + capacity;
    columns->residuals = columns->codes + capacity;
    return 1;
}

/* What the encoder knows of a stream, made when it is first seen; NULL without memory. The caller holds the lock. */
struct tk_stream_chunks *tk_stream_chunks(struct tk_encoder *encoder, uint32_t stream)
{
    if (stream >= encoder->stream_count) {
        size_t count = (size_t)stream + stream / 2 + 64;
        if (!grow_array((void **)&encoder->streams, count, sizeof *encoder->streams))
            return NULL;
        memset(encoder->streams + encoder->stream_count, 0, (count - encoder->stream_count) * sizeof *encoder->streams);
        encoder->stream_count = (uint32_t)count;
    }
    return &encoder->streams[stream];
}

static struct tk_chunk *new_chunk(struct tk_encoder *encoder)
{
    struct tk_chunk *chunk = encoder->idle;
    if (chunk) {
        encoder->idle = chunk->link;
        return chunk;
    }
    chunk = calloc(1, sizeof *chunk);
    if (chunk && !allot_columns(&chunk->base, encoder->capacity)) {
        free(chunk);
        return NULL;
    }
    return chunk;
}

/* A new chunk at the end of a stream; NULL without memory. The caller holds the lock. */
struct tk_chunk *tk_chunk_begin(struct tk_encoder *encoder, uint32_t stream, uint32_t thread, uint32_t kind)
{
    struct tk_stream_chunks *chunks = tk_stream_chunks(encoder, stream);
    struct tk_chunk *chunk = chunks ? new_chunk(encoder) : NULL, **last = chunks ? &chunks->open : NULL;
    if (!chunk)
        return NULL;
    *chunk = (struct tk_chunk){.stream = stream,
                               .thread = thread,
                               .kind = kind,
                               .ordinal = chunks->ordinals++,
                               .base = chunk->base,
                               .at = chunk->base,
                               .successors = chunk->successors,
                               .rows = chunk->rows,
                               .slots = chunk->slots,
                               .predictors = chunk->predictors,
                               .slot_count = chunk->slot_count,
                               .sample = chunk->sample,
                               .column = chunk->column,
                               .column_room = chunk->column_room};
    while (*last)
        last = &(*last)->link;
    return *last = chunk;
}

/* Take a chunk out of its stream's list: it is whole, and the caller's alone. The caller holds the lock. */
void tk_chunk_detach(struct tk_encoder *encoder, struct tk_chunk *chunk)
{
    struct tk_chunk **link = &encoder->streams[chunk->stream].open;
    while (*link != chunk)
        link = &(*link)->link;
    *link = chunk->link;
    chunk->link = NULL;
    add_counts(encoder, chunk, encoder->counts, encoder->id_count);
    encoder->unknown += chunk->unknown;
}

/* Room for the ids of images that were added since; old rows keep their place. */
int tk_chunk_room(const struct tk_encoder *encoder, struct tk_chunk *chunk)
{
    size_t rows = (size_t)encoder->id_count + 1, slots = encoder->slot_count + 8; /* vectors look beyond */
    if (TK_LIKELY(chunk->rows >= rows && chunk->slot_count >= slots))
        return 1;
    if (!grow((void **)&chunk->successors, chunk->rows * sizeof *chunk->successors, rows * sizeof *chunk->successors))
        return 0;
    chunk->rows = rows;
    if (!grow((void **)&chunk->slots, chunk->slot_count * sizeof *chunk->slots, slots * sizeof *chunk->slots))
        return 0;
    if (!grow((void **)&chunk->predictors, chunk->slot_count, slots))
        return 0;
    chunk->slot_count = slots;
    return 1;
}

/* The chunk was written: its memory can be used for another one. */
TK_EXPORT void tk_chunk_recycle(struct tk_encoder *encoder, struct tk_chunk *chunk)
{
    /* Rows and slots that are given out meanwhile are none of this chunk's. */
    size_t rows = __atomic_load_n(&encoder->rows, __ATOMIC_RELAXED);
    size_t slots = __atomic_load_n(&encoder->slots, __ATOMIC_RELAXED);
    clear(chunk->successors, (rows < chunk->rows ? rows : chunk->rows) * sizeof *chunk->successors);
    slots = slots < chunk->slot_count ? slots : chunk->slot_count;
    clear(chunk->slots, slots * sizeof *chunk->slots);
    if (chunk->has_predictors)
        clear(chunk->predictors, slots);
    pthread_mutex_lock(&encoder->lock);
    chunk->link = encoder->idle;
    encoder->idle = chunk;
    pthread_mutex_unlock(&encoder->lock);
}

/* The chunk that a stream fills outside of a pool; begun if there is none, NULL without memory. */
TK_EXPORT struct tk_chunk *tk_encoder_chunk(struct tk_encoder *encoder, uint32_t stream, uint32_t thread, uint32_t kind)
{
    pthread_mutex_lock(&encoder->lock);
    struct tk_stream_chunks *chunks = tk_stream_chunks(encoder, stream);
    struct tk_chunk *chunk = chunks && chunks->open ? chunks->open : tk_chunk_begin(encoder, stream, thread, kind);
    pthread_mutex_unlock(&encoder->lock);
    return chunk;
}

/* Take the next chunk that is not finished, by streams; NULL if there is none. */
TK_EXPORT struct tk_chunk *tk_encoder_rest(struct tk_encoder *encoder)
{
    struct tk_chunk *chunk = NULL;
    pthread_mutex_lock(&encoder->lock);
    for (uint32_t number = 0; number < encoder->stream_count && !chunk; number++)
        chunk = encoder->streams[number].open;
    if (chunk)
        tk_chunk_detach(encoder, chunk);
    pthread_mutex_unlock(&encoder->lock);
    return chunk;
}

/* What Python reads of a chunk. */
TK_EXPORT void tk_chunk_facts(const struct tk_chunk *chunk, uint32_t facts[3])
{
    facts[0] = chunk->stream;
    facts[1] = chunk->ordinal;
    facts[2] = chunk->records;
}
