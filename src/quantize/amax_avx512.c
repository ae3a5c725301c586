/* The largest magnitude of blocks by AVX-512: a register of maxima for each block, or for two
 * blocks of 16 words, then one transposing reduction for sixteen registers. f16 and bf16 magnitudes
 * order as their codes do, so they stay words until the end. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx512.h"

enum { REGISTERS = 16 };

/* ---- reductions ---- */

/* Lane i: the maximum of v[i]'s lanes. */
INLINE __m512i reduce_dwords(const __m512i v[REGISTERS]) {
    __m512i a[8], b[4], c[2];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        c[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0xdd));
    return _mm512_max_epu32(_mm512_shuffle_i32x4(c[0], c[1], 0x88),
                            _mm512_shuffle_i32x4(c[0], c[1], 0xdd));
}

/* Word j of quarter 0: the maximum of v[j]'s lower half; of quarter 1: of its upper half; of
 * quarters 2 and 3: of v[8 + j]'s. */
INLINE __m512i reduce_words(const __m512i v[REGISTERS]) {
    __m512i a[8], b[4], c[2];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_max_epu16(_mm512_unpacklo_epi16(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi16(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_max_epu16(_mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        c[i] = _mm512_max_epu16(_mm512_unpacklo_epi64(b[2 * i], b[2 * i + 1]),
                                _mm512_unpackhi_epi64(b[2 * i], b[2 * i + 1]));
    return _mm512_max_epu16(_mm512_shuffle_i32x4(c[0], c[1], 0x88),
                            _mm512_shuffle_i32x4(c[0], c[1], 0xdd));
}

/* ---- 16 bits to fp32 ---- */

/* memory.c's f16_value: what a NaN carries stays. */
INLINE __m512i f16_bits(__m512i codes) {
    const __m512i special = _mm512_set1_epi32(0x7c00);
    __m512 value = _mm512_castsi512_ps(_mm512_slli_epi32(codes, 13));
    __m512i bits = _mm512_castps_si512(_mm512_mul_ps(value, _mm512_set1_ps(0x1p112f)));
    __mmask16 is_special = _mm512_cmpge_epu32_mask(codes, special);
    return _mm512_mask_or_epi32(bits, is_special, bits, _mm512_set1_epi32(0x7f800000));
}

INLINE void store_words(uint32_t *amax, __m256i words, uint32_t elem) {
    __m512i codes = _mm512_cvtepu16_epi32(words);
    _mm512_storeu_si512(amax,
                        elem == BSMM_ELEM_BF16 ? _mm512_slli_epi32(codes, 16) : f16_bits(codes));
}

/* ---- spans of a row ---- */

INLINE int64_t lanes_of(uint32_t elem) {
    return elem == BSMM_ELEM_F32 ? LANES : WORDS;
}

/* The larger of `max` and the magnitudes in a register. */
INLINE __m512i with_f32(__m512i max, __m512i values, bool skips_nan) {
    __m512i a = _mm512_and_si512(values, _mm512_set1_epi32(0x7fffffff));
    if (skips_nan)
        a = _mm512_maskz_mov_epi32(_mm512_cmple_epu32_mask(a, _mm512_set1_epi32(0x7f800000)), a);
    return _mm512_max_epu32(max, a);
}

INLINE __m512i with_words(__m512i max, __m512i values, int inf, bool skips_nan) {
    __m512i a = _mm512_and_si512(values, _mm512_set1_epi16(0x7fff));
    if (skips_nan)
        a = _mm512_maskz_mov_epi16(_mm512_cmple_epu16_mask(a, _mm512_set1_epi16((short)inf)), a);
    return _mm512_max_epu16(max, a);
}

INLINE __m512i with(__m512i max, __m512i values, uint32_t elem, bool skips_nan) {
    if (elem == BSMM_ELEM_F32) return with_f32(max, values, skips_nan);
    return with_words(max, values, elem == BSMM_ELEM_BF16 ? 0x7f80 : 0x7c00, skips_nan);
}

INLINE __m512i load_first(const uint8_t *from, int64_t n, uint32_t elem) {
    if (elem == BSMM_ELEM_F32) return _mm512_maskz_loadu_epi32(first_lanes(n), from);
    return _mm512_maskz_loadu_epi16((1u << n) - 1, from);
}

/* Four streams keep more lines of memory on their way than one. */
enum { AHEAD = 1024, STREAMS = 4, LONG = 64 }; /* registers from which on they are worth it */

INLINE __m512i long_max(__m512i max, const uint8_t *from, int64_t registers, uint32_t elem,
                        bool skips_nan) {
    __m512i maxima[STREAMS] = {max, max, max, max};
    int64_t part = registers / STREAMS;
    for (int64_t i = 0; i < part; i++)
#    pragma GCC unroll 4
        for (int s = 0; s < STREAMS; s++) {
            const uint8_t *line = from + 64 * (s * part + i);
            _mm_prefetch((const char *)line + AHEAD, _MM_HINT_T0);
            maxima[s] = with(maxima[s], _mm512_loadu_si512(line), elem, skips_nan);
        }
    for (int s = 0; s < STREAMS; s++) /* what is the largest of one is of all */
        max = with(max, maxima[s], elem, false);
    return max;
}

INLINE __m512i span_max(__m512i max, const uint8_t *from, int64_t n, uint32_t elem,
                        bool skips_nan) {
    const int64_t lanes = lanes_of(elem);
    int64_t registers = n / lanes;
    if (registers >= LONG) {
        max = long_max(max, from, registers, elem, skips_nan);
        registers = registers / STREAMS * STREAMS;
    } else
        for (int64_t i = 0; i < registers; i++)
            max = with(max, _mm512_loadu_si512(from + 64 * i), elem, skips_nan);
    for (int64_t i = registers; i * lanes < n; i++) {
        int64_t left = bsmm_min_i64(lanes, n - i * lanes);
        __m512i values = left == lanes ? _mm512_loadu_si512(from + 64 * i)
                                       : load_first(from + 64 * i, left, elem);
        max = with(max, values, elem, skips_nan);
    }
    return max;
}

/* ---- blocks ---- */

/* `from` is the first of `span` columns for each register; `cols` are left. */
INLINE void maxima(const uint8_t *from, int64_t cols, int64_t span, uint32_t elem, bool skips_nan,
                   __m512i max[REGISTERS]) {
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    for (int64_t i = 0; i * span < cols; i++)
        max[i] = span_max(max[i], from + i * span * bytes, bsmm_min_i64(span, cols - i * span),
                          elem, skips_nan);
}

INLINE void whole_maxima(const uint8_t *from, int64_t span, uint32_t elem, bool skips_nan,
                         __m512i max[REGISTERS]) {
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
#    pragma GCC unroll 16
    for (int64_t i = 0; i < REGISTERS; i++)
        max[i] = span_max(_mm512_setzero_si512(), from + i * span * bytes, span, elem, skips_nan);
}

/* Each register's, or those of each half when there are two blocks in one. */
INLINE void store_maxima(const __m512i max[REGISTERS], bool halves, uint32_t elem, uint32_t *amax) {
    if (elem == BSMM_ELEM_F32) {
        _mm512_storeu_si512(amax, reduce_dwords(max));
        return;
    }
    __m512i parts = reduce_words(max), swapped = _mm512_shuffle_i32x4(parts, parts, 0xb1);
    if (!halves) {
        __m512i all = _mm512_max_epu16(parts, swapped);
        store_words(amax, _mm512_castsi512_si256(_mm512_shuffle_i32x4(all, all, 0x08)), elem);
        return;
    }
    __m512i low = _mm512_unpacklo_epi16(parts, swapped);
    __m512i high = _mm512_unpackhi_epi16(parts, swapped);
    __m512i first = _mm512_shuffle_i32x4(low, high, 0x88);
    __m512i ordered = _mm512_shuffle_i32x4(first, first, 0xd8);
    store_words(amax, _mm512_castsi512_si256(ordered), elem);
    store_words(amax + 16, _mm512_extracti64x4_epi64(ordered, 1), elem);
}

/* `width` and `elem` are the values'; `simple`: one row, and whole groups of registers. */
INLINE void amax_of(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                    uint32_t elem, bool skips_nan, bool simple, uint32_t *amax) {
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    const bool halves = width == 16 && elem != BSMM_ELEM_F32;
    const int64_t span = halves ? WORDS : width, blocks = halves ? 2 * REGISTERS : REGISTERS;
    for (int64_t c = 0; c < cols; c += REGISTERS * span, amax += blocks) {
        const uint8_t *from = (const uint8_t *)values->data + c * bytes;
        __m512i max[REGISTERS];
        if (simple)
            whole_maxima(from, span, elem, skips_nan, max);
        else {
            int64_t left = bsmm_min_i64(REGISTERS * span, cols - c);
            for (int i = 0; i < REGISTERS; i++)
                max[i] = _mm512_setzero_si512();
            for (int64_t r = 0; r < rows; r++)
                maxima(from + r * values->pitch * bytes, left, span, elem, skips_nan, max);
        }
        store_maxima(max, halves, elem, amax);
    }
}

/* The widths of the usual formats are constants of their own loops. */
INLINE void amax_by_width(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                          uint32_t elem, uint32_t *amax) {
    bool whole = rows == 1 && cols % (32 * REGISTERS) == 0;
    if (whole && width == 16)
        amax_of(values, 1, cols, 16, elem, false, true, amax);
    else if (whole && width == 32)
        amax_of(values, 1, cols, 32, elem, false, true, amax);
    else
        amax_of(values, rows, cols, width, elem, false, false, amax);
}

TARGET void bsmm_amax_avx512(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                             bool skips_nan, uint32_t *amax) {
    if (skips_nan)
        amax_of(values, rows, cols, width, values->elem, true, false, amax);
    else if (values->elem == BSMM_ELEM_F32)
        amax_by_width(values, rows, cols, width, BSMM_ELEM_F32, amax);
    else if (values->elem == BSMM_ELEM_BF16)
        amax_by_width(values, rows, cols, width, BSMM_ELEM_BF16, amax);
    else
        amax_by_width(values, rows, cols, width, BSMM_ELEM_F16, amax);
}

#endif
