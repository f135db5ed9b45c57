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

/* Bytes of the columns of `capacity` records and words. */
static size_t column_bytes(size_t capacity)
{
    return capacity * 14 + TK_PADDING;
}

TK_EXPORT void tk_encoder_free(struct tk_encoder *encoder)
{
    for (uint32_t number = 0; number < encoder->stream_count; number++) {
        struct tk_encoded *stream = encoder->streams[number];
        if (!stream)
            continue;
        munmap(stream->base.literals, column_bytes(encoder->capacity));
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

/* The rank of `id` among the three ids that followed the last one, 3 and a literal if it is none of them; it moves to the
 * front. If it is not the first, nobody can foresee which it is: there nothing branches. */
static inline __attribute__((always_inline)) uint32_t put_id(uint32_t **literals, uint32_t *next, uint32_t id)
{
    const uint32_t a = next[0], b = next[1], c = next[2];
    if (TK_LIKELY(a == id))
        return 0;
    const uint32_t rank = b == id ? 1 : c == id ? 2 : 3;
    next[0] = id;
    next[1] = a;
    next[2] = rank > 1 ? b : c;
    **literals = id;
    *literals += rank == 3;
    return rank;
}

/* code: of the narrowest residual that holds a difference, by the highest bit that is not its sign, plus 1.
 * bytes: of the residual of a code. */
static struct {
    uint8_t code[64], bytes[8];
} residual = {.bytes = {0, 0, 1, 2, 3, 4, 6, 8}};

static __attribute__((constructor)) void fill_codes(void)
{
    for (uint32_t bits = 0; bits < 64; bits++) { /* and one for the sign */
        uint8_t code = 2;
        while (bits + 1 > 8u * residual.bytes[code])
            code++;
        residual.code[bits] = code;
    }
}

struct tk_writing {
    uint64_t previous;  /* word */
    uint8_t *residuals; /* the next one */
};

/* The code of a word. `calm`: most words go on with their stride, so it pays to look first; else nothing branches, and a
 * residual is written in any case and passed only if the code has one. */
static inline __attribute__((always_inline)) uint32_t put_word(struct tk_writing *to, struct tk_slot *slot,
                                                               uint64_t word, int calm)
{
    const struct tk_slot old = *slot;
    const uint64_t stride = word - old.last, offset = word - to->previous;
    to->previous = word;
    *slot = (struct tk_slot){word, stride, offset};
    if (calm && stride == old.stride)
        return 0;
    const uint64_t bits = stride ^ (uint64_t)((int64_t)stride >> 63);
    uint32_t code = residual.code[63 ^ __builtin_clzll(bits << 1 | 1)];
    code = offset == old.offset ? 1 : code;
    code = stride == old.stride ? 0 : code;
    memcpy(to->residuals, &stride, sizeof stride);
    to->residuals += residual.bytes[code];
    return code;
}

/* The next word; the compiler is not to add up several steps. */
static inline __attribute__((always_inline)) const uint64_t *after(const uint64_t *word)
{
    word++;
    __asm__("" : "+r"(word));
    return word;
}

static inline __attribute__((always_inline)) size_t encode(const struct tk_encoder *encoder, struct tk_encoded *stream,
                                                           const uint64_t *words, size_t count, uint32_t epoch,
                                                           int calm)
{
    static const struct tk_range nothing;
    const struct tk_range *range = &nothing; /* the image of the last record */
    struct tk_columns at = stream->at;
    struct tk_writing to = {stream->previous_word, at.residuals};
    struct tk_id *const ids = encoder->ids;
    uint32_t(*const successors)[4] = stream->successors;
    struct tk_slot *const slots = stream->slots;
    const uint64_t *here = words, *const end = words + count;
    uint32_t *next = successors[stream->previous_id]; /* the ids that followed the last one */

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
        if (TK_UNLIKELY(arity == TK_NEVER || end - here <= (ptrdiff_t)arity))
            break;
        known->count++;
        uint32_t codes = put_id(&at.literals, next, id) << 6;
        next = successors[id];

        /* `here` moves on with the branches, which are foreseen, and not by `arity`, which has to be waited for. */
        struct tk_slot *slot = slots + known->first_slot;
        here = after(here);
        if (arity > 0) {
            codes |= put_word(&to, slot, *here, calm);
            here = after(here);
        }
        if (arity > 1) {
            codes |= put_word(&to, slot + 1, *here, calm) << 3;
            here = after(here);
        } else if (TK_UNLIKELY(known->run)) {
            encoder->iterations[id] += to.previous;
        }
        *at.symbols++ = (uint8_t)codes;
        for (uint32_t k = 2; k < arity; k++) {
            codes = put_word(&to, slot + k, *here, calm);
            here = after(here);
            if (++k < arity) {
                codes |= put_word(&to, slot + k, *here, calm) << 3;
                here = after(here);
            }
            *at.codes++ = (uint8_t)codes;
        }
    }
    at.residuals = to.residuals;
    const uint32_t records = (uint32_t)(at.symbols - stream->at.symbols);
    stream->words += (uint32_t)(here - words) - records;
    stream->records += records;
    stream->previous_id = (uint32_t)((next - successors[0]) / 4);
    stream->previous_word = to.previous;
    stream->at = at;
    return (size_t)(here - words);
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
    const uint8_t *residuals = stream->at.residuals;
    const uint32_t before = stream->words;
    size_t taken = stream->calm ? encode(encoder, stream, words, count, epoch, 1)
                                : encode(encoder, stream, words, count, epoch, 0);
    size_t bytes = (size_t)(stream->at.residuals - residuals);
    stream->calm = bytes * 5 < (size_t)(stream->words - before) * 4; /* from 0.8 bytes a word on */
    return taken;
}

/* The columns' element counts, in the order of the payload. */
static void count_columns(const struct tk_encoded *stream, uint32_t counts[4])
{
    counts[0] = (uint32_t)(stream->at.literals - stream->base.literals);
    counts[1] = (uint32_t)(stream->at.symbols - stream->base.symbols);
    counts[2] = (uint32_t)(stream->at.codes - stream->base.codes);
    counts[3] = (uint32_t)(stream->at.residuals - stream->base.residuals) + TK_PADDING;
}

/* Bytes of the payload of the stream's chunk. */
TK_EXPORT size_t tk_chunk_bytes(const struct tk_encoded *stream)
{
    uint32_t counts[4];
    count_columns(stream, counts);
    return 64 + (size_t)counts[0] * 4 + counts[1] + counts[2] + counts[3];
}

TK_EXPORT uint32_t tk_chunk_records(const struct tk_encoded *stream)
{
    return stream->records;
}

/* Write the payload to `out` (tk_chunk_bytes of it) and begin the stream's next chunk. */
TK_EXPORT void tk_chunk_take(struct tk_encoded *stream, char *out)
{
    uint32_t header[16] = {1, stream->thread, stream->kind, stream->records, stream->words};
    uint32_t *const counts = header + 5;
    count_columns(stream, counts);
    memset(stream->at.residuals, 0, TK_PADDING);
    memcpy(out, header, sizeof header);
    out += sizeof header;
    memcpy(out, stream->base.literals, (size_t)counts[0] * 4);
    out += (size_t)counts[0] * 4;
    memcpy(out, stream->base.symbols, counts[1]);
    out += counts[1];
    memcpy(out, stream->base.codes, counts[2]);
    out += counts[2];
    memcpy(out, stream->base.residuals, counts[3]);
    stream->at = stream->base;
    stream->records = stream->words = 0;
    stream->previous_id = 0;
    stream->previous_word = 0;
    clear(stream->successors, stream->ids * sizeof *stream->successors);
    clear(stream->slots, stream->slot_count * sizeof *stream->slots);
}
