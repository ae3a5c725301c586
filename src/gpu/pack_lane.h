/* These functions do the work of one thread of a packing kernel, i.e. of a kernel that converts an
 * operand to bf16 or 8-bit floats (pack.h). A thread packs an item: 8 elements if the result is
 * bf16, or 16 if it is an 8-bit float. The elements are consecutive along K in one row and one
 * scale block. They arrive in uint32 words, one element per byte.
 *
 * A group is 128 elements along K in one row, and it gets one scale. Each thread first finds the
 * range of its item's values ("look"). The kernel combines these ranges by maxima over the group.
 * From the result, each thread then chooses the group's scale ("decide"). Finally it writes its
 * packed elements ("emit"). */
#ifndef BSMM_GPU_PACK_LANE_H
#define BSMM_GPU_PACK_LANE_H

#include "gpu/pack.h"

/* bsmm_lane_look adds this bias to exponents. The sums are positive, so threads can find the
 * largest exponent by comparing unsigned numbers. */
enum { BSMM_LANE_BIAS = 1024 };

/* Holds the decoded block scale of a thread's elements. Fields that do not apply to the type of the
 * scale are neutral (exponent 0, factor 1). */
typedef struct bsmm_lane_scale {
    int exponent; /* `exponent` is the exponent of an e8m0 block scale. */
    float factor; /* `factor` is the value of an e4m3 or fp32 block scale. */
    bool is_nan;  /* `is_nan` is true if an e8m0 or e4m3 block scale is NaN. */
} bsmm_lane_scale;

BSMM_SHARED bsmm_lane_scale bsmm_lane_scale_of(uint32_t scale, uint32_t code) {
    bsmm_lane_scale s = {0, 1, false};
    /* `scale` is a value of the enum bsmm_scale: 1 for e8m0, 2 for e4m3, 3 for fp32. */
    if (scale == 1) {
        s.exponent = (int)code - 127;
        s.is_nan = code == 255;
    }
    if (scale == 2) {
        s.factor = bsmm_e4m3_scale(code);
        s.is_nan = (code & 0x7f) == 0x7f;
    }
    if (scale == 3) s.factor = bsmm_bits_float(code);
    return s;
}

/* Returns true if one of the thread's elements is nonzero. */
BSMM_SHARED bool bsmm_lane_any(const bsmm_narrow_codec *k, const uint32_t *codes, int words) {
    uint32_t any = 0;
    for (int i = 0; i < words; i++)
        any |= codes[i];
    return any & (k->sign - 1) * 0x01010101u;
}

/* Returns the number of binades (powers of two) between the largest magnitude among the thread's
 * elements and the largest finite number of the element format. */
BSMM_SHARED int bsmm_lane_room(const bsmm_narrow_codec *k, const uint32_t *codes, int words) {
    uint32_t mantissa = 23 - k->shift, largest = 1;
    for (int i = 0; i < 4 * words; i++) {
        uint32_t magnitude = codes[i / 4] >> 8 * (i % 4) & (k->sign - 1);
        if (magnitude < k->special) largest = bsmm_max_u32(largest, magnitude);
    }
    /* If `largest` is a subnormal number, it is doubled here until it is normal. `normalized` is
     * the number of doublings, i.e. of binades. */
    int normalized = 0;
    while (largest >> mantissa == 0) {
        largest <<= 1;
        normalized++;
    }
    return (int)((k->max_code - largest) >> mantissa) + normalized;
}

/* Several threads pack a group (128 elements of a row) with one scale. To choose this scale, they
 * compute two maxima over all threads of the group. Returns the two numbers of one thread, in one
 * 32-bit word:
 * - The high half is BSMM_LANE_BIAS plus the smallest exponent with which the group scale can hold
 *   the thread's elements.
 * - The low half is BSMM_LANE_BIAS minus the exponent of the thread's block scale. The largest such
 *   number therefore belongs to the smallest block scale.
 *
 * The function returns 0 if the thread's elements fit any group scale. */
