/* The encoder of records for any processor: raw records in, columns out. formats/chunk_codec.py is its reference,
 * to the byte. What it writes, encoder_vector.c writes too. */
#include "encoder_record.h"

#include <string.h>

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
    uint64_t recent[TK_WINDOW]; /* word number n at n % TK_WINDOW */
    uint32_t next;              /* word */
    uint8_t *residuals;         /* the next one */
};

/* The code of a word. `calm`: most words go on with their stride, so it pays to look first; else nothing branches, and
 * a residual is written in any case and passed only if the code has one. */
TK_INLINE uint32_t put_word(struct tk_writing *to, struct tk_slot *slot, uint8_t predictor, uint64_t word, int calm)
{
    const struct tk_slot old = *slot;
    const uint64_t reference = to->recent[(to->next - 1 - predictor) % TK_WINDOW];
    const uint64_t stride = word - old.last, shifted = (reference - old.reference) << (predictor >> TK_SHIFT_AT);
    to->recent[to->next++ % TK_WINDOW] = word;
    *slot = (struct tk_slot){word, stride, reference};
    if (calm && stride == old.stride)
        return 0;
    const uint64_t bits = stride ^ (uint64_t)((int64_t)stride >> 63);
    uint32_t code = residual.code[63 ^ __builtin_clzll(bits << 1 | 1)];
    code = stride == shifted ? 1 : code;
    code = stride == old.stride ? 0 : code;
    memcpy(to->residuals, &stride, sizeof stride);
    to->residuals += residual.bytes[code];
    return code;
}

TK_INLINE size_t encode(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                        uint32_t epoch, int calm)
{
    static const struct tk_range nothing;
    const struct tk_range *range = &nothing; /* the image of the last record */
    struct tk_columns at = chunk->at;
    struct tk_writing to = {.residuals = at.residuals};
    memcpy(to.recent, chunk->recent, sizeof to.recent);
    uint32_t(*const successors)[4] = chunk->successors;
    struct tk_slot *const slots = chunk->slots;
    const uint64_t *here = words, *const end = words + count;
    uint32_t *next = successors[chunk->previous_row]; /* the ids that followed the last one */

    while (here < end) {
        const uint32_t id = tk_number(encoder, &range, *here, epoch);
        const struct tk_id *const known = &encoder->ids[id];
        const uint32_t arity = known->arity;
        if (TK_UNLIKELY(arity == TK_NEVER || end - here <= (ptrdiff_t)arity))
            break;
        const uint64_t place = tk_place(encoder, id);
        uint32_t codes = tk_put_id(&at.literals, next, id) << 6;
        next = successors[0] + (uint32_t)place;
        next[TK_RECORDS]++;

        /* `here` moves on with the branches, which are predicted, and not by `arity`, which has to be waited for. */
        struct tk_slot *slot = slots + (place >> 32);
        const uint8_t *predictor = chunk->predictors + (place >> 32);
        here = tk_after(here);
        if (arity > 0) {
            codes |= put_word(&to, slot, predictor[0], *here, calm);
            here = tk_after(here);
        }
        if (arity > 1) {
            codes |= put_word(&to, slot + 1, predictor[1], *here, calm) << 3;
            here = tk_after(here);
        } else if (TK_UNLIKELY(known->run)) {
            __atomic_fetch_add(&encoder->iterations[id], here[-1], __ATOMIC_RELAXED);
        }
        *at.symbols++ = (uint8_t)codes;
        for (uint32_t k = 2; k < arity; k++) {
            codes = put_word(&to, slot + k, predictor[k], *here, calm);
            here = tk_after(here);
            if (++k < arity) {
                codes |= put_word(&to, slot + k, predictor[k], *here, calm) << 3;
                here = tk_after(here);
            }
            *at.codes++ = (uint8_t)codes;
        }
    }
    at.residuals = to.residuals;
    const uint32_t records = (uint32_t)(at.symbols - chunk->at.symbols);
    chunk->words += (uint32_t)(here - words) - records;
    chunk->records += records;
    chunk->previous_row = (uint32_t)((next - successors[0]) / 4);
    for (uint32_t k = 0; k < TK_WINDOW; k++)
        chunk->recent[k] = to.recent[(to.next + k) % TK_WINDOW];
    chunk->at = at;
    return (size_t)(here - words);
}

/* Encode whole records from `words`; returns how many words that took. It stops early at a zero, at a record that is
 * cut short, and at an id that no image explains. */
TK_EXPORT size_t tk_encode(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                           uint32_t epoch)
{
    pthread_rwlock_rdlock(&encoder->tables);
    size_t taken = count;
    if (!tk_chunk_room(encoder, chunk)) {
        __atomic_store_n(&encoder->failed, 1, __ATOMIC_RELAXED);
    } else {
        if (!chunk->records)
            tk_choose_predictors(encoder, chunk, words, count, epoch);
        const uint8_t *residuals = chunk->at.residuals;
        const uint32_t before = chunk->words;
        taken = encoder->lanes > 1 ? tk_encode_vector(encoder, chunk, words, count, epoch)
                : chunk->calm      ? encode(encoder, chunk, words, count, epoch, 1)
                                   : encode(encoder, chunk, words, count, epoch, 0);
        size_t bytes = (size_t)(chunk->at.residuals - residuals);
        chunk->calm = bytes * 5 < (size_t)(chunk->words - before) * 4; /* from 0.8 bytes a word on */
    }
    pthread_rwlock_unlock(&encoder->tables);
    return taken;
}

/* The columns' element counts, in the order of the payload. */
static void count_columns(const struct tk_chunk *chunk, uint32_t counts[5])
{
    counts[0] = (uint32_t)(chunk->at.literals - chunk->base.literals);
    counts[1] = (uint32_t)(chunk->at.symbols - chunk->base.symbols);
    counts[2] = (uint32_t)(chunk->at.codes - chunk->base.codes);
    counts[3] = (uint32_t)(chunk->at.residuals - chunk->base.residuals) + TK_PADDING;
    counts[4] = chunk->column_count;
}

/* Bytes of a finished chunk's payload; 0 without memory. */
TK_EXPORT size_t tk_chunk_bytes(struct tk_encoder *encoder, struct tk_chunk *chunk)
{
    uint32_t counts[5];
    if (!tk_list_predictors(encoder, chunk))
        return 0;
    count_columns(chunk, counts);
    return 64 + (size_t)counts[0] * 4 + counts[1] + counts[2] + counts[3] + counts[4];
}

/* Write the payload to `out`, tk_chunk_bytes of it. */
TK_EXPORT void tk_chunk_write(const struct tk_chunk *chunk, char *out)
{
    uint32_t header[16] = {1, chunk->thread, chunk->kind, chunk->records, chunk->words};
    uint32_t *const counts = header + 5;
    count_columns(chunk, counts);
    memset(chunk->at.residuals, 0, TK_PADDING);
    memcpy(out, header, sizeof header);
    out += sizeof header;
    memcpy(out, chunk->base.literals, (size_t)counts[0] * 4);
    out += (size_t)counts[0] * 4;
    memcpy(out, chunk->base.symbols, counts[1]);
    out += counts[1];
    memcpy(out, chunk->base.codes, counts[2]);
    out += counts[2];
    memcpy(out, chunk->base.residuals, counts[3]);
    out += counts[3];
    memcpy(out, chunk->column, counts[4]);
}
