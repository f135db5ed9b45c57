/* The chunk encoder: raw records in, columns out. formats/stream.py is its reference, to the byte. */
#define _GNU_SOURCE
#include "encoder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define RESET_BY_MEMSET (1u << 20) /* bytes; larger tables are given back to the kernel instead */

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

TK_EXPORT void tk_encoder_free(struct tk_encoder *encoder)
{
    for (uint32_t number = 0; number < encoder->stream_count; number++) {
        struct tk_encoded *stream = encoder->streams[number];
        if (!stream)
            continue;
        munmap(stream->base.d8, (size_t)encoder->capacity * 21);
        if (stream->ids)
            munmap(stream->successors, stream->ids * sizeof *stream->successors);
        if (stream->slot_count)
            munmap(stream->slots, stream->slot_count * sizeof *stream->slots);
        free(stream);
    }
    free(encoder->streams);
    free(encoder->ranges);
    free(encoder->ids);
    free(encoder->iterations);
    free(encoder);
}

/* `limit`: records and words from which on a chunk is complete; `buffer_words`: the most that one call may add. */
TK_EXPORT struct tk_encoder *tk_encoder_new(uint32_t limit, uint32_t buffer_words)
{
    struct tk_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder)
        return NULL;
    encoder->limit = limit;
    encoder->capacity = (limit + buffer_words + 7) & ~7u;
    encoder->id_count = TK_FIRST_PATH;
    encoder->ids = calloc(TK_FIRST_PATH, sizeof *encoder->ids);
    encoder->iterations = calloc(TK_FIRST_PATH, sizeof *encoder->iterations);
    if (!encoder->ids || !encoder->iterations) {
        free(encoder->ids);
        free(encoder->iterations);
        free(encoder);
        return NULL;
    }
    for (uint32_t code = 0; code < TK_FIRST_PATH; code++) {
        uint32_t words = TK_EVENT_WORDS[code];
        encoder->ids[code] = (struct tk_id){encoder->slot_count, words == TK_EVENT_NEVER ? TK_NEVER : words, 0, 0};
        encoder->slot_count += words == TK_EVENT_NEVER ? 0 : words;
    }
    return encoder;
}

/* Add an image: arities[k] is that of id low + k (TK_NEVER: unused), runs[k] whether it is a run, of one word. The
 * number of its first path, 0 without memory. */
TK_EXPORT uint32_t tk_encoder_add(struct tk_encoder *encoder, uint64_t low, uint32_t span, const uint16_t *arities,
                                  const uint8_t *runs, uint32_t loaded)
{
    uint32_t first = encoder->id_count;
    void *ids = realloc(encoder->ids, ((size_t)first + span) * sizeof *encoder->ids);
    if (ids)
        encoder->ids = ids;
    void *iterations = realloc(encoder->iterations, ((size_t)first + span) * sizeof *encoder->iterations);
    if (iterations)
        encoder->iterations = iterations;
    void *ranges = realloc(encoder->ranges, (encoder->range_count + 1) * sizeof *encoder->ranges);
    if (ranges)
        encoder->ranges = ranges;
    if (!ids || !iterations || !ranges)
        return 0;
    memset(encoder->iterations + first, 0, span * sizeof *encoder->iterations);
    for (uint32_t k = 0; k < span; k++) {
        encoder->ids[first + k] = (struct tk_id){encoder->slot_count, arities[k], arities[k] == 1 && runs[k], 0};
        encoder->slot_count += arities[k] == TK_NEVER ? 0 : arities[k];
    }
    encoder->id_count = first + span;
    encoder->ranges[encoder->range_count++] = (struct tk_range){low, span, first, loaded, 0};
    encoder->images++;
    for (uint32_t number = 0; number < encoder->stream_count; number++)
        if (encoder->streams[number])
            encoder->streams[number]->stalled = 0;
    return first;
}

/* Records encoded of each number so far. */
TK_EXPORT void tk_encoder_counts(const struct tk_encoder *encoder, uint64_t *counts)
{
    for (uint32_t id = 0; id < encoder->id_count; id++)
        counts[id] = encoder->ids[id].count;
}

/* Iterations that the runs of each number encoded so far have. */
TK_EXPORT void tk_encoder_iterations(const struct tk_encoder *encoder, uint64_t *iterations)
{
    memcpy(iterations, encoder->iterations, encoder->id_count * sizeof *iterations);
}

TK_EXPORT uint32_t tk_encoder_ids(const struct tk_encoder *encoder)
{
    return encoder->id_count;
}

TK_EXPORT uint64_t tk_encoder_unknown(const struct tk_encoder *encoder)
{
    return encoder->unknown;
}

