/* Checks the scales of a panel (16 rows of B) before the panel's elements are read. For each row it
 * computes `wide`, the difference between the exponents of the row's largest and smallest nonzero
 * value. This number equals that of the packer (pack_f32fma_rows.c), which decides by it whether
 * fp32 sums are accurate enough (engine_gemm.h). If the scales alone do not suffice to compute the
 * number, the panel is packed instead.
 *
 * The limits below keep all sums in fp32's range. Let `top` be the exponent of the largest decoded
 * element. Decoded elements are then below 2^(top + 1), and packed elements of A are below 2^52. A
 * sum of 2^20 products is therefore below 2^(top + 73). An accumulator is such a sum divided by the
 * scale of the current block, relative to the row's largest scale. This ratio of scales is at least
 * 2^-(53 - top), so accumulators are below 2^126. At the lower end of the range, no product is
 * below 2^-74, so no product and no rounding error of a scaled sum is subnormal. */
#include "cpu/small_m/small_m_f32fma.h"

#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_scales.h"

#include <math.h>

/* The functions below are compiled for AVX2 without a check of the processor, because only kernels
 * that need AVX2 themselves call them. */
#if defined(__x86_64__)
#    define TARGET __attribute__((target("avx2,fma")))
#else
#    define TARGET
#endif

enum {
    /* The number `wide` of a row is the exponent of its largest value minus that of its smallest
     * nonzero value. If `wide` of a row of A plus `wide` of a row of B exceeds SPAN_LIMIT + top,
     * fp32 sums could lose terms, and the panel (16 rows of B) must be packed before it is
     * multiplied. `top` is the exponent of the largest decoded element. */
    SPAN_LIMIT = 125,
    /* If the largest scale of a row of B is more than 2^(DEEPEST - top) times the smallest, fp32
     * sums could lose terms. The panel with this row (16 rows of B) must then be packed before it
     * is multiplied. `top` is the exponent of the largest decoded element. */
    DEEPEST = 53,
    /* E4M3_SPREAD is the difference between the exponents of the largest and the smallest e4m3
     * scale. */
    E4M3_SPREAD = 17,
    E8M0_NAN = 0xff,
    /* These are the exponents of the largest and the smallest f32 and bf16 weight that the kernel
     * multiplies without packing it. */
    MOST_EXPONENT = BSMM_SMALL_M_F32FMA_LARGEST - 1,
    LEAST_EXPONENT = BSMM_SMALL_M_F32FMA_SMALLEST,
};

static const bsmm_small_m_f32fma_halves *halves_of(const bsmm_small_m_scales *s) {
    return bsmm_small_m_f32fma_halves_of(s->p->b.m.format.elem);
}

/* Sets `wide` of each of the 16 rows of a panel, i.e. the difference between the exponents of the
 * row's largest and smallest nonzero value. scales[i] is the difference between the exponents of
 * the largest and the smallest scale of row i. With e8m0 scales, the multiply loop uses the scales
 * of a row divided by the row's largest one, and `lower` is 0. With e4m3 scales it uses them
 * undivided. The largest scale of a row may then be as small as 2^-lower, and sums may be smaller
 * by this factor, so the limit of `wide` is lower by `lower`. Returns false if sums could leave
 * fp32's range. The panel must then be packed. */
static bool set_spans(const bsmm_small_m_scales *s, const int scales[LANES], int lower) {
    const bsmm_small_m_f32fma_halves *h = halves_of(s);
    for (int lane = 0; lane < LANES; lane++) {
        int span = h->extent + scales[lane];
        if (s->a_wide + span > SPAN_LIMIT + h->top - lower) return false;
        s->wide[lane] = (uint8_t)span;
    }
    return true;
}

static void multiply_factors(const bsmm_small_m_scales *s, const int exponents[LANES]) {
    for (int lane = 0; lane < LANES; lane++)
        s->factors[lane] *= bsmm_double_pow2(exponents[lane] + halves_of(s)->raw);
}

