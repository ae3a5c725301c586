/* Multiplies few rows of A by weights B in bf16 without scales. The loop in this file reads the
 * weights as they are stored.
 *
 * Other kernels pack B first. Packing divides each row of B by a power of two, so that no product
 * is subnormal in fp32. If no power of two achieves that, packing marks the row as wide, and the
 * row's results are summed in double. The loop in this file does not divide. It takes only panels
 * (16 rows of B) in which each element is 0 or has a magnitude from 2^SMALLEST to below 2^LARGEST.
 * Panels with other elements must be packed.
 *
 * In a panel that the loop takes, no row is wide. Packed A has multiples of 2^-60 that are smaller
 * than 2, so all products are far from the ends of fp32's range. The sums therefore differ from
 * those of a packed panel only by a power of two, and have the same rounding errors.
 *
 * Elements of K are multiplied in pairs, first the odd and then the even element of a pair, as in
 * the other loops of this kernel. The instruction vdpbf16ps adds in this order, and the FMAs that
 * replace it on some processors are written in this order. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_avx512.h"
#    include "cpu/small_m/small_m_bf16dot_avx512.h"

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES, PANELS = BSMM_SMALL_M_PANELS };

/* The loop multiplies in steps of 32 elements of K. In each step, one row of B has 16 words of 32
 * bits, and each word holds a pair of bf16 elements. */
enum { WORDS = 16, STEP_BYTES = 4 * WORDS };

/* The loop multiplies elements that are 0 and elements with magnitudes of at least 2^SMALLEST and
 * less than 2^LARGEST. CODE_OF_POWER gives the bf16 code of a power of two. */
enum { SMALLEST = -43, LARGEST = 10 };
#    define CODE_OF_POWER(exponent) (((exponent) + 127) << 7)

/* Returns true if the panel has an element that the loop cannot multiply: one that is not 0 and
 * whose magnitude is below 2^SMALLEST or at least 2^LARGEST. */
INLINE bool is_unusual(const bsmm_bf16_extent *e) {
    const __m512i most = _mm512_set1_epi16(CODE_OF_POWER(LARGEST));
    const __m512i least = _mm512_set1_epi16(CODE_OF_POWER(SMALLEST) - 1);
    return _mm512_cmpge_epu16_mask(e->largest, most) | _mm512_cmplt_epu16_mask(e->smallest, least);
}

INLINE __m512 add_pair(__m512 acc, const uint8_t *a, int64_t width, int64_t r, __m512i b,
                       bool by_fma) {
    const float *wide = (const float *)(const void *)a;
    if (!by_fma)
        return _mm512_dpbf16_ps(
            acc, (__m512bh)_mm512_set1_epi32(((const int32_t *)(const void *)a)[r]), (__m512bh)b);
    __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(b, _mm512_set1_epi32((int)0xffff0000)));
    __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(b, 16));
    acc = _mm512_fmadd_ps(_mm512_set1_ps(wide[r]), odd, acc);
    return _mm512_fmadd_ps(_mm512_set1_ps(wide[width + r]), even, acc);
}

/* Loads one step (32 elements of K) of a panel of 16 rows. Lane i of word[d] is word d of row i.
 * The function also prefetches the same step of a later group of rows. */
INLINE void load_step(const bsmm_small_m_span *s, const uint8_t *b, const uint8_t *ahead,
                      __m512i word[WORDS]) {
    for (int j = 0; j < 4; j++)
        if (s->compact)
            bsmm_prefetch_strip(ahead, j, LANES * STEP_BYTES / 4);
        else
            bsmm_prefetch_rows(ahead, s->pitch, j, STEP_BYTES);
    if (s->compact)
        bsmm_load_strip(b, WORDS, word);
    else
        bsmm_transpose_lines(b, s->pitch, word);
}

/* Multiplies one step (32 elements of K) of a panel (16 rows of B) by `width` rows of A, and adds
 * the products to the accumulators `acc`. */
