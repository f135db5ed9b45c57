/* The encoder of records for processors with AVX-512 (Ice Lake, Zen 4, and later): the same columns as encoder.c's, four
 * words at a time and without a branch on what they are.
 *
 * The words of a record go in groups of four lanes, the last one filled up with words 0, which predict themselves. A
 * group has its last words, strides and offsets side by side, where encoder.c keeps three numbers for each slot. */
#include "encoder_record.h"

#ifndef __x86_64__

uint32_t tk_vector_lanes(void)
{
    return 1;
}

size_t tk_encode_vector(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                        uint32_t epoch)
{
    (void)encoder, (void)chunk, (void)words, (void)count, (void)epoch;
    return 0;
}

#else

#include <immintrin.h>
#include <string.h>

#define VECTOR __attribute__((target("avx512f,avx512vl,avx512bw,avx512cd,avx512vbmi2,bmi,bmi2,popcnt,lzcnt")))

uint32_t tk_vector_lanes(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("bmi2") ? 4 : 1;
}

struct group {
    __m256i last, stride, offset;
};

/* Encode the first `count` (1 to 4) words of a group; the codes of the first two words are in the lower byte of the
 * result, those of the other two in the next. */
VECTOR TK_INLINE uint32_t put_group(struct group *group, const uint64_t *words, uint32_t count, const uint64_t *previous,
                                    uint8_t **residuals, int calm)
{
    const __m256i word = _mm256_maskz_loadu_epi64((__mmask8)_bzhi_u32(15, count), words);
    const __m256i before = _mm256_alignr_epi64(word, _mm256_set1_epi64x((long long)*previous), 3);
    const __m256i stride = _mm256_sub_epi64(word, group->last), offset = _mm256_sub_epi64(word, before);
    const __mmask8 unsteady = _mm256_cmpneq_epi64_mask(stride, group->stride);
    const __mmask8 moved = _mm256_cmpeq_epi64_mask(offset, group->offset);
    *group = (struct group){word, stride, offset};
    if (calm && unsteady == 0)
        return 0;

    /* Bytes that hold the stride, 1 to 8, by its bits without and with a sign; and the code of so many. */
    const __m256i bits = _mm256_xor_si256(stride, _mm256_srai_epi64(stride, 63));
    const __m256i bytes = _mm256_srli_epi64(_mm256_sub_epi64(_mm256_set1_epi64x(72), _mm256_lzcnt_epi64(bits)), 3);
    const __m256i code_of = _mm256_set1_epi64x(0x0706060504030200), last_code = _mm256_set1_epi64x(7);
    __m256i code = _mm256_shuffle_epi8(_mm256_unpacklo_epi64(code_of, last_code), bytes);
    code = _mm256_mask_mov_epi64(code, moved, _mm256_set1_epi64x(1));
    code = _mm256_maskz_mov_epi64(unsteady, code);

    const __m128i codes = _mm256_cvtepi64_epi8(code);
    const __m128i mask_of = _mm_set1_epi64x((long long)0xff3f0f0703010000);
    const uint32_t mask = (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(mask_of, codes));
    _mm256_storeu_si256((__m256i *)*residuals, _mm256_maskz_compress_epi8(mask, stride));
    *residuals += _mm_popcnt_u32(mask);
    return _pdep_u32(_pext_u32((uint32_t)_mm_cvtsi128_si32(codes), 0x07070707), 0x3f3f);
}

VECTOR TK_INLINE size_t encode(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                               uint32_t epoch, int calm)
{
    static const struct tk_range nothing;
    const struct tk_range *range = &nothing; /* the image of the last record */
    struct tk_columns at = chunk->at;
    uint32_t(*const successors)[4] = chunk->successors;
    struct tk_slot *const slots = chunk->slots;
    const uint64_t *here = words, *const end = words + count, *previous = &chunk->previous_word;
    uint32_t *next = successors[chunk->previous_row]; /* the ids that followed the last one */

    while (here < end) {
        const uint32_t id = tk_number(encoder, &range, *here, epoch);
        const struct tk_id *const known = &encoder->ids[id];
        const uint32_t arity = known->arity;
        if (TK_UNLIKELY(arity == TK_NEVER || end - here <= (ptrdiff_t)arity))
            break;
        const uint64_t place = tk_place(encoder, id);
        const uint32_t rank = tk_put_id(&at.literals, next, id);
        next = successors[(uint32_t)place];
        next[TK_RECORDS]++;

        struct group *group = (struct group *)(slots + (place >> 32));
        uint32_t codes = 0;
        here = tk_after(here);
        /* `here` moves on with the branches, which are foreseen, and not by `arity`, which has to be waited for. */
        switch (arity) {
        case 0:
            break;
        case 1:
            codes = put_group(group, here, 1, previous, &at.residuals, calm);
            if (TK_UNLIKELY(known->run))
                __atomic_fetch_add(&encoder->iterations[id], *here, __ATOMIC_RELAXED);
            previous = here;
            here = tk_after(here);
            break;
        case 2:
            codes = put_group(group, here, 2, previous, &at.residuals, calm);
            previous = here + 1;
            here = tk_after(tk_after(here));
            break;
        case 3:
            codes = put_group(group, here, 3, previous, &at.residuals, calm);
            *at.codes++ = (uint8_t)(codes >> 8);
            previous = here + 2;
            here = tk_after(tk_after(tk_after(here)));
            break;
        default:
            codes = put_group(group, here, 4, previous, &at.residuals, calm);
            *at.codes++ = (uint8_t)(codes >> 8);
            here += 4;
            for (uint32_t left = arity - 4; left; left -= left < 4 ? left : 4) {
                const uint32_t some = left < 4 ? left : 4;
                const uint16_t more = (uint16_t)put_group(++group, here, some, here - 1, &at.residuals, calm);
                memcpy(at.codes, &more, sizeof more);
                at.codes += (some + 1) / 2;
                here += some;
            }
            previous = here - 1;
        }
        *at.symbols++ = (uint8_t)(rank << 6 | (codes & 0x3f));
    }
    const uint32_t records = (uint32_t)(at.symbols - chunk->at.symbols);
    chunk->words += (uint32_t)(here - words) - records;
    chunk->records += records;
    chunk->previous_row = (uint32_t)((next - successors[0]) / 4);
    chunk->previous_word = *previous;
    chunk->at = at;
    return (size_t)(here - words);
}

/* As tk_encode; `chunk` has room. */
VECTOR size_t tk_encode_vector(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                               uint32_t epoch)
{
    return chunk->calm ? encode(encoder, chunk, words, count, epoch, 1)
                       : encode(encoder, chunk, words, count, epoch, 0);
}

#endif