/* Replaces the e8m0 scale of each block of a panel (16 rows of B) by a factor, which is a power of
 * two. The function stores the factor's exponent plus 127 in place of the scale's code.
 *
 * The multiply loop does not multiply elements by scales. Instead, an accumulator holds the sum
 * divided by the scale of the current block. Before the loop goes on to the next block, it
 * multiplies the accumulator by the scale of the current block and divides it by the scale of the
 * next block. The factor of a block is the quotient of these two scales: the previous block's scale
 * divided by its own.
 *
 * K is divided into chunks. The sum of a chunk begins at 0, so the first block of a chunk needs no
 * such factor. It has another factor instead. At the end of a chunk, its sum is divided by the
 * scale of the chunk's last block. The total of the earlier chunks is divided by the scale of the
 * previous chunk's last block. Before the two are added, the total is multiplied by the quotient of
 * these scales: that of the previous chunk's last block divided by that of this chunk's last block.
 *
 * At the end, the totals are the sums divided by the scale of the last block. exponents[i] becomes
 * the exponent of row i's last scale. The caller multiplies it into the row's factor. */
TARGET static void leave_steps(const bsmm_small_m_scales *s, int exponents[LANES]) {
    codes16 before = load_codes(s, 0);
    for (int64_t i = 0; i < s->units; i++) {
        codes16 v = load_codes(s, i), to = v, step;
        if (i % s->chunk == 0) to = load_codes(s, bsmm_min_i64(i + s->chunk, s->units) - 1);
        if (i == 0) before = to;
        for (int lane = 0; lane < LANES; lane++)
            step.lane[lane] = (uint8_t)(127 + before.lane[lane] - to.lane[lane]);
        memcpy(s->codes + i * LANES, &step, sizeof step);
        before = v;
    }
    for (int lane = 0; lane < LANES; lane++)
        exponents[lane] = before.lane[lane] - 127;
}

/* Divides the e8m0 scales of each row by the row's largest scale, whose code is in `top`. The
 * quotients are powers of two, and the function stores their exponents plus 127 as the new codes.
 * exponents[i] becomes the exponent of row i's largest scale. The caller multiplies this scale into
 * the row's factor. */
TARGET static void leave_exponents(const bsmm_small_m_scales *s, const codes16 *top,
                                   int exponents[LANES]) {
    for (int64_t i = 0; i < s->units; i++) {
        codes16 v = load_codes(s, i);
        for (int lane = 0; lane < LANES; lane++)
            v.lane[lane] = (uint8_t)(v.lane[lane] - top->lane[lane] + 127);
        memcpy(s->codes + i * LANES, &v, sizeof v);
    }
    for (int lane = 0; lane < LANES; lane++)
        exponents[lane] = top->lane[lane] - 127;
}

TARGET static bool prepare_e8m0(const bsmm_small_m_scales *s) {
    codes16 top = find_extreme_code(s, 0, 0), bottom = find_extreme_code(s, 0xff, 0);
    int depths[LANES], exponents[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        depths[lane] = top.lane[lane] + bottom.lane[lane] - 0xff;
        if (top.lane[lane] == E8M0_NAN || depths[lane] > DEEPEST - halves_of(s)->top) return false;
    }
    if (!set_spans(s, depths, 0)) return false;
    if (bsmm_small_m_f32fma_scaling_of(s->p) == BSMM_SMALL_M_F32FMA_SUMS)
        leave_steps(s, exponents);
    else
        leave_exponents(s, &top, exponents);
    multiply_factors(s, exponents);
    return true;
}

static bool prepare_none(const bsmm_small_m_scales *s) {
    static const int zeros[LANES];
    memset(s->codes, 127, (size_t)(s->units * LANES));
    if (!set_spans(s, zeros, 0)) return false;
    multiply_factors(s, zeros);
    return true;
}

