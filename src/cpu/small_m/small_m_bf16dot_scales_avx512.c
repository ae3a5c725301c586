/* Checks the scales of a panel (16 rows of B) before the panel's elements are read. If the scales
 * of a row are too far apart, fp32 sums of the row may be wrong. The panel is then packed before it
 * is multiplied, instead of being read as it is stored. Packing marks such rows as wide
 * (engine_gemm.h), and their results are summed in double. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"
#include "cpu/small_m/small_m_scales.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)

#    include <immintrin.h>

/* The functions below are compiled for AVX-512 without a check of the processor, because only
 * kernels that need AVX-512 themselves call them. */
#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* The number of scale units of a panel is a multiple of 4, because K is padded to a multiple of 128
 * elements. VECTOR_UNITS is the number of scale units whose codes fill a vector. */
enum { VECTOR_UNITS = 4 };

/* Finds the largest and the smallest code of each row. */
TARGET static void find_extreme_codes(const bsmm_small_m_scales *s, codes16 *largest,
                                      codes16 *smallest) {
    __m512i most = _mm512_setzero_si512(), least = _mm512_set1_epi8(-1);
    for (int64_t i = 0; i < s->units; i += VECTOR_UNITS) {
        __m512i v = _mm512_loadu_si512(s->codes + i * LANES);
        most = _mm512_max_epu8(most, v);
        least = _mm512_min_epu8(least, v);
    }
    __m256i two = _mm256_max_epu8(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
    __m128i one = _mm_max_epu8(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    _mm_storeu_si128((__m128i *)(void *)largest, one);
    two = _mm256_min_epu8(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
    one = _mm_min_epu8(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    _mm_storeu_si128((__m128i *)(void *)smallest, one);
}

/* Multiplies eight factors by the values of the first eight e8m0 codes, which are not NaN. */
TARGET static void multiply_powers(double *factors, __m128i codes) {
    const __m512i exponents =
        _mm512_add_epi64(_mm512_cvtepu8_epi64(codes), _mm512_set1_epi64(1023 - 127));
    const __m512d powers = _mm512_castsi512_pd(_mm512_slli_epi64(exponents, 52));
    _mm512_storeu_pd(factors, _mm512_mul_pd(_mm512_loadu_pd(factors), powers));
}

/* Replaces the code of each e8m0 scale of a panel (16 rows of B) by s = log2(largest scale of the
 * row / this scale). The multiply loop divides the block's elements or sums by 2^s. The largest
 * scale itself is multiplied into the row's factor. Returns false if a scale is NaN, or if the
 * scales of a row are so far apart that packed elements would become too small. The panel must then
 * be packed, and the packer handles such rows. */
TARGET static bool prepare_shifts(const bsmm_small_m_scales *s) {
    int deepest = 60 + ilogb(bsmm_elem_row(s->p->b.m.format.elem)->min_subnormal);
    codes16 top, bottom;
    find_extreme_codes(s, &top, &bottom);
    const __m128i most = _mm_loadu_si128((const __m128i *)(const void *)&top);
    const __m128i least = _mm_loadu_si128((const __m128i *)(const void *)&bottom);
    if (_mm_cmpeq_epi8_mask(most, _mm_set1_epi8(-1)) |
        _mm_cmpgt_epu8_mask(_mm_sub_epi8(most, least), _mm_set1_epi8((char)deepest)))
        return false;
    multiply_powers(s->factors, most);
    multiply_powers(s->factors + LANES / 2, _mm_srli_si128(most, LANES / 2));
    const __m512i tops = _mm512_broadcast_i32x4(most);
    uint8_t *codes = s->codes;
    for (int64_t i = 0; i < s->units; i += VECTOR_UNITS) {
        __m512i v = _mm512_loadu_si512(codes + i * LANES);
        _mm512_storeu_si512(codes + i * LANES, _mm512_sub_epi8(tops, v));
    }
    return true;
}

/* Checks the e4m3 scales of a panel (16 rows of B). Returns false if a scale is negative or NaN.
 * The panel must then be packed before it is multiplied. */
TARGET static bool prepare_products(const bsmm_small_m_scales *s) {
    __m512i largest = _mm512_setzero_si512();
    for (int64_t i = 0; i < s->units; i += VECTOR_UNITS)
        largest = _mm512_max_epu8(largest, _mm512_loadu_si512(s->codes + i * LANES));
    return _mm512_cmpge_epu8_mask(largest, _mm512_set1_epi8(0x7f)) == 0;
}

TARGET static bool prepare_floats(const bsmm_small_m_scales *s) {
    bits16 most = find_extreme(s, false), least = find_extreme(s, true);
    return divide_floats(s, &most, &least);
}

static bool prepare_none(const bsmm_small_m_scales *s) {
    memset(s->codes, 0, (size_t)(s->units * LANES));
    return true;
}

bool bsmm_small_m_bf16_prepare(const bsmm_small_m_scales *s) {
    static bool (*const prepares[])(const bsmm_small_m_scales *) = {
        [BSMM_SCALE_NONE] = prepare_none,
        [BSMM_SCALE_E8M0] = prepare_shifts,
        [BSMM_SCALE_E4M3] = prepare_products,
        [BSMM_SCALE_F32] = prepare_floats,
    };
    return prepares[s->p->b.m.format.scale](s);
}

/* Replaces e4m3 scale codes by product codes. A product code with m in bits 0 to 2 and d in bits 3
 * to 7 stands for the scale (1 + m / 8) * 2^(8 - d). A normal e4m3 code with the mantissa field m
 * and the exponent field e stands for (1 + m / 8) * 2^(e - 7), so d is 15 - e. This is e with all
 * four bits inverted. The codes with e = 0, which are zero and the subnormal scales, are converted
 * by a table. */
TARGET static void make_product_codes(uint8_t *codes, int64_t count) {
    const __m512i small = _mm512_broadcast_i32x4(_mm_setr_epi8(
        (char)BSMM_PRODUCT_ZERO, (char)(17 << 3), (char)(16 << 3), (char)(16 << 3 | 4), 15 << 3,
        15 << 3 | 2, 15 << 3 | 4, 15 << 3 | 6, 0, 0, 0, 0, 0, 0, 0, 0));
    for (int64_t i = 0; i < count; i += VECTOR_UNITS * LANES) {
        __m512i v = _mm512_loadu_si512(codes + i);
        __m512i inverted = _mm512_xor_si512(v, _mm512_set1_epi8(0x78));
        __mmask64 is_small = _mm512_cmplt_epu8_mask(v, _mm512_set1_epi8(8));
        _mm512_storeu_si512(codes + i, _mm512_mask_shuffle_epi8(inverted, is_small, small, v));
    }
}

bool bsmm_small_m_bf16_prepare_dots(const bsmm_small_m_scales *s) {
    if (!bsmm_small_m_bf16_prepare(s)) return false;
    if (s->p->b.m.format.scale == BSMM_SCALE_E4M3) make_product_codes(s->codes, s->units * LANES);
    return true;
}

#else

typedef int bsmm_small_m_bf16dot_scales_needs_x86_64;

#endif