BSMM_SHARED uint32_t bsmm_lane_look(const bsmm_pack_job *job, const bsmm_lane_scale *s,
                                    const uint32_t *codes, int words) {
    if (job->scale != 1 || s->is_nan || !bsmm_lane_any(&job->codec, codes, words)) return 0;
    int top = s->exponent;
    if (job->route == BSMM_PACK_FAST) top -= bsmm_lane_room(&job->codec, codes, words);
    return (uint32_t)(BSMM_LANE_BIAS + top) << 16 | (uint32_t)(BSMM_LANE_BIAS - s->exponent);
}

/* Returns the flag WIDE, i.e. "cannot be packed", if packing rounds (route FAST) and one of the
 * thread's elements is Inf. Packing with rounding may round an element of the second operand to 0,
 * and Inf times 0 would be NaN. An operand that contains Inf must therefore take the slow path. */
BSMM_SHARED uint32_t bsmm_lane_fast_flags(const bsmm_pack_job *job, const bsmm_lane_scale *s,
                                          const uint32_t *codes) {
    const bsmm_narrow_codec *k = &job->codec;
    uint32_t inf = k->special, met = 0;
    /* Only e5m2 has Inf among the formats that are packed here. It is recognized by its codec's
     * shift: rounding an fp32 number to e5m2 removes 21 mantissa bits. */
    if (job->route != BSMM_PACK_FAST || k->shift != 21 || s->is_nan) return 0;
    for (int i = 0; i < 16; i++)
        met |= (codes[i / 4] >> 8 * (i % 4) & (k->sign - 1)) == inf;
    return met ? BSMM_PACK_WIDE : 0u;
}

/* Holds the scale of a group of 128 elements along K, and the range of the group's values. */
typedef struct bsmm_lane_group {
    /* A group is 128 elements of a row, which get one fp32 scale when they are packed. `exponent`
     * is the unbiased exponent of that scale if the operand's block scales are e8m0. */
    int exponent;
    float scale;
    /* The packed operand's header (bsmm_pack_header) has fields with the same names. The kernel
     * raises the fields of the header to at least the values of each group. */
    uint32_t flags, high, low, inner;
} bsmm_lane_group;

BSMM_SHARED void bsmm_lane_extent(bsmm_lane_group *g, int high, int low, int inner) {
    g->high = (uint32_t)(512 + high);
    g->low = (uint32_t)(512 - low);
    g->inner = (uint32_t)(512 - inner);
}

BSMM_SHARED bsmm_lane_group bsmm_lane_unscaled(const bsmm_narrow_codec *k) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    bsmm_lane_extent(&g, k->high, k->low, k->low);
    return g;
}

/* Returns the scale and the range of values of a group (128 elements of a row) with e4m3 block
 * scales. Packing multiplies these block scales into the elements, so the group's scale is 1. A
 * nonzero e4m3 scale lies between 2^-9 and 448. */
BSMM_SHARED bsmm_lane_group bsmm_lane_by_e4m3(const bsmm_narrow_codec *k) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    bsmm_lane_extent(&g, k->high + 9, k->low - 9, k->low - 9);
    return g;
}

/* Returns the scale and the range of values of a group (128 elements of a row) whose fp32 block
 * scale becomes the group scale. If the scale is Inf, the function sets the flag WIDE, i.e. "cannot
 * be packed", because the GEMM kernel multiplies only the sum of the group by the scale. If the sum
 * has terms of both signs, the exact result is Inf - Inf = NaN, but the sum times Inf would be Inf.
 */
BSMM_SHARED bsmm_lane_group bsmm_lane_by_f32(const bsmm_narrow_codec *k, float scale) {
    bsmm_lane_group g = {0, scale, BSMM_PACK_SCALED, 0, 0, 0};
    uint32_t magnitude = bsmm_float_bits(scale) & 0x7fffffffu;
    if (magnitude == 0x7f800000u) g.flags |= BSMM_PACK_WIDE;
    if (magnitude == 0 || magnitude >= 0x7f800000u) return g;
    int exponent = bsmm_exponent_of(scale);
    bsmm_lane_extent(&g, exponent + 1 + k->high, exponent + k->low, k->low);
    return g;
}