/* Checks e4m3 scales. Returns false, so that the panel is packed, if a scale is negative or NaN, or
 * if all scales of a row are 0. The multiply loop converts the scale codes as if they were f16
 * codes, which gives 2^-8 times the scales. To correct this, the function multiplies the row's
 * factor by 2^8. */
TARGET static bool prepare_e4m3(const bsmm_small_m_scales *s) {
    codes16 top = find_extreme_code(s, 0, 0), least = find_extreme_code(s, 0xff, 1);
    int spans[LANES], exponents[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        if (top.lane[lane] == 0 || top.lane[lane] >= 0x7f) return false;
        uint32_t bottom = 0x100u - least.lane[lane];
        spans[lane] = ilogb(bsmm_elem_decode(BSMM_ELEM_E4M3, top.lane[lane])) -
                      ilogb(bsmm_elem_decode(BSMM_ELEM_E4M3, bottom));
        exponents[lane] = 8;
    }
    if (!set_spans(s, spans, E4M3_SPREAD)) return false;
    multiply_factors(s, exponents);
    return true;
}

TARGET static bool prepare_floats(const bsmm_small_m_scales *s) {
    bits16 most = find_extreme(s, false), least = find_extreme(s, true);
    int spans[LANES];
    static const int zeros[LANES];
    if (!divide_floats(s, &most, &least)) return false;
    for (int lane = 0; lane < LANES; lane++)
        spans[lane] = (int)(most.lane[lane] >> 23) - (int)((0 - least.lane[lane]) >> 23);
    if (!set_spans(s, spans, 0)) return false;
    multiply_factors(s, zeros);
    return true;
}

bool bsmm_small_m_f32fma_prepare(const bsmm_small_m_scales *s) {
    static bool (*const prepares[])(const bsmm_small_m_scales *) = {
        [BSMM_SCALE_NONE] = prepare_none,
        [BSMM_SCALE_E8M0] = prepare_e8m0,
        [BSMM_SCALE_E4M3] = prepare_e4m3,
        [BSMM_SCALE_F32] = prepare_floats,
    };
    return prepares[s->p->b.m.format.scale](s);
}

const bsmm_small_m_f32fma_halves *bsmm_small_m_f32fma_halves_of(uint32_t elem) {
    static const bsmm_small_m_f32fma_halves halves[BSMM_ELEM_COUNT] = {
        [BSMM_ELEM_F32] = {.top = MOST_EXPONENT, .extent = MOST_EXPONENT - LEAST_EXPONENT},
        [BSMM_ELEM_BF16] = {.top = MOST_EXPONENT, .extent = MOST_EXPONENT - LEAST_EXPONENT},
        [BSMM_ELEM_F16] = {.raw = 0, .top = 15, .extent = 39},
        [BSMM_ELEM_E4M3] = {.raw = 8, .top = 0, .extent = 17, .shift = 1, .mask = 0xbf80},
        [BSMM_ELEM_E5M2] = {.raw = 0, .top = 15, .extent = 31, .shift = 0, .mask = 0xff00},
        [BSMM_ELEM_E3M2] = {.raw = 12, .top = -8, .extent = 8, .shift = 2, .mask = 0x9f00},
        [BSMM_ELEM_E2M3] = {.raw = 14, .top = -12, .extent = 5, .shift = 3, .mask = 0x8f80},
        [BSMM_ELEM_E2M1] = {.raw = 2, .top = 0, .extent = 3},
    };
    return halves[elem].extent ? &halves[elem] : NULL;
}

bsmm_small_m_f32fma_scaling bsmm_small_m_f32fma_scaling_of(const bsmm_product *p) {
    uint32_t scale = p->b.m.format.scale;
    if (scale == BSMM_SCALE_E4M3) return BSMM_SMALL_M_F32FMA_ELEMENTS;
    if (!bsmm_f32fma_by_segment(p)) return BSMM_SMALL_M_F32FMA_SUMS;
    return scale == BSMM_SCALE_E8M0 ? BSMM_SMALL_M_F32FMA_ELEMENTS : BSMM_SMALL_M_F32FMA_NONE;
}
