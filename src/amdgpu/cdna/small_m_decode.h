/* Decodes elements to bf16 for the kernels for few rows of A (small_m_body.h). A lane decodes 32
 * consecutive elements of a row. If their scales are e8m0 or e4m3, it multiplies them by the
 * scales. The decoded values are exact. If a lane cannot decode elements exactly, because a scale
 * is NaN or outside the supported range, one of the 32 decoded values is NaN. The kernels then
 * compute all results that depend on this value again in double. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_DECODE_H
#define BSMM_AMDGPU_CDNA_SMALL_M_DECODE_H

#include "amdgpu/cdna/small_m_load.h"
#include "gpu/small_m_weights.h"

typedef float small_m_pair __attribute__((ext_vector_type(2)));

/* Truncates two fp32 numbers to bf16 and returns both in a word. The truncation is exact if the low
 * half of the fp32 number is 0. */
BSMM_DEVICE uint32_t small_m_join(float low, float high) {
    return __builtin_amdgcn_perm(bsmm_float_bits(high), bsmm_float_bits(low), 0x07060302);
}

/* Returns the mask that selects the bits of a 32-bit word in which any 1 means a nonzero element:
 * all bits but the signs. The signs of 6-bit elements lie at different bits in each word. The mask
 * for such elements therefore selects them too, so that -0 counts as nonzero. */
BSMM_DEVICE uint32_t small_m_magnitudes(small_m_format f) {
    if (small_m_is_wide(f)) return 0x7fff7fffu;
    return small_m_bits(f) == 4 ? 0x77777777u : small_m_bits(f) == 8 ? 0x7f7f7f7fu : 0xffffffffu;
}

/* Returns a word that is nonzero if any of the elements in four words is nonzero. */
BSMM_DEVICE uint32_t small_m_any(small_m_format f, bsmm_u32x4 words) {
    return (words[0] | words[1] | words[2] | words[3]) & small_m_magnitudes(f);
}

/* Returns 1 if any of a lane's 32 elements is nonzero, else 0. */
BSMM_DEVICE uint32_t small_m_any_of_lane(small_m_format f, const bsmm_u32x4 words[2]) {
    uint32_t any = small_m_any(f, words[0]);
    if (small_m_bits(f) > 4) any |= small_m_any(f, words[1]);
    return any != 0;
}

/* Returns the lowest e8m0 scale code that a kernel decodes. A nonzero block with a lower code makes
 * the results NaN, so that they are computed again in double. The limit is chosen so that no
 * product of two nonzero values becomes 0 in fp32, whose smallest number is 2^-149. If both
 * operands have elements of at most 8 bits other than e5m2, the smallest nonzero element is 2^-9.
 * With scales of at least 2^-60, nonzero values are at least 2^-69, and their products are at least
 * 2^-138. The smallest nonzero e5m2 element is 2^-16, so with e5m2 the limit is 2^-53. */
BSMM_DEVICE uint32_t small_m_lowest(small_m_shape s) {
    if (small_m_is_wide(s.a)) return BSMM_SMALL_M_LOWEST;
    return 127 - (s.a.elem == BSMM_ELEM_E5M2 || s.b.elem == BSMM_ELEM_E5M2 ? 53 : 60);
}

/* Returns 1 if a block with this e8m0 scale code must become NaN, so that the slow path computes
 * its results, else 0. This is so if the scale is above the range that the kernel decodes. It is
 * also so if the scale is below the range and the block has a nonzero element (`any` is 1). A block
 * of zeros may have any scale below the range, because quantizers give it such a scale. The
 * operators & and | keep the compiler from making branches. */
BSMM_DEVICE uint32_t small_m_is_beyond(small_m_shape s, uint32_t code, uint32_t any) {
    return ((uint32_t)(code < small_m_lowest(s)) & any) | (uint32_t)(code > BSMM_SMALL_M_HIGHEST);
}

