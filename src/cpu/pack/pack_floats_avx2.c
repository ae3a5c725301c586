/* Converts the codes of a row to fp32 by 256-bit vectors. Codes of up to 8 bits are first converted
 * to bf16, 32 codes at once, by table lookups of bf16's low and high bytes. */
#include "cpu/pack/pack.h"

#if defined(__x86_64__)

#    include "cpu/pack/pack_avx2.h"

enum { RUN = BSMM_PACK_RUN, PART = BSMM_PACK_PART, STEP = BSMM_PACK_STEP };

INLINE void store(float *to, __m256i bits, const float *factor) {
    __m256 values = _mm256_castsi256_ps(bits);
    if (factor) values = _mm256_mul_ps(values, _mm256_broadcast_ss(factor));
    _mm256_storeu_ps(to, values);
}

/* Holds the bf16 values of 32 codes in two registers. The order of the values is that of unpacking
 * instructions, which interleave the bytes of two registers in each 128-bit half separately. */
typedef struct words {
    __m256i half[2];
} words;

INLINE words unpack(__m256i low, __m256i high) {
    return (words){{_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)}};
}

INLINE words words_of_sixes(const bsmm_pack_table *t, __m256i codes) {
    const quarters low = quarters_of(t->low), high = quarters_of(t->high);
    return unpack(look_up(&low, codes), look_up(&high, codes));
}

INLINE words words_of_fours(const bsmm_pack_table *t, __m256i codes) {
    const quarters low = quarters_of(t->low), high = quarters_of(t->high);
    return unpack(_mm256_shuffle_epi8(low.part[0], codes),
                  _mm256_shuffle_epi8(high.part[0], codes));
}

INLINE __m256i look_up_16(const uint8_t *table, int first, __m256i codes) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_16(table + first)), codes);
}

/* Returns the table entries of 8-bit codes whose magnitude is among the first 16 (below 0x10) or
 * the last 16 (from 0x70 on). `magnitudes` are the codes without their sign bits. */
INLINE __m256i look_up_ends(const uint8_t *table, __m256i codes, __m256i magnitudes,
                            __m256i is_last) {
    __m256i first = _mm256_blendv_epi8(look_up_16(table, 0, magnitudes),
                                       look_up_16(table, 0x80, magnitudes), codes);
    __m256i last = _mm256_blendv_epi8(look_up_16(table, 0x70, magnitudes),
                                      look_up_16(table, 0xf0, magnitudes), codes);
    return _mm256_blendv_epi8(first, last, is_last);
}

/* Converts 8-bit codes to bf16. For most codes, the bf16 bits are a linear function of the
 * magnitude, so a shift and an addition suffice. The first 16 magnitudes (with the subnormals) and
 * the last 16 (with Inf and NaN) are looked up in tables. */
INLINE words words_of_eights(const bsmm_pack_table *t, __m256i codes) {
    const __m256i sign_bit = _mm256_set1_epi8((char)0x80), zero = _mm256_setzero_si256();
    const int more = 7 - (int)bsmm_elem_row(t->elem)->mantissa_bits;
    const __m128i by = _mm_cvtsi32_si128(more);
    const __m256i begin =
        _mm256_set1_epi16((short)((t->low[16] | t->high[16] << 8) - (16 << more)));
    __m256i magnitudes = _mm256_andnot_si256(sign_bit, codes);
    __m256i is_first = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x10), magnitudes);
    __m256i is_last = _mm256_cmpgt_epi8(magnitudes, _mm256_set1_epi8(0x6f));
    __m256i is_end = _mm256_or_si256(is_first, is_last);
    words ends = unpack(look_up_ends(t->low, codes, magnitudes, is_last),
                        look_up_ends(t->high, codes, magnitudes, is_last));
    words line = unpack(magnitudes, zero), at_ends = unpack(is_end, is_end);
    words signs = unpack(zero, _mm256_and_si256(codes, sign_bit));
    for (int h = 0; h < 2; h++) {
        __m256i word = _mm256_add_epi16(_mm256_sll_epi16(line.half[h], by), begin);
        word = _mm256_or_si256(word, signs.half[h]);
        line.half[h] = _mm256_blendv_epi8(word, ends.half[h], at_ends.half[h]);
    }
    return line;
}

/* Converts codes to fp32. Each code takes `bits` bits in memory, of which `used` are
 * significant. */
