/* Which record an id stands for, and where the tables have it. */
#include "encoder_record.h"

/* The image that owns `id` in `epoch`: the one loaded then; else the next one to be loaded (records made before its
 * constructor ran); else the last one unloaded (records made after its destructor). */
const struct tk_range *tk_find_range(const struct tk_encoder *encoder, uint64_t id, uint32_t epoch)
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

/* A row and slots for an id that has its first record; the place of an id never changes. */
uint64_t tk_give_place(struct tk_encoder *encoder, uint32_t id)
{
    struct tk_id *known = &encoder->ids[id];
    pthread_mutex_lock(&encoder->lock);
    const uint32_t slots = tk_slots_of(encoder, known->arity);
    if (!known->seen) {
        if (slots > 4) /* vectors of 64 bytes are aligned */
            encoder->slots = (encoder->slots + 7) & ~7u;
        known->place = 4 * (uint64_t)encoder->rows | (uint64_t)encoder->slots << 32;
        encoder->row_ids[encoder->rows++] = id;
        encoder->slots += slots;
        __atomic_store_n(&known->seen, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&encoder->lock);
    return known->place;
}