/* Chooses the scale of a group (128 elements of a row) for packing to bf16. `low` and `high` are
 * the exponents of the group's smallest and largest value, and `top` is that of its largest block
 * scale. If all values are normal bf16 numbers, the scale is 1. Otherwise it is 2^top. If bf16
 * cannot hold the smallest value divided by this scale, the function sets the flag WIDE. */
BSMM_SHARED void bsmm_lane_fit_bf16(bsmm_lane_group *g, int top, int high, int low) {
    bool fits = low >= -126 && high <= 127;
    g->exponent = fits ? 0 : top;
    if (low - g->exponent < -126) g->flags |= BSMM_PACK_WIDE;
}

/* Returns the largest exponent that the block scales of a group (128 elements of a row) may have if
 * the group is to use the common scale of its row. `first_top` is the largest exponent of a block
 * scale in the row's first group. The returned exponent is larger, so that most of the row's other
 * groups can use the common scale too.
 *
 * For elements of less than 8 bits, the common scale is the largest block scale of the first group.
 * e4m3 holds elements times 2^job->fold, so block scales may be up to 2^job->fold times the common
 * scale, and down to 2^(job->fold - job->window) times it. For e2m1 these factors are 2^6 and 2^-8.
 * With a limit of 2^3, 3% of the rows of random e2m1 weights with seven different scales did not
 * fit. For elements of 8 bits, job->fold is 0. */
BSMM_SHARED int bsmm_lane_row_top(const bsmm_pack_job *job, int first_top) {
    return first_top + (job->fold ? job->fold : (int)job->window / 4);
}

/* Chooses the scale of a group (128 elements of a row) for exact packing to 8-bit floats (route
 * FP8). The exponents of the group's block scales lie between `bottom` and `top`. The group uses
 * the common scale of its row if all these exponents lie between row_top - job->window and row_top.
 * Otherwise the group gets a scale of its own. `maxima` is 0 if all elements of the group are zero.
 * Any scale would then do, but if the common scale is above 1, the group gets the scale 1. A larger
 * scale times a scale of the other operand might overflow to Inf, and Inf times 0 is NaN. */
BSMM_SHARED int bsmm_lane_fold_top(const bsmm_pack_job *job, bsmm_lane_group *g, uint32_t maxima,
                                   int top, int bottom, int row_top) {
    bool fits =
        maxima ? top <= row_top && row_top - bottom <= (int)job->window : row_top <= job->fold;
    if (fits) top = row_top;
    if (!fits && !maxima) top = bottom = job->fold;
    if (!fits) g->flags |= BSMM_PACK_UNEVEN;
    if (!fits && top - bottom > (int)job->window) g->flags |= BSMM_PACK_WIDE;
    g->exponent = top - job->fold;
    return top;
}

/* Chooses the scale of a group (128 elements of a row) for packing to 8-bit floats with rounding
 * (route FAST). All scales here are powers of two. The exponent of the group's own scale is `top`,
 * the smallest one with which no element of the group overflows. `row_top` is the exponent of the
 * common scale of the row, and `bottom` is the exponent of the group's smallest block scale. The
 * group uses the common scale instead of its own if three conditions hold:
 * - fp32 can hold the common scale.
 * - `top` is at most row_top and at least row_top - job->window.
 * - `bottom` is at least row_top - job->window.
 * Otherwise the flag UNEVEN says that the groups of the row have different scales. If all elements
 * of the group are 0 (`maxima` is 0), the group uses the common scale if that is at most 1. */
BSMM_SHARED void bsmm_lane_fast_fit(const bsmm_pack_job *job, bsmm_lane_group *g, uint32_t maxima,
                                    int top, int bottom, int row_top) {
    int least = top < bottom ? top : bottom;
    bool fits = maxima ? top <= row_top && row_top - least <= (int)job->window : row_top <= 0;
    fits &= row_top <= 127;
    if (!fits) g->flags |= BSMM_PACK_UNEVEN;
    int own = maxima ? top : 0;
    if (fits) own = row_top;
    /* -149 is the exponent of the smallest subnormal of fp32. */
    g->exponent = own < -149 ? -149 : own;
}

