/* What the two encoders of records (encoder_scalar.c, encoder_vector.c) share. */
#ifndef TRACEKIT_ENCODER_RECORD_H
#define TRACEKIT_ENCODER_RECORD_H

#include "encoder.h"

const struct tk_range *tk_find_range(const struct tk_encoder *encoder, uint64_t id, uint32_t epoch);
uint64_t tk_give_place(struct tk_encoder *encoder, uint32_t id);
/* What the sample of a chunk says of one slot. */
struct tk_sample {
    uint64_t last, stride, references[TK_WINDOW];
    uint16_t hits[TK_SHIFTS][TK_WINDOW]; /* words that a predictor would have predicted */
    uint32_t slot;
};

void tk_note_words_vector(struct tk_sample *samples, const uint64_t *words, uint32_t count, uint64_t recent[TK_WINDOW]);
size_t tk_encode_vector(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                        uint32_t epoch);

/* The number that `raw` stands for, by the image of the last record or another one, which becomes `*range`; 0, which is
 * no record's, if none explains it. */
TK_INLINE uint32_t tk_number(const struct tk_encoder *encoder, const struct tk_range **range, uint64_t raw,
                             uint32_t epoch)
{
    uint64_t index = raw - (*range)->low;
    if (TK_LIKELY(index < (*range)->span))
        return (*range)->first + (uint32_t)index;
    if (raw < TK_FIRST_PATH)
        return (uint32_t)raw;
    const struct tk_range *other = tk_find_range(encoder, raw, epoch);
    if (!other)
        return 0;
    *range = other;
    return other->first + (uint32_t)(raw - other->low);
}

/* Where the row and the slots of a number are (struct tk_id). */
TK_INLINE uint64_t tk_place(struct tk_encoder *encoder, uint32_t id)
{
    const struct tk_id *known = &encoder->ids[id];
    return TK_LIKELY(__atomic_load_n(&known->seen, __ATOMIC_ACQUIRE)) ? known->place : tk_give_place(encoder, id);
}

/* The rank of `id` among the three ids that followed the last one, 3 and a literal if it is none of them; it moves to
 * the front. If it is not the first, nobody can predict which it is: there nothing branches. */
TK_INLINE uint32_t tk_put_id(uint32_t **literals, uint32_t *next, uint32_t id)
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

/* The next word; the compiler is not to add up several steps. */
TK_INLINE const uint64_t *tk_after(const uint64_t *word)
{
    word++;
    __asm__("" : "+r"(word));
    return word;
}

#endif
