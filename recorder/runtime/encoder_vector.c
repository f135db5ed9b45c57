/* The encoder of records for processors with AVX-512 (Ice Lake, Zen 4, and later): the same columns as
 * encoder_scalar.c's, four words at a time and without a branch on what they are.
 *
 * The words of a record go in groups of four lanes, the last one filled up with words 0, which predict themselves. A
 * group has its last words, strides and offsets side by side, where encoder_scalar.c keeps three numbers for each slot.
 */
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

void tk_note_words_vector(struct tk_sample *samples, const uint64_t *words, uint32_t count, uint64_t recent[TK_WINDOW])
{
    (void)samples, (void)words, (void)count, (void)recent;
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
                   __builtin_cpu_supports("bmi2")
               ? 8
               : 1;
}

struct group {
    __m256i last, stride, reference;
};

struct wide_group {
    __m512i last, stride, reference;
};

/* Encode the first `count` (1 to 4) words of a group; the codes of the first two words are in the lower byte of the
 * result, those of the other two in the next. `recent`: the eight words before, the latest last. */
VECTOR TK_INLINE uint32_t put_group(struct group *group, const uint8_t *predictors, const uint64_t *words,
                                    uint32_t count, __m512i recent, uint8_t **residuals)
{
    const __m256i word = _mm256_maskz_loadu_epi64((__mmask8)_bzhi_u32(15, count), words);
    const __m256i predictor = _mm256_cvtepu8_epi64(_mm_loadu_si32(predictors));
    const __m256i from = _mm256_sub_epi64(_mm256_set_epi64x(10, 9, 8, 7), predictor);
    const __m256i reference = _mm512_castsi512_si256(
        _mm512_permutex2var_epi64(recent, _mm512_castsi256_si512(from), _mm512_castsi256_si512(word)));
    const __m256i stride = _mm256_sub_epi64(word, group->last), moved = _mm256_sub_epi64(reference, group->reference);
    const __mmask8 unsteady = _mm256_cmpneq_epi64_mask(stride, group->stride);
    *group = (struct group){word, stride, reference};
    if (unsteady == 0)
        return 0;
    const __m256i shifted = _mm256_sllv_epi64(moved, _mm256_srli_epi64(predictor, TK_SHIFT_AT));
    const __mmask8 predicted = _mm256_cmpeq_epi64_mask(stride, shifted);

    /* Bytes that hold the stride, 1 to 8, by its bits without and with a sign; and the code of so many. */
    const __m256i bits = _mm256_xor_si256(stride, _mm256_srai_epi64(stride, 63));
    const __m256i bytes = _mm256_srli_epi64(_mm256_sub_epi64(_mm256_set1_epi64x(72), _mm256_lzcnt_epi64(bits)), 3);
    const __m256i code_of = _mm256_set1_epi64x(0x0706060504030200), last_code = _mm256_set1_epi64x(7);
    __m256i code = _mm256_shuffle_epi8(_mm256_unpacklo_epi64(code_of, last_code), bytes);
    code = _mm256_mask_mov_epi64(code, predicted, _mm256_set1_epi64x(1));
    code = _mm256_maskz_mov_epi64(unsteady, code);

    const __m128i codes = _mm256_cvtepi64_epi8(code);
    const __m128i mask_of = _mm_set1_epi64x((long long)0xff3f0f0703010000);
    const uint32_t mask = (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(mask_of, codes));
    _mm256_storeu_si256((__m256i *)*residuals, _mm256_maskz_compress_epi8(mask, stride));
    *residuals += _mm_popcnt_u32(mask);
    return _pdep_u32(_pext_u32((uint32_t)_mm_cvtsi128_si32(codes), 0x07070707), 0x3f3f);
}