BSMM_SHARED bsmm_lane_group bsmm_lane_by_exponents(const bsmm_pack_job *job, uint32_t maxima,
                                                   int row_top) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    if (maxima == 0 && job->route == BSMM_PACK_BF16) return g;
    int top = (int)(maxima >> 16) - BSMM_LANE_BIAS;
    int bottom = BSMM_LANE_BIAS - (int)(maxima & 0xffff);
    if (job->route == BSMM_PACK_FP8)
        top = bsmm_lane_fold_top(job, &g, maxima, top, bottom, row_top);
    int high = top + job->codec.high, low = bottom + job->codec.low;
    if (job->route == BSMM_PACK_BF16) bsmm_lane_fit_bf16(&g, top, high, low);
    if (job->route == BSMM_PACK_FAST) bsmm_lane_fast_fit(job, &g, maxima, top, bottom, row_top);
    int inner = job->route == BSMM_PACK_FAST ? job->codec.low : low - g.exponent;
    if (maxima) bsmm_lane_extent(&g, high, low, inner);
    g.scale = bsmm_pow2(g.exponent);
    if (g.exponent != 0) g.flags |= BSMM_PACK_SCALED;
    return g;
}

/* Chooses the scale of a group (128 elements of a row), which several threads pack together. Each
 * of these threads has called bsmm_lane_look, whose result consists of two 16-bit numbers. `maxima`
 * has, in each half, the largest number that any of the threads got in this half. `row_top` is the
 * result of bsmm_lane_row_top for the group's row. It is used only if elements with e8m0 scales are
 * packed to 8-bit floats (routes FP8 and FAST). */
BSMM_SHARED bsmm_lane_group bsmm_lane_decide(const bsmm_pack_job *job, const bsmm_lane_scale *s,
                                             uint32_t maxima, int row_top) {
    bsmm_lane_group g = job->scale == 1   ? bsmm_lane_by_exponents(job, maxima, row_top)
                        : job->scale == 2 ? bsmm_lane_by_e4m3(&job->codec)
                        : job->scale == 3 ? bsmm_lane_by_f32(&job->codec, s->factor)
                                          : bsmm_lane_unscaled(&job->codec);
    if (!job->group_scales && g.flags) g.flags |= BSMM_PACK_WIDE;
    return g;
}

/* Returns fp32 bits whose high half is the bf16 code of `value`, which must be exact in bf16. Every
 * NaN becomes 0x7fff, the NaN that the hardware's conversion makes. */
BSMM_SHARED uint32_t bsmm_lane_bf16(float value) {
    uint32_t bits = bsmm_float_bits(value);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fff0000u : bits;
}

/* Decodes 8 elements, multiplies them by `factor` and converts the products to bf16. The conversion
 * is exact, so the low halves of the fp32 products are 0, and only their high halves are stored. */
BSMM_SHARED void bsmm_lane_emit_bf16(const bsmm_narrow_codec *k, const uint32_t *codes,
                                     float factor, bool is_nan, uint32_t *to) {
    for (int i = 0; i < 4; i++) {
        uint32_t pair = codes[i / 2] >> 16 * (i % 2);
        uint32_t low = bsmm_lane_bf16(bsmm_narrow_value(k, pair & 0xff) * factor);
        uint32_t high = bsmm_lane_bf16(bsmm_narrow_value(k, pair >> 8 & 0xff) * factor);
        to[i] = bsmm_pick_bytes(low, high, 0x7632);
        if (is_nan) to[i] = 0x7fff7fffu;
    }
}

/* Makes a table of eight e4m3 codes: those of e2m1's eight magnitudes, each times 2^shift, for -8
 * <= shift <= 6. If shift >= -5, all nonzero products are normal numbers of e4m3. The function then
 * adds `shift` to the exponents of the codes for shift 0. For each smaller shift it has a list of
 * the codes, because some products are subnormal. */
