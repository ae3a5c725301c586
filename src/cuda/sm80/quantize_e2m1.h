/* Encodes values as e2m1, rounded to nearest even.
 *
 * e2m1 has one mantissa bit, so the distance between two neighbouring e2m1 numbers is half of the
 * power of two of the smaller one, and 1/2 below 1. To round a magnitude to a multiple of this
 * distance, the code adds a large number whose unit in the last place is the distance, and
 * subtracts it again.
 *
 * To get the code, the value is first multiplied by a power of two, so that 1, the smallest normal
 * number of e2m1, becomes the smallest normal number of a 16-bit float. The bits of the rounded
 * value then contain the code. The functions use additions and multiplications instead of logical
 * operations where possible, because an SM executes logical operations at half the rate. */
#ifndef BSMM_CUDA_SM80_QUANTIZE_E2M1_H
#define BSMM_CUDA_SM80_QUANTIZE_E2M1_H

#include "cuda/ptx/arith.h"
#include "cuda/ptx/convert.h"
#include "gpu/recode_lane.h"

enum { E2M1_MOST = 7 };

/* Packs eight e2m1 codes of 4 bits into one word. The codes are in the four words of `tops`, two in
 * each word: one in the top four bits of each 16-bit half. */
static __device__ __forceinline__ uint32_t e2m1_packed(const uint32_t *tops) {
    uint32_t front = __byte_perm(tops[0], tops[1], 0x7351);
    uint32_t back = __byte_perm(tops[2], tops[3], 0x7351);
    uint32_t even = __byte_perm(front, back, 0x5410), odd = __byte_perm(front, back, 0x7632);
    return (even >> 4 & 0x0f0f0f0fu) | (odd & 0xf0f0f0f0u);
}

/* Rounds the magnitude of a value to e2m1. The caller has multiplied the value by 2^-14, which
 * moves 1, e2m1's smallest normal number, to f16's smallest normal number. The result can therefore
 * be converted to f16 exactly, and its f16 code contains the e2m1 code. */
static __device__ __forceinline__ float e2m1_rounded(float value) {
    float a = fabsf(value), least = fmaxf(a, 0x1p-14f);
    float magic = __uint_as_float(__float_as_uint(least) & 0x7f800000u) * 0x1p22f;
    return (a + magic) - magic;
}

/* Encodes two values to e2m1, each at the top of a 16-bit half of the result. The caller has
 * multiplied the values by 2^-14. The bits of `signs` give their signs. */
static __device__ __forceinline__ uint32_t e2m1_tops(float low, float high, uint32_t signs) {
    uint32_t halves = bsmm_ptx_cvt_f16x2(e2m1_rounded(high), e2m1_rounded(low));
    uint32_t codes = __vminu2(halves, (uint32_t)E2M1_MOST << 9 | (uint32_t)E2M1_MOST << 25);
    return codes * 8 | (signs & 0x80008000u);
}

/* Encodes 16 values to packed e2m1 codes. The caller has multiplied the values by 2^-14, so that
 * e2m1's smallest normal number, 1, has become f16's smallest normal number. signs_of[i] has the
 * sign of values[2 i] in bit 15 and the sign of values[2 i + 1] in bit 31. If signs_of is NULL, the
 * function uses the values' own signs. */
static __device__ __forceinline__ void e2m1_values(const float *values, const uint32_t *signs_of,
                                                   uint32_t *to) {
    uint32_t tops[8];
    for (int i = 0; i < 8; i++) {
        uint32_t signs = signs_of ? signs_of[i]
                                  : __byte_perm(__float_as_uint(values[2 * i]),
                                                __float_as_uint(values[2 * i + 1]), 0x7632);
        tops[i] = e2m1_tops(values[2 * i], values[2 * i + 1], signs);
    }
    to[0] = e2m1_packed(tops);
    to[1] = e2m1_packed(tops + 4);
}

/* Multiplies two f16 or bf16 values by a power of two and encodes them to e2m1, each at the top of
 * a 16-bit half. For f16 the power of two is the product of two factors, `first` and `second`,
 * because a single f16 number may not hold it. A product that becomes subnormal loses bits, but
 * such a product rounds to 0 anyway. */
static __device__ __forceinline__ uint32_t e2m1_pair(uint32_t elem, uint32_t pair, uint32_t first,
                                                     uint32_t second) {
    const uint32_t both = 0x00010001u, minus_0 = 0x80008000u;
    if (elem == BSMM_LANE_F16) {
        uint32_t scaled = bsmm_ptx_mul_f16x2(bsmm_ptx_mul_f16x2(pair, first), second);
        /* Limit magnitudes to 6, the largest magnitude of e2m1. */
        uint32_t a = __vminu2(scaled & 0x7fff7fffu, 0x4600 * both);
        uint32_t unit = __vmaxu2(a, 0x3c00 * both) & 0x7c007c00u;
        /* `unit` is the power of two with the exponent of `a`, but at least 1. The e2m1 numbers
         * with this exponent are multiples of unit / 2. `sum` is `a` plus 512 * unit, and the last
         * bit of its mantissa is worth unit / 2. The addition therefore rounds `a` to a multiple of
         * unit / 2. */
        uint32_t sum = bsmm_ptx_fma_f16x2(unit, 0x6000 * both, a);
        uint32_t rounded = bsmm_ptx_fma_f16x2(unit, 0xe000 * both, sum);
        return bsmm_ptx_mul_f16x2(rounded, 0x0400 * both) * 8 | (pair & 0x80008000u);
    }
    uint32_t scaled = bsmm_ptx_fma_bf16x2(pair, first, minus_0);
    /* Magnitudes above 6, the largest magnitude of e2m1, become 6. */
    uint32_t a = __vminu2(scaled & 0x7fff7fffu, 0x40c0 * both);
    uint32_t unit = __vmaxu2(a, 0x3f80 * both) & 0x7f807f80u;
    /* `unit` is the power of two with the exponent of `a`, but at least 1. The e2m1 numbers with
     * this exponent are multiples of unit / 2. `sum` is `a` plus 64 * unit, and the last bit of its
     * mantissa is worth unit / 2. The addition therefore rounds `a` to a multiple of unit / 2. */
    uint32_t sum = bsmm_ptx_fma_bf16x2(unit, 0x4280 * both, a);
    uint32_t rounded = bsmm_ptx_fma_bf16x2(unit, 0xc280 * both, sum);
    return bsmm_ptx_fma_bf16x2(rounded, 0x0080 * both, minus_0) * 64 | (pair & 0x80008000u);
}

/* Quantizes 16 values of f16 or bf16 to packed e2m1 codes. `factor` is the power of two by which
 * the values are multiplied. */
static __device__ __forceinline__ void e2m1_item(uint32_t elem, float factor, const uint32_t *raw,
                                                 uint32_t *to) {
    int exponent = (int)(__float_as_uint(factor) >> 23) - 127, half = exponent / 2;
    uint32_t first = (uint32_t)(half + 15) << 10, second = (uint32_t)(exponent - half + 15) << 10;
    uint32_t tops[8];
    if (elem == BSMM_LANE_BF16) first = __float_as_uint(factor) >> 16;
    for (int i = 0; i < 8; i++)
        tops[i] = e2m1_pair(elem, raw[i], first * 0x00010001u, second * 0x00010001u);
    to[0] = e2m1_packed(tops);
    to[1] = e2m1_packed(tops + 4);
}

#endif