/* The same for up to eight words; the codes of two in each byte. The words become part of `recent`. */
VECTOR TK_INLINE uint32_t put_wide_group(struct wide_group *group, const uint8_t *predictors, const uint64_t *words,
                                         uint32_t count, __m512i *recent, uint8_t **residuals)
{
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i word = _mm512_maskz_loadu_epi64((__mmask8)_bzhi_u32(255, count), words);
    const __m512i predictor = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)predictors));
    const __m512i from = _mm512_sub_epi64(_mm512_add_epi64(lanes, _mm512_set1_epi64(7)), predictor);
    const __m512i reference = _mm512_permutex2var_epi64(*recent, from, word);
    const __m512i stride = _mm512_sub_epi64(word, group->last), moved = _mm512_sub_epi64(reference, group->reference);
    const __mmask8 unsteady = _mm512_cmpneq_epi64_mask(stride, group->stride);
    *group = (struct wide_group){word, stride, reference};
    *recent = _mm512_permutex2var_epi64(*recent, _mm512_add_epi64(lanes, _mm512_set1_epi64((long long)count)), word);
    if (unsteady == 0)
        return 0;
    const __m512i shifted = _mm512_sllv_epi64(moved, _mm512_srli_epi64(predictor, TK_SHIFT_AT));
    const __mmask8 predicted = _mm512_mask_cmpeq_epi64_mask(unsteady, stride, shifted);
    const __m512i bits = _mm512_xor_si512(stride, _mm512_srai_epi64(stride, 63));
    const __m512i bytes = _mm512_srli_epi64(_mm512_sub_epi64(_mm512_set1_epi64(72), _mm512_lzcnt_epi64(bits)), 3);
    const __m512i code_of = _mm512_set_epi64(7, 6, 6, 5, 4, 3, 2, 7); /* by bytes, 8 at 0 */
    __m512i code = _mm512_maskz_permutexvar_epi64(unsteady, bytes, code_of);
    code = _mm512_mask_mov_epi64(code, predicted, _mm512_set1_epi64(1));
    const __m128i codes = _mm512_cvtepi64_epi8(code);
    const __m128i mask_of = _mm_set1_epi64x((long long)0xff3f0f0703010000);
    const uint64_t mask = (uint64_t)_mm_cvtsi128_si64(_mm_shuffle_epi8(mask_of, codes));
    _mm512_storeu_si512(*residuals, _mm512_maskz_compress_epi8(mask, stride));
    *residuals += _mm_popcnt_u64(mask);
    return _pdep_u32((uint32_t)_pext_u64((uint64_t)_mm_cvtsi128_si64(codes), 0x0707070707070707), 0x3f3f3f3f);
}