BSMM_SHARED void bsmm_lane_e2m1_codes(int shift, uint32_t codes[2]) {
    uint32_t step = (uint32_t)shift * 8u;
    /* Byte i of codes[0] is the e4m3 code of e2m1's magnitude number i (0, 0.5, 1 and 1.5), times
     * 2^shift. The bytes of codes[1] are those of the magnitudes 2, 3, 4 and 6. `step` adds `shift`
     * to the exponent of a code. The code of 0 is 0 for every shift. */
    codes[0] = 0x3c383000u + step * 0x01010100u;
    codes[1] = 0x4c484440u + step * 0x01010101u;
    if (shift == -6) codes[0] = 0x0c080400u, codes[1] = 0x1c181410u;
    if (shift == -7) codes[0] = 0x06040200u, codes[1] = 0x14100c08u;
    if (shift == -8) codes[0] = 0x03020100u, codes[1] = 0x0c080604u;
}

/* Converts four e2m1 codes, one per byte, to e4m3 by a lookup in `table`. */
BSMM_SHARED uint32_t bsmm_lane_look_up(const uint32_t table[2], uint32_t codes) {
    uint32_t magnitudes = codes & 0x07070707u, pairs = magnitudes | magnitudes >> 4;
    uint32_t selectors = bsmm_pick_bytes(pairs, 0, 0x4420);
    return bsmm_pick_bytes(table[0], table[1], selectors) | (codes & 0x08080808u) << 4;
}

/* Multiplies four finite codes of the format `from` by a factor and encodes the products in the
 * format `to`. */
BSMM_SHARED uint32_t bsmm_lane_recode(const bsmm_narrow_codec *from, const bsmm_narrow_codec *to,
                                      uint32_t codes, float factor) {
    uint32_t recoded = 0;
    for (int i = 0; i < 4; i++) {
        float value = bsmm_narrow_finite(from, codes >> 8 * i & 0xff) * factor;
        recoded |= bsmm_narrow_code(to, value) << 8 * i;
    }
    return recoded;
}

/* Returns the four elements in `recoded`, except that an element that is Inf or NaN in `codes`
 * keeps its original code. */
BSMM_SHARED uint32_t bsmm_lane_keep_special(const bsmm_narrow_codec *k, uint32_t codes,
                                            uint32_t recoded) {
    for (int i = 0; i < 4; i++)
        if ((codes >> 8 * i & 0x7f) >= k->special) {
            recoded &= ~(0xffu << 8 * i);
            recoded |= codes & 0xffu << 8 * i;
        }
    return recoded;
}

/* Packs 16 elements to 8-bit floats in `to`. Each element is multiplied by `factor`, which is its
 * block scale divided by the scale of its group, and rounded to the packed format. `same` says that
 * the elements already have the packed format. Inf and NaN then keep their codes, and if the factor
 * is 1, so do all elements. If `is_nan` is true, all packed elements are NaN. */
BSMM_SHARED void bsmm_lane_emit_fp8(const bsmm_pack_job *job, const uint32_t *codes, bool same,
                                    float factor, bool is_nan, uint32_t *to) {
    bool copied = same && factor == 1;
    for (int i = 0; i < 4; i++) {
        to[i] = copied ? codes[i] : bsmm_lane_recode(&job->codec, &job->to, codes[i], factor);
        if (same && !copied) to[i] = bsmm_lane_keep_special(&job->codec, codes[i], to[i]);
        if (is_nan) to[i] = 0x7f7f7f7fu;
    }
}

BSMM_SHARED void bsmm_lane_emit_e2m1(int shift, const uint32_t *codes, bool is_nan, uint32_t *to) {
    uint32_t table[2];
    bsmm_lane_e2m1_codes(shift, table);
    for (int i = 0; i < 4; i++)
        to[i] = is_nan ? 0x7f7f7f7fu : bsmm_lane_look_up(table, codes[i]);
}