/* One reservation holds all columns, widest first, so that each is aligned. */
static int allot_columns(struct tk_columns *columns, size_t capacity)
{
    char *memory = reserve(capacity * 21);
    if (!memory)
        return 0;
    columns->d8 = (uint64_t *)memory;
    columns->d4 = (int32_t *)(memory + 8 * capacity);
    columns->literals = (uint32_t *)(memory + 12 * capacity);
    columns->d2 = (int16_t *)(memory + 16 * capacity);
    columns->symbols = (uint8_t *)(memory + 18 * capacity);
    columns->codes = (uint8_t *)(memory + 19 * capacity);
    columns->d1 = (int8_t *)(memory + 20 * capacity);
    return 1;
}

/* The stream of that number, made when it is first seen; NULL without memory. */
TK_EXPORT struct tk_encoded *tk_encoder_stream(struct tk_encoder *encoder, uint32_t number, uint32_t thread,
                                               uint32_t kind)
{
    if (number >= encoder->stream_count) {
        size_t count = (size_t)number + 64;
        struct tk_encoded **streams = realloc(encoder->streams, count * sizeof *streams);
        if (!streams)
            return NULL;
        memset(streams + encoder->stream_count, 0, (count - encoder->stream_count) * sizeof *streams);
        encoder->streams = streams;
        encoder->stream_count = (uint32_t)count;
    }
    struct tk_encoded *stream = encoder->streams[number];
    if (stream)
        return stream;
    stream = calloc(1, sizeof *stream);
    if (!stream || !allot_columns(&stream->base, encoder->capacity)) {
        free(stream);
        return NULL;
    }
    stream->at = stream->base;
    stream->number = number;
    stream->thread = thread;
    stream->kind = kind;
    return encoder->streams[number] = stream;
}

/* Room for the ids of images that were added since; old rows keep their place. */
static int ensure_tables(const struct tk_encoder *encoder, struct tk_encoded *stream)
{
    if (TK_LIKELY(stream->ids >= encoder->id_count && stream->slot_count >= encoder->slot_count))
        return 1;
    size_t ids = encoder->id_count, slots = encoder->slot_count;
    if (!grow((void **)&stream->successors, stream->ids * sizeof *stream->successors, ids * sizeof *stream->successors))
        return 0;
    stream->ids = ids;
    if (!grow((void **)&stream->slots, stream->slot_count * sizeof *stream->slots, slots * sizeof *stream->slots))
        return 0;
    stream->slot_count = slots;
    return 1;
}

/* The image that owns `id` in `epoch`: the one loaded then; else the next one to be loaded (records made before its
 * constructor ran); else the last one unloaded (records made after its destructor). */
static const struct tk_range *find_range(const struct tk_encoder *encoder, uint64_t id, uint32_t epoch)
{
    const struct tk_range *later = NULL, *earlier = NULL;
    for (uint32_t index = 0; index < encoder->range_count; index++) {
        const struct tk_range *range = &encoder->ranges[index];
        if (id - range->low >= range->span)
            continue;
        if (range->loaded > epoch)
            later = later ? later : range;
        else if (range->unloaded && range->unloaded <= epoch)
            earlier = range;
        else
            return range;
    }
    return later ? later : earlier;
}

static inline __attribute__((always_inline)) uint8_t find_successor(uint32_t *next, uint32_t id)
{
    if (TK_LIKELY(next[0] == id))
        return 0;
    uint32_t a = next[0], b = next[1], c = next[2];
    next[0] = id;
    next[1] = a;
    if (b == id)
        return 1;
    next[2] = b;
    if (c == id)
        return 2;
    uint32_t d = next[3];
    next[3] = c;
    return d == id ? 3 : 4;
}

/* The differences of a word that neither prediction gave: the narrowest that holds it. Returns its code. */
static inline __attribute__((always_inline)) uint8_t put_word(struct tk_columns *at, uint64_t word, uint64_t last,
                                                              uint64_t previous)
{
    int64_t own = (int64_t)(word - last), near = (int64_t)(word - previous);
    if (own == (int8_t)own)
        return *at->d1++ = (int8_t)own, 2;
    if (near == (int8_t)near)
        return *at->d1++ = (int8_t)near, 5;
    if (own == (int16_t)own)
        return *at->d2++ = (int16_t)own, 3;
    if (near == (int16_t)near)
        return *at->d2++ = (int16_t)near, 6;
    if (own == (int32_t)own)
        return *at->d4++ = (int32_t)own, 4;
    if (near == (int32_t)near)
        return *at->d4++ = (int32_t)near, 7;
    *at->d8++ = word;
    return 8;
}

/* Encode whole records from `words`; returns how many words that took. It stops early at a zero, at a record that is
 * cut short, and at an id that no image explains. */