/* Returns the bits of NaN in bf16 if `is_nan` is nonzero, else 0. */
BSMM_DEVICE uint32_t small_m_nan_bits(uint32_t is_nan) {
    return is_nan ? 0x7fc0u : 0;
}

/* Returns the value of an e4m3 code. The code must be without its sign bit and not NaN. */
BSMM_DEVICE float small_m_e4m3(uint32_t code) {
    return bsmm_bits_float(code << 20) * 0x1p120f;
}

/* Returns 1 if one of two e4m3 scales is negative or NaN, else 0. Such scales are rare, and the
 * kernels do not decode them. */
BSMM_DEVICE uint32_t small_m_has_odd_scale(uint32_t codes) {
    return (uint32_t)((codes & 0xff) >= 0x7f) | (uint32_t)(codes >= 0x7f00);
}

/* Splits each of eight f16 elements into two bf16 numbers whose sum is the element. The first
 * number has the element's leading eight significant bits, and the second number has the remaining
 * bits. If an element is Inf or NaN, its second number is NaN. */
BSMM_DEVICE void small_m_split(bsmm_u32x4 from, bsmm_u32x4 *leading, bsmm_u32x4 *rest) {
    typedef _Float16 halves __attribute__((ext_vector_type(2)));
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        union {
            uint32_t word;
            halves pair;
        } x = {from[i]};
        const float low = (float)x.pair[0], high = (float)x.pair[1];
        const small_m_pair cut = {bsmm_bits_float(bsmm_float_bits(low) & 0xffff0000u),
                                  bsmm_bits_float(bsmm_float_bits(high) & 0xffff0000u)};
        const small_m_pair left = (small_m_pair){low, high} - cut;
        (*leading)[i] = small_m_join(low, high);
        (*rest)[i] = small_m_join(left[0], left[1]);
    }
}

#if defined(__gfx950__)

/* gfx950 has instructions that decode two elements and multiply them by a power of two. This struct
 * holds these powers for the 32 elements of a lane. With e8m0 scales, scales[0] and scales[1] are
 * equal. With e4m3 scales, scales[0] is for one half of the elements and scales[1] for the other
 * half. `nan` is 0 if the lane can decode its elements exactly. Otherwise it has bits that make a
 * decoded element NaN: the lane combines the first two decoded elements with `nan` by OR. */
typedef struct small_m_factor {
    float scales[2];
    uint32_t nan;
} small_m_factor;

BSMM_DEVICE small_m_factor small_m_factor_of(small_m_shape s, small_m_format f, uint32_t codes,
                                             const bsmm_u32x4 words[2]) {
    if (f.scale == BSMM_SCALE_E4M3)
        return (small_m_factor){{small_m_e4m3(codes & 0xff), small_m_e4m3(codes >> 8)},
                                small_m_nan_bits(small_m_has_odd_scale(codes))};
    if (f.scale != BSMM_SCALE_E8M0) return (small_m_factor){{1, 1}, 0};
    const float scale = bsmm_bits_float(codes << 23);
    return (small_m_factor){
        {scale, scale},
        small_m_nan_bits(small_m_is_beyond(s, codes, small_m_any_of_lane(f, words)))};
}

/* Decodes pair `i` of a word of e2m1, multiplies it by a scale that is no power of two, and returns
 * the products as a pair of bf16. */
BSMM_DEVICE uint32_t small_m_decode_scaled(uint32_t word, uint32_t i, float scale) {
    small_m_pair pair;
    switch (i) {
    case 0:
        pair = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(word, 1, 0);
        break;
    case 1:
        pair = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(word, 1, 1);
        break;
    case 2:
        pair = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(word, 1, 2);
        break;
    default:
        pair = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(word, 1, 3);
    }
    pair *= (small_m_pair){scale, scale};
    return small_m_join(pair[0], pair[1]);
}