/* Writes a thread's packed elements, 16 bytes, to `to`. `bits` is the number of bits of a source
 * element, and `out` is the number of bits of a packed element. Callers pass constants for both, so
 * the compiler removes the branches. */
BSMM_SHARED void bsmm_lane_item(const bsmm_pack_job *job, const bsmm_lane_scale *s,
                                const bsmm_lane_group *g, const uint32_t *codes, int bits, int out,
                                uint32_t *to) {
    bool any = bsmm_lane_any(&job->codec, codes, out == 16 ? 2 : 4);
    int shift = job->scale == 1 && any ? s->exponent - g->exponent : 0;
    float factor = job->scale == 2 ? s->factor : bsmm_pow2(shift);
    if (out == 16)
        bsmm_lane_emit_bf16(&job->codec, codes, factor, s->is_nan, to);
    else if (bits == 4)
        bsmm_lane_emit_e2m1(shift, codes, s->is_nan, to);
    else
        bsmm_lane_emit_fp8(job, codes, bits == 8, factor, s->is_nan, to);
}

/* To choose the scale of a group (128 elements of a row), the packer needs the largest and the
 * smallest exponent of the group's values. Returns the contribution of 8 values, which have 16 or
 * 32 bits and no block scales: in the high half their largest exponent, and in the low half their
 * smallest exponent, negated. BSMM_LANE_BIAS is added to both halves. The caller takes the maximum
 * of each half over the group. Zeros, Inf and NaN do not count. Sets *inexact to true if bf16
 * cannot hold one of the values exactly, else to false. */
BSMM_SHARED uint32_t bsmm_lane_look_wide(const float *values, bool *inexact) {
    uint32_t maxima = 0;
    *inexact = false;
    for (int i = 0; i < 8; i++) {
        uint32_t magnitude = bsmm_float_bits(values[i]) & 0x7fffffffu;
        if (magnitude == 0 || magnitude >= 0x7f800000u) continue;
        int exponent = bsmm_exponent_of(values[i]);
        uint32_t halves = (uint32_t)(BSMM_LANE_BIAS + exponent) << 16;
        maxima = bsmm_max_halves(maxima, halves | (uint32_t)(BSMM_LANE_BIAS - exponent));
        if (magnitude & 0xffff) *inexact = true;
    }
    return maxima;
}

BSMM_SHARED bsmm_lane_group bsmm_lane_decide_wide(const bsmm_pack_job *job, uint32_t maxima,
                                                  bool inexact) {
    bsmm_lane_group g = {0, 1, inexact ? BSMM_PACK_WIDE : 0u, 0, 0, 0};
    if (maxima == 0) return g;
    int top = (int)(maxima >> 16) - BSMM_LANE_BIAS;
    int bottom = BSMM_LANE_BIAS - (int)(maxima & 0xffff);
    if (bottom < -126) g.exponent = top;
    if (bottom - g.exponent < -126) g.flags |= BSMM_PACK_WIDE;
    g.scale = bsmm_pow2(g.exponent);
    if (g.exponent) g.flags |= BSMM_PACK_SCALED;
    if (!job->group_scales && g.flags) g.flags |= BSMM_PACK_WIDE;
    bsmm_lane_extent(&g, top + 1, bottom, bottom - g.exponent);
    return g;
}

/* Multiplies 8 values by 2^-exponent and converts them to bf16. The factor 2^-exponent itself may
 * be outside fp32's range, so the values are multiplied by two factors one after the other. */
BSMM_SHARED void bsmm_lane_emit_wide(const float *values, int exponent, uint32_t *to) {
    float half = bsmm_pow2(-exponent / 2), rest = bsmm_pow2(-exponent - -exponent / 2);
    uint32_t bits[2];
    for (int i = 0; i < 8; i++) {
        bits[i % 2] = bsmm_lane_bf16(values[i] * half * rest);
        if (i % 2) to[i / 2] = bsmm_pick_bytes(bits[0], bits[1], 0x7632);
    }
}

#endif