INLINE void floats_of_codes(const bsmm_pack_table *t, const uint8_t *from, uint32_t bits,
                            uint32_t used, const float *factors, float *to) {
    /* The conversion of codes to floats interleaves bytes and then 16-bit words, each time in the
     * two 128-bit halves separately. This mixes up the order of the codes. To compensate for it,
     * the 32-bit words of codes are put into this order first. */
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const __m256i zero = _mm256_setzero_si256();
    for (int i = 0; i < RUN; i += PART) {
        __m256i codes =
            _mm256_permutevar8x32_epi32(read_codes(from + (uint32_t)i / 8 * bits, bits), order);
        words w = used == 4   ? words_of_fours(t, codes)
                  : used == 6 ? words_of_sixes(t, codes)
                              : words_of_eights(t, codes);
        for (int h = 0; h < 2; h++) {
            const float *factor = factors ? factors + i / STEP + h : NULL;
            store(to + i + h * STEP, _mm256_unpacklo_epi16(zero, w.half[h]), factor);
            store(to + i + h * STEP + LANES, _mm256_unpackhi_epi16(zero, w.half[h]), factor);
        }
    }
}

/* Converts f16 to fp32. A subnormal f16 is an integer times 2^-24. Inf and NaN get fp32's largest
 * exponent and keep their mantissas. */
INLINE __m256i float_of_f16(__m256i code) {
    __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7fff));
    __m256i sign = _mm256_slli_epi32(_mm256_and_si256(code, _mm256_set1_epi32(0x8000)), 16);
    __m256i subnormal =
        _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-24f)));
    __m256i is_finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7c00), magnitude);
    __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x400), magnitude);
    __m256i rebias =
        _mm256_blendv_epi8(_mm256_set1_epi32(224 << 23), _mm256_set1_epi32(112 << 23), is_finite);
    __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 13), rebias);
    return _mm256_or_si256(_mm256_blendv_epi8(normal, subnormal, is_subnormal), sign);
}

INLINE __m256i load_wide(const uint8_t *from, uint32_t elem) {
    if (elem == BSMM_ELEM_F32) return _mm256_loadu_si256((const __m256i *)(const void *)from);
    __m256i code = _mm256_cvtepu16_epi32(load_16(from));
    return elem == BSMM_ELEM_F16 ? float_of_f16(code) : _mm256_slli_epi32(code, 16);
}

INLINE void floats_of_wide(const uint8_t *from, uint32_t elem, const float *factors, float *to) {
    int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    for (int i = 0; i < RUN; i += LANES)
        store(to + i, load_wide(from + i * bytes, elem), factors ? factors + i / STEP : NULL);
}

INLINE void floats_of(const bsmm_pack_table *t, const uint8_t *from, uint32_t bits,
                      const float *factors, float *to) {
    if (bits == 4)
        floats_of_codes(t, from, 4, 4, factors, to);
    else if (bits == 6)
        floats_of_codes(t, from, 6, 6, factors, to);
    else if (bits == 8 && bsmm_elem_row(t->elem)->bits == 8)
        floats_of_codes(t, from, 8, 8, factors, to);
    /* At this point, codes of 4 or 6 bits were read from column order and take one byte each. */
    else if (bits == 8)
        floats_of_codes(t, from, 8, 6, factors, to);
    else if (bits == 32)
        floats_of_wide(from, BSMM_ELEM_F32, factors, to);
    else if (t->elem == BSMM_ELEM_F16)
        floats_of_wide(from, BSMM_ELEM_F16, factors, to);
    else
        floats_of_wide(from, BSMM_ELEM_BF16, factors, to);
}

TARGET void bsmm_pack_avx2_floats(const bsmm_pack_codes *c, const bsmm_pack_table *t, int64_t lane,
                                  int64_t k, const float *factors, float *to) {
    uint8_t room[RUN * 4];
    const uint8_t *from = bsmm_pack_run_at(c, lane, k, room);
    if (factors)
        floats_of(t, from, c->bits, factors, to);
    else
        floats_of(t, from, c->bits, NULL, to);
}

INLINE int32_t largest_of(__m256i v) {
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1)));
}

TARGET void bsmm_pack_avx2_reach(const float *values, int64_t n, int32_t *largest,
                                 int32_t *smallest_less_1) {
    const __m256i all = _mm256_set1_epi32(INT32_MAX), one = _mm256_set1_epi32(1);
    __m256i most = _mm256_setzero_si256(), least = all;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(values + i));
        __m256i magnitude = _mm256_and_si256(value, all);
        most = _mm256_max_epi32(most, magnitude);
        least = _mm256_min_epi32(least, _mm256_and_si256(_mm256_sub_epi32(magnitude, one), all));
    }
    bsmm_pack_portable_reach(values + i, n - i, largest, smallest_less_1);
    int32_t high = largest_of(most);
    int32_t low = ~largest_of(_mm256_xor_si256(least, _mm256_set1_epi32(-1)));
    *largest = high > *largest ? high : *largest;
    *smallest_less_1 = low < *smallest_less_1 ? low : *smallest_less_1;
}

#else

typedef int bsmm_pack_floats_avx2_needs_x86_64;

#endif