TK_EXPORT size_t tk_encode(struct tk_encoder *encoder, struct tk_encoded *stream, const uint64_t *words, size_t count,
                           uint32_t epoch)
{
    if (!ensure_tables(encoder, stream)) {
        encoder->failed = 1;
        return count;
    }
    static const struct tk_range nothing;
    const struct tk_range *range = &nothing; /* the image of the last record */
    struct tk_columns at = stream->at;
    struct tk_id *const ids = encoder->ids;
    uint32_t(*const successors)[4] = stream->successors;
    struct tk_slot *const slots = stream->slots;
    const uint64_t *here = words, *const end = words + count;
    uint32_t previous_id = stream->previous_id, records = 0;
    uint64_t previous = stream->previous_word;

    while (here < end) {
        uint64_t raw = *here, index = raw - range->low;
        uint32_t id;
        if (TK_LIKELY(index < range->span)) {
            id = range->first + (uint32_t)index;
        } else if (raw < TK_FIRST_PATH) {
            id = (uint32_t)raw;
        } else {
            const struct tk_range *other = find_range(encoder, raw, epoch);
            if (!other)
                break;
            range = other;
            id = range->first + (uint32_t)(raw - range->low);
        }
        struct tk_id *const known = &ids[id];
        const uint32_t arity = known->arity;
        if (TK_UNLIKELY(arity == TK_NEVER || (size_t)(end - here) <= arity))
            break;
        known->count++;
        uint8_t symbol = find_successor(successors[previous_id], id);
        if (symbol == 4)
            *at.literals++ = id;
        previous_id = id;

        struct tk_slot *slot = slots + known->first_slot;
        uint8_t any = 0;
        const uint64_t *const next = here + 1 + arity;
        uint8_t *codes = at.codes;
        for (here++; here < next; here++, slot++) {
            const uint64_t word = *here, last = slot->last;
            const int strided = word == last + slot->stride, moved = word == previous + slot->offset;
            uint8_t code = 0;
            if (TK_UNLIKELY(!(slot->favourite ? moved : strided))) {
                if (strided | moved) {
                    slot->favourite ^= 1;
                    code = 1;
                } else {
                    code = put_word(&at, word, last, previous);
                }
            }
            any |= code;
            *codes++ = code;
            slot->stride = word - last;
            slot->last = word;
            slot->offset = word - previous;
            previous = word;
        }
        if (TK_UNLIKELY(known->run))
            encoder->iterations[id] += previous;
        if (any)
            at.codes = codes;
        *at.symbols++ = symbol | (any ? 0 : 8);
        records++;
    }
    stream->words += (uint32_t)(here - words) - records;
    stream->records += records;
    stream->previous_id = previous_id;
    stream->previous_word = previous;
    stream->at = at;
    return (size_t)(here - words);
}

/* The columns' element counts, in the order of the payload. */
static void count_columns(const struct tk_encoded *stream, uint32_t counts[7])
{
    counts[0] = (uint32_t)(stream->at.d8 - stream->base.d8);
    counts[1] = (uint32_t)(stream->at.d4 - stream->base.d4);
    counts[2] = (uint32_t)(stream->at.literals - stream->base.literals);
    counts[3] = (uint32_t)(stream->at.d2 - stream->base.d2);
    counts[4] = (uint32_t)(stream->at.symbols - stream->base.symbols);
    counts[5] = (uint32_t)(stream->at.codes - stream->base.codes);
    counts[6] = (uint32_t)(stream->at.d1 - stream->base.d1);
}

/* Bytes of the payload of the stream's chunk. */
TK_EXPORT size_t tk_chunk_bytes(const struct tk_encoded *stream)
{
    static const uint8_t width[7] = {8, 4, 4, 2, 1, 1, 1};
    uint32_t counts[7];
    size_t bytes = 64;
    count_columns(stream, counts);
    for (int column = 0; column < 7; column++)
        bytes += (size_t)counts[column] * width[column];
    return bytes;
}

TK_EXPORT uint32_t tk_chunk_records(const struct tk_encoded *stream)
{
    return stream->records;
}

/* Write the payload to `out` (tk_chunk_bytes of it) and begin the stream's next chunk. */
TK_EXPORT void tk_chunk_take(struct tk_encoded *stream, char *out)
{
    uint32_t header[16] = {1, stream->thread, stream->kind, stream->records, stream->words};
    count_columns(stream, header + 5);
    memcpy(out, header, sizeof header);
    out += sizeof header;
#define PUT(column) \
    { \
        size_t bytes = (size_t)((char *)stream->at.column - (char *)stream->base.column); \
        memcpy(out, stream->base.column, bytes); \
        out += bytes; \
    }
    PUT(d8)
    PUT(d4)
    PUT(literals)
    PUT(d2)
    PUT(symbols)
    PUT(codes)
    PUT(d1)
#undef PUT
    stream->at = stream->base;
    stream->records = stream->words = 0;
    stream->previous_id = 0;
    stream->previous_word = 0;
    clear(stream->successors, stream->ids * sizeof *stream->successors);
    clear(stream->slots, stream->slot_count * sizeof *stream->slots);
}