/* `careful`: the records may be cut short. */
VECTOR TK_INLINE const uint64_t *encode(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words,
                                        const uint64_t *end, uint32_t epoch, int careful)
{
    static const struct tk_range nothing;
    const struct tk_range *range = &nothing; /* the image of the last record */
    uint64_t low = 0, span = 0;
    uint32_t first = 0;
    const struct tk_id *const ids = encoder->ids;
    uint32_t *literals = chunk->at.literals;
    uint8_t *symbols = chunk->at.symbols, *column = chunk->at.codes, *residuals = chunk->at.residuals;
    uint32_t *const successors = chunk->successors[0];
    struct tk_slot *const slots = chunk->slots;
    const uint8_t *const all_predictors = chunk->predictors;
    __m512i recent = _mm512_loadu_si512(chunk->recent);
    uint32_t *next = chunk->successors[chunk->previous_row]; /* the ids that followed the last one */
    const uint64_t *here = words;

    while (here < end) {
        const uint64_t index = *here - low;
        uint32_t id = first + (uint32_t)index;
        if (TK_UNLIKELY(index >= span)) {
            id = tk_number(encoder, &range, *here, epoch);
            low = range->low;
            span = range->span;
            first = range->first;
        }
        const struct tk_id *const known = &ids[id];
        const uint32_t arity = known->arity;
        if (careful && (arity == TK_NEVER || end - here <= (ptrdiff_t)arity))
            break;
        if (TK_UNLIKELY(!__atomic_load_n(&known->seen, __ATOMIC_ACQUIRE))) {
            if (arity == TK_NEVER)
                break;
            tk_give_place(encoder, id);
        }
        const uint64_t place = known->place;
        const uint32_t rank = tk_put_id(&literals, next, id);
        next = successors + (uint32_t)place;
        next[TK_RECORDS]++;

        struct group *const group = (struct group *)(slots + (place >> 32));
        const uint8_t *predictors = all_predictors + (place >> 32);
        uint32_t codes = 0;
        here = tk_after(here);
        /* `here` moves on with the branches, which are predicted, and not by `arity`, which has to be waited for. */
        switch (arity) {
        case 0:
            break;
        case 1:
            codes = put_group(group, predictors, here, 1, recent, &residuals);
            if (TK_UNLIKELY(known->run))
                __atomic_fetch_add(&encoder->iterations[id], *here, __ATOMIC_RELAXED);
            recent = _mm512_alignr_epi64(_mm512_castsi256_si512(_mm256_maskz_loadu_epi64(1, here)), recent, 1);
            here = tk_after(here);
            break;
        case 2:
            codes = put_group(group, predictors, here, 2, recent, &residuals);
            recent = _mm512_alignr_epi64(_mm512_castsi256_si512(_mm256_maskz_loadu_epi64(3, here)), recent, 2);
            here = tk_after(tk_after(here));
            break;
        case 3:
            codes = put_group(group, predictors, here, 3, recent, &residuals);
            *column++ = (uint8_t)(codes >> 8);
            recent = _mm512_alignr_epi64(_mm512_castsi256_si512(_mm256_maskz_loadu_epi64(7, here)), recent, 3);
            here = tk_after(tk_after(tk_after(here)));
            break;
        case 4:
            codes = put_group(group, predictors, here, 4, recent, &residuals);
            *column++ = (uint8_t)(codes >> 8);
            recent = _mm512_alignr_epi64(_mm512_castsi256_si512(_mm256_maskz_loadu_epi64(15, here)), recent, 4);
            here = tk_after(tk_after(tk_after(tk_after(here))));
            break;
        default: {
            struct wide_group *wide = (struct wide_group *)group;
            codes = put_wide_group(wide, predictors, here, arity < 8 ? arity : 8, &recent, &residuals);
            const uint32_t others = codes >> 8;
            memcpy(column, &others, 3);
            if (TK_LIKELY(arity <= 8)) {
                column += (arity - 1) / 2;
            } else {
                column += 3;
                for (uint32_t done = 8; done < arity; done += 8) {
                    const uint32_t some = arity - done < 8 ? arity - done : 8;
                    const uint32_t more =
                        put_wide_group(++wide, predictors + done, here + done, some, &recent, &residuals);
                    memcpy(column, &more, sizeof more);
                    column += (some + 1) / 2;
                }
            }
            here += arity;
        }
        }
        *symbols++ = (uint8_t)(rank << 6 | (codes & 0x3f));
    }
    const uint32_t records = (uint32_t)(symbols - chunk->at.symbols);
    chunk->words += (uint32_t)(here - words) - records;
    chunk->records += records;
    chunk->previous_row = (uint32_t)((next - successors) / 4);
    _mm512_storeu_si512(chunk->recent, recent);
    chunk->at = (struct tk_columns){literals, symbols, column, residuals};
    return here;
}

/* As note_words of encoder_predictors.c. */
VECTOR void tk_note_words_vector(struct tk_sample *samples, const uint64_t *words, uint32_t count,
                                 uint64_t recent[TK_WINDOW])
{
    __m512i before = _mm512_loadu_si512(recent);
    for (uint32_t k = 0; k < count; k++) {
        struct tk_sample *const of = &samples[k];
        const uint64_t stride = words[k] - of->last;
        if (stride != of->stride) {
            __m512i moved = _mm512_sub_epi64(before, _mm512_loadu_si512(of->references));
            for (uint32_t shift = 0; shift < TK_SHIFTS; shift++) {
                const __mmask8 hit = _mm512_cmpeq_epi64_mask(moved, _mm512_set1_epi64((long long)stride));
                __m128i *const hits = (__m128i *)of->hits[shift];
                _mm_storeu_si128(hits, _mm_sub_epi16(_mm_loadu_si128(hits), _mm_movm_epi16(hit)));
                moved = _mm512_add_epi64(moved, moved);
            }
        }
        _mm512_storeu_si512(of->references, before);
        of->last = words[k];
        of->stride = stride;
        before = _mm512_alignr_epi64(before, _mm512_set1_epi64((long long)words[k]), 7);
    }
    _mm512_storeu_si512(recent, before);
}

/* As tk_encode; `chunk` has room. */
VECTOR size_t tk_encode_vector(struct tk_encoder *encoder, struct tk_chunk *chunk, const uint64_t *words, size_t count,
                               uint32_t epoch)
{
    const uint64_t *here = words;
    if (count > encoder->most)
        here = encode(encoder, chunk, here, words + count - encoder->most, epoch, 0);
    return (size_t)(encode(encoder, chunk, here, words + count, epoch, 1) - words);
}

#endif
