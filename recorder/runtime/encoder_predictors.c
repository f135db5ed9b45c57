/* Predictors: by which earlier word a slot's words are predicted best. An array's element and that of another one with
 * the same index move together, the one perhaps by twice as many bytes; of a structure's fields some are read again
 * later.
 *
 * They are chosen once for each chunk, by its first records, and hold for all of it. */
#define _GNU_SOURCE
#include "encoder_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void note_word(struct tk_sample *of, uint64_t word, const uint64_t recent[TK_WINDOW])
{
    const uint64_t stride = word - of->last;
    if (stride != of->stride)
        for (uint32_t shift = 0; shift < TK_SHIFTS; shift++)
            for (uint32_t back = 0; back < TK_WINDOW; back++)
                of->hits[shift][back] += stride == (recent[back] - of->references[back]) << shift;
    memcpy(of->references, recent, sizeof of->references);
    of->last = word;
    of->stride = stride;
}

/* The words of a record; `recent`: those before, the latest first. */
static void note_words(struct tk_sample *samples, const uint64_t *words, uint32_t count, uint64_t recent[TK_WINDOW])
{
    for (uint32_t k = 0; k < count; k++) {
        note_word(&samples[k], words[k], recent);
        memmove(recent + 1, recent, (TK_WINDOW - 1) * sizeof *recent);
        recent[0] = words[k];
    }
}

/* The predictor with the most hits, the nearest and least shifted of several. */
static uint8_t best_predictor(const struct tk_sample *of)
{
    uint32_t best = 0, hits = of->hits[0][0];
    for (uint32_t back = 0; back < TK_WINDOW; back++)
        for (uint32_t shift = 0; shift < TK_SHIFTS; shift++)
            if (of->hits[shift][back] > hits) {
                best = back | shift << TK_SHIFT_AT;
                hits = of->hits[shift][back];
            }
    return (uint8_t)best;
}

/* The samples of a number's slots, begun if it has none. Until its records are encoded, its first slot remembers where
 * they are. NULL without room. */
static struct tk_sample *samples_of(struct tk_chunk *chunk, uint32_t slot, uint32_t arity, uint32_t *used)
{
    uint64_t *const number = &chunk->slots[slot].last;
    if (!*number) {
        if (arity > TK_SAMPLE - *used)
            return NULL;
        memset(chunk->sample + *used, 0, arity * sizeof *chunk->sample);
        for (uint32_t k = 0; k < arity; k++)
            chunk->sample[*used + k].slot = slot + k;
        *number = *used + 1;
        *used += arity;
    }
    return chunk->sample + (*number - 1);
}

static uint32_t take_sample(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                            uint32_t epoch)
{
    static const struct tk_range nothing;
    const struct tk_range *range = &nothing;
    uint64_t recent[TK_WINDOW] = {0}; /* the latest first */
    const uint64_t *here = words, *const end = words + count;
    uint32_t used = 0;
    while (here < end && here - words < TK_SAMPLE) {
        const uint32_t id = tk_number(encoder, &range, *here, epoch), arity = encoder->ids[id].arity;
        if (arity == TK_NEVER || end - here <= (ptrdiff_t)arity)
            break;
        here++;
        if (!arity)
            continue;
        struct tk_sample *samples = samples_of(chunk, (uint32_t)(tk_place(encoder, id) >> 32), arity, &used);
        if (!samples)
            break;
        if (encoder->lanes > 1)
            tk_note_words_vector(samples, here, arity, recent);
        else
            note_words(samples, here, arity, recent);
        here += arity;
    }
    return used;
}

/* Choose the predictors of a chunk that has no records yet, by those that come first. */
void tk_choose_predictors(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                          uint32_t epoch)
{
    if (!chunk->sample) {
        void *memory =
            mmap(NULL, TK_SAMPLE * sizeof *chunk->sample, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return;
        chunk->sample = memory;
    }
    const uint32_t used = take_sample(encoder, chunk, words, count, epoch);
    for (uint32_t k = 0; k < used; k++) {
        const struct tk_sample *of = &chunk->sample[k];
        chunk->slots[of->slot].last = 0;
        chunk->predictors[of->slot] = best_predictor(of);
        chunk->has_predictors |= chunk->predictors[of->slot];
    }
}

void tk_free_sample(struct tk_chunk *chunk)
{
    if (chunk->sample)
        munmap(chunk->sample, TK_SAMPLE * sizeof *chunk->sample);
}

static int room_in_column(struct tk_chunk *chunk, uint32_t count)
{
    if (chunk->column_room - chunk->column_count >= count)
        return 1;
    const uint32_t room = 2 * (chunk->column_count + count);
    uint8_t *column = realloc(chunk->column, room);
    if (!column)
        return 0;
    chunk->column = column;
    chunk->column_room = room;
    return 1;
}

/* The column of predictors of a finished chunk: of each slot in the order of the ids' first records. An id's first
 * record is a literal. Zeros at the end are left out. */
int tk_list_predictors(struct tk_encoder *encoder, struct tk_chunk *chunk)
{
    uint32_t last = 0;
    chunk->column_count = 0;
    pthread_rwlock_rdlock(&encoder->tables);
    int good = 1;
    for (const uint32_t *literal = chunk->base.literals; chunk->has_predictors && good && literal < chunk->at.literals;
         literal++) {
        const struct tk_id *known = &encoder->ids[*literal];
        uint32_t *count = chunk->successors[0] + (uint32_t)known->place + TK_RECORDS;
        if (!*count)
            continue;
        *count = 0; /* they were added up */
        good = room_in_column(chunk, known->arity);
        if (good)
            memcpy(chunk->column + chunk->column_count, chunk->predictors + (known->place >> 32), known->arity);
        chunk->column_count += good ? known->arity : 0;
    }
    pthread_rwlock_unlock(&encoder->tables);
    for (uint32_t k = 0; k < chunk->column_count; k++)
        last = chunk->column[k] ? k + 1 : last;
    chunk->column_count = last;
    return good;
}