INLINE void add_step(const __m512i word[WORDS], const uint8_t *a, int width, bool by_fma,
                     bsmm_bf16_extent *e, __m512 *acc) {
#    pragma GCC unroll 16
    for (int w = 0; w < WORDS; w++, a += (by_fma ? 8 : 4) * width) {
        bsmm_bf16_include(e, word[w]);
#    pragma GCC unroll 16
        for (int r = 0; r < width; r++)
            acc[r] = add_pair(acc[r], a, width, r, word[w], by_fma);
    }
}

/* Adds the sums of a chunk (a range of K that is summed by itself) to D's accumulators. */
INLINE void add_chunk(const bsmm_small_m_span *s, int width, int panels, __m512 *acc) {
    for (int i = 0; i < panels * width; i++) {
        float *at = s->acc + i % width * BSMM_SMALL_M_COLUMNS + i / width * LANES;
        _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), acc[i]));
        acc[i] = _mm512_setzero_ps();
    }
}

INLINE float *part_at(const bsmm_small_m_span *s, int i, int width) {
    return s->part + i % width * BSMM_SMALL_M_COLUMNS + i / width * LANES;
}

#    define PANELS_OF(width) ((width) >= PANELS ? 1 : PANELS / (width))

INLINE uint32_t multiply(const bsmm_small_m_span *s, int width, bool by_fma) {
    const int panels = PANELS_OF(width);
    const int64_t unit = BSMM_BF16_FOLDED_UNIT,
                  stride = s->compact ? LANES * STEP_BYTES : STEP_BYTES;
    const int64_t a_bytes =
        by_fma ? BSMM_BF16_WIDE_UNIT_BYTES(width, unit) : BSMM_BF16_UNIT_BYTES(width, unit);
    const bsmm_bf16_extent none = bsmm_bf16_no_extent();
    bsmm_bf16_extent extents[PANELS] = {none, none, none, none};
    /* `left` is the number of steps (32 elements of K) to the end of the chunk, i.e. of the range
     * of K that is summed by itself. */
    int64_t left = s->chunk_steps - s->first;
    __m512 acc[BSMM_SMALL_M_WIDTH];
    for (int i = 0; i < panels * width; i++)
        acc[i] = s->first ? _mm512_loadu_ps(part_at(s, i, width)) : _mm512_setzero_ps();
    for (int64_t i = 0; i < s->steps; i++) {
        const uint8_t *b = s->b + i * stride;
        const uint8_t *ahead = bsmm_small_m_ahead(s, i * stride, s->row_steps * stride);
#    pragma GCC unroll 4
        for (int p = 0; p < panels; p++) {
            __m512i word[WORDS];
            load_step(s, b + p * s->panel_pitch, ahead + p * s->panel_pitch, word);
            add_step(word, s->a + i * a_bytes, width, by_fma, &extents[p], acc + p * width);
        }
        if (--left > 0) continue;
        add_chunk(s, width, panels, acc);
        left = s->chunk_steps;
    }
    if (s->ends)
        add_chunk(s, width, panels, acc);
    else
        for (int i = 0; i < panels * width; i++)
            _mm512_storeu_ps(part_at(s, i, width), acc[i]);
    uint32_t unusual = 0;
    for (int p = 0; p < panels; p++)
        unusual |= (uint32_t)is_unusual(&extents[p]) << p;
    return unusual;
}

#    define VARIANT(width, unused)                                                                 \
        TARGET static uint32_t dots_##width(const bsmm_small_m_span *s) {                          \
            return multiply(s, width, false);                                                      \
        }                                                                                          \
        TARGET static uint32_t fmas_##width(const bsmm_small_m_span *s) {                          \
            return multiply(s, width, true);                                                       \
        }
#    define PANELS_OF_TILE(width, unused) PANELS_OF(width),
#    define MULTIPLY(width, name)         name##_##width,
BSMM_SMALL_M_EACH_TILE(VARIANT, 0)

const bsmm_small_m_bf16_plain_form bsmm_small_m_bf16_plain = {
    .panels = {BSMM_SMALL_M_EACH_TILE(PANELS_OF_TILE, 0)},
    .multiply = {{BSMM_SMALL_M_EACH_TILE(MULTIPLY, dots)},
                 {BSMM_SMALL_M_EACH_TILE(MULTIPLY, fmas)}},
};

#else

typedef int bsmm_small_m_bf16_plain_needs_x86_64;

#endif