/* Decodes eight of a lane's 32 elements of 6 bits to bf16, beginning with element 8 * quarter.
 * gfx950 has only an instruction that decodes all 32 elements at once. The function executes it and
 * returns a quarter of its result. The kernel calls the function for each quarter, and the compiler
 * joins the four equal instructions to one. */
BSMM_DEVICE bsmm_u32x4 small_m_decode_six(small_m_format f, float scale, const bsmm_u32x4 words[2],
                                          uint32_t quarter) {
    typedef uint32_t six __attribute__((ext_vector_type(6)));
    union {
        __bf16 elements __attribute__((ext_vector_type(32)));
        bsmm_u32x4 quarters[4];
    } to;
    const six from = {words[0][0], words[0][1], words[0][2], words[0][3], words[1][0], words[1][1]};
    to.elements = f.elem == BSMM_ELEM_E2M3
                      ? __builtin_amdgcn_cvt_scalef32_pk32_bf16_fp6(from, scale)
                      : __builtin_amdgcn_cvt_scalef32_pk32_bf16_bf6(from, scale);
    return to.quarters[quarter];
}

/* Decodes eight of the elements that a lane holds to bf16, beginning with element 8 * quarter. The
 * decoded elements keep their order. */
BSMM_DEVICE bsmm_u32x4 small_m_decode(small_m_format f, const small_m_factor *factor,
                                      const bsmm_u32x4 words[2], uint32_t quarter) {
    typedef __bf16 pair __attribute__((ext_vector_type(2)));
    union {
        pair pairs[4];
        bsmm_u32x4 words;
    } to;
    const float scale = factor->scales[quarter / 2];
    if (f.elem == BSMM_ELEM_E2M1 && f.scale == BSMM_SCALE_E4M3) {
        const uint32_t word = words[0][quarter];
        to.words = (bsmm_u32x4){
            small_m_decode_scaled(word, 0, scale), small_m_decode_scaled(word, 1, scale),
            small_m_decode_scaled(word, 2, scale), small_m_decode_scaled(word, 3, scale)};
    } else if (small_m_bits(f) == 6) {
        to.words = small_m_decode_six(f, scale, words, quarter);
    } else if (f.elem == BSMM_ELEM_E2M1) {
        const uint32_t word = words[0][quarter];
        to.pairs[0] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, scale, 0);
        to.pairs[1] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, scale, 1);
        to.pairs[2] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, scale, 2);
        to.pairs[3] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, scale, 3);
    } else if (f.elem == BSMM_ELEM_E5M2) {
        const uint32_t low = words[quarter / 2][quarter % 2 * 2],
                       high = words[quarter / 2][quarter % 2 * 2 + 1];
        to.pairs[0] = __builtin_amdgcn_cvt_scalef32_pk_bf16_bf8(low, scale, false);
        to.pairs[1] = __builtin_amdgcn_cvt_scalef32_pk_bf16_bf8(low, scale, true);
        to.pairs[2] = __builtin_amdgcn_cvt_scalef32_pk_bf16_bf8(high, scale, false);
        to.pairs[3] = __builtin_amdgcn_cvt_scalef32_pk_bf16_bf8(high, scale, true);
    } else {
        const uint32_t low = words[quarter / 2][quarter % 2 * 2],
                       high = words[quarter / 2][quarter % 2 * 2 + 1];
        to.pairs[0] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(low, scale, false);
        to.pairs[1] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(low, scale, true);
        to.pairs[2] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(high, scale, false);
        to.pairs[3] = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(high, scale, true);
    }
    if (quarter == 0) to.words[0] |= factor->nan;
    return to.words;
}

/* Returns the factor by which the kernel multiplies its sums. On GPUs where elements are decoded to
 * a fraction of their values, this factor makes up for the fraction. On gfx950 the factor is 1,
 * because all elements are decoded to their exact values. */
BSMM_DEVICE float small_m_correction(small_m_format f) {
    (void)f;
    return 1;
}

#else
#    include "amdgpu/cdna/small_m_decode_gfx942.h"
#endif
#endif
