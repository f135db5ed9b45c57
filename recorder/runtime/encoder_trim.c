/* Words that are left out of a trace (record --without events=loads): they are dropped before records are encoded. */
#include "encoder_record.h"

#include <stdlib.h>
#include <string.h>

/* What is left of the records of the numbers from `first` on. */
struct tk_trim {
    uint32_t first, span;
    uint16_t *words, *kept; /* of each number: words in the program, words that are left */
    uint16_t *which;        /* the places of these, number by number */
    uint32_t *begin;        /* where in `which` those of each number begin */
};

static void *copy_of(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    if (to)
        memcpy(to, from, bytes);
    return to;
}

/* Leave out records of an event, or, for the numbers from `first` on, words. 0 without memory. Called before an image's
 * numbers are known to workers. */
TK_EXPORT int tk_encoder_trim(struct tk_encoder *encoder, uint32_t first, uint32_t span, const uint16_t *words,
                              const uint16_t *kept, const uint16_t *which, uint64_t all_kept)
{
    pthread_rwlock_wrlock(&encoder->tables);
    struct tk_trim *trims = realloc(encoder->trims, (encoder->trim_count + 1) * sizeof *trims);
    uint32_t *begin = malloc((span + 1) * sizeof *begin);
    int done = 0;
    if (trims) {
        encoder->trims = trims;
        struct tk_trim *trim = &trims[encoder->trim_count];
        *trim = (struct tk_trim){first,
                                 span,
                                 copy_of(words, span * sizeof *words),
                                 copy_of(kept, span * sizeof *kept),
                                 copy_of(which, all_kept * sizeof *which),
                                 begin};
        done = trim->words && trim->kept && trim->which && begin;
        for (uint32_t k = 0, at = 0; done && k < span; k++) {
            begin[k] = at;
            at += kept[k];
        }
        encoder->trim_count += (uint32_t)done;
        encoder->trims_any |= (uint32_t)done;
    }
    pthread_rwlock_unlock(&encoder->tables);
    return done;
}

/* Leave out the records of an event. */
TK_EXPORT void tk_encoder_drop(struct tk_encoder *encoder, uint32_t code)
{
    encoder->dropped[code] = 1;
    encoder->trims_any = 1;
}

void tk_encoder_free_trims(struct tk_encoder *encoder)
{
    for (uint32_t number = 0; number < encoder->trim_count; number++) {
        free(encoder->trims[number].words);
        free(encoder->trims[number].kept);
        free(encoder->trims[number].which);
        free(encoder->trims[number].begin);
    }
    free(encoder->trims);
}

static const struct tk_trim *trim_of(const struct tk_encoder *encoder, uint32_t id)
{
    for (uint32_t number = 0; number < encoder->trim_count; number++)
        if (id - encoder->trims[number].first < encoder->trims[number].span)
            return &encoder->trims[number];
    return NULL;
}

/* Copies what is left of whole records to `to`, `*left` words; returns how many words were looked at. Stops where
 * tk_encode would. The caller holds the lock on the tables. */
static size_t trim(const struct tk_encoder *encoder, const uint64_t *words, size_t count, uint32_t epoch, uint64_t *to,
                   size_t *left)
{
    static const struct tk_range none;
    const struct tk_range *range = &none; /* the image of the last record */
    size_t at = 0, out = 0;
    while (at < count && words[at]) {
        const uint32_t id = tk_number(encoder, &range, words[at], epoch);
        const struct tk_trim *known = id >= TK_FIRST_PATH ? trim_of(encoder, id) : NULL;
        const uint32_t k = known ? id - known->first : 0;
        const uint32_t arity = !id ? TK_NEVER : known ? known->words[k] : encoder->ids[id].arity;
        if (arity == TK_NEVER || at + arity >= count)
            break;
        if (known) {
            to[out++] = words[at];
            for (uint32_t place = 0; place < known->kept[k]; place++)
                to[out++] = words[at + 1 + known->which[known->begin[k] + place]];
        } else if (id >= TK_FIRST_PATH || !encoder->dropped[id]) {
            memcpy(&to[out], &words[at], (arity + 1) * sizeof *to);
            out += arity + 1;
        }
        at += arity + 1;
    }
    *left = out;
    return at;
}

/* tk_encode of what is left of the records; returns how many words of `words` that took. */
size_t tk_encode_trimmed(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                         uint32_t epoch)
{
    if (!encoder->trims_any)
        return tk_encode(encoder, chunk, words, count, epoch);
    uint64_t *to = malloc((count ? count : 1) * sizeof *to);
    size_t left = 0, taken = count;
    if (to) {
        pthread_rwlock_rdlock(&encoder->tables);
        taken = trim(encoder, words, count, epoch, to, &left);
        pthread_rwlock_unlock(&encoder->tables);
    }
    if (!to || tk_encode(encoder, chunk, to, left, epoch) != left)
        __atomic_store_n(&encoder->failed, 1, __ATOMIC_RELAXED);
    free(to);
    return taken;
}
