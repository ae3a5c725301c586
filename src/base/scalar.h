/* The host and GPU kernels share these scalar functions. nvcc compiles the same C code as the host
 * compiler, so tests that run on a CPU check the values that a GPU computes. */
#ifndef BSMM_SCALAR_H
#define BSMM_SCALAR_H

#include "base/device.h"

/* These functions return condition ? a : b without a branch. Both arguments are always computed.
 * This has two advantages. A compiler that may not move floating-point operations out of a branch
 * can vectorize a loop that calls the functions. And a GPU compiler cannot replace an expression
 * such as (a < b ? a : b) by a minimum instruction, which would not preserve the bits of a NaN. */
BSMM_SHARED uint32_t bsmm_select(bool condition, uint32_t a, uint32_t b) {
    return b ^ ((a ^ b) & (0u - (uint32_t)condition));
}

BSMM_SHARED float bsmm_select_float(bool condition, float a, float b) {
    return bsmm_bits_float(bsmm_select(condition, bsmm_float_bits(a), bsmm_float_bits(b)));
}

/* Replaces a NaN in `result`, which a GPU computed from a and b, by the NaN that an x86 processor
 * computes. The x86 result is a if a is NaN, else b if b is NaN, in both cases with the quiet bit
 * set. If neither is NaN, the x86 result is the default NaN with the sign bit set. A GPU chooses
 * other bits for a NaN, but quantized bytes that depend on these bits must be the same on a CPU and
 * a GPU. */
BSMM_SHARED float bsmm_with_nan_of(float a, float b, float result) {
    if (!BSMM_ON_GPU || result == result) return result;
    if (a != a) return bsmm_bits_float(bsmm_float_bits(a) | 0x00400000u);
    return bsmm_bits_float(b != b ? bsmm_float_bits(b) | 0x00400000u : 0xffc00000u);
}

BSMM_SHARED float bsmm_mul(float a, float b) {
    return bsmm_with_nan_of(a, b, bsmm_plain_mul(a, b));
}

BSMM_SHARED float bsmm_div(float a, float b) {
    return bsmm_with_nan_of(a, b, bsmm_plain_div(a, b));
}

/* Returns 2^exponent in fp32. The exponent must be at most 127. Below -126 the result is a
 * subnormal number, and below -149, the exponent of the smallest subnormal number, it is 0. */
BSMM_SHARED float bsmm_pow2(int exponent) {
    if (exponent >= -126) return bsmm_bits_float((uint32_t)(exponent + 127) << 23);
    return exponent < -149 ? 0 : bsmm_bits_float(1u << (exponent + 149));
}

/* Converts a magnitude to e4m3. `a` holds the bits of a float without its sign bit; the float must
 * not be NaN. The result is rounded to nearest even and saturates at 0x7e, the code of 448. For
 * normal results the code changes the exponent's bias from 127 to 7 and rounds at bit 20, where
 * e4m3's mantissa ends. For subnormal results it adds 2^14, because fp32 numbers near 2^14 are
 * multiples of 2^-9, e4m3's smallest value; the addition itself rounds. */
BSMM_SHARED uint32_t bsmm_e4m3_magnitude(uint32_t a) {
    uint32_t normal = (a - (120u << 23) + 0x7ffff + (a >> 20 & 1)) >> 20;
    uint32_t small = bsmm_float_bits(bsmm_bits_float(a) + 0x1p14f) - bsmm_float_bits(0x1p14f);
    /* 0x3c800000 is 2^-6, the smallest normal e4m3 value. */
    uint32_t code = bsmm_select(a < 0x3c800000u, small, normal);
    return code < 0x7e ? code : 0x7e;
}

BSMM_SHARED uint32_t bsmm_e4m3_code(float value) {
    uint32_t bits = bsmm_float_bits(value), a = bits & 0x7fffffffu, sign = bits >> 24 & 0x80;
    return bsmm_select(a > 0x7f800000u, 0x7f, bsmm_e4m3_magnitude(a)) | sign;
}

BSMM_SHARED float bsmm_e4m3_value(uint32_t code) {
    uint32_t a = code & 0x7f, sign = (code & 0x80) << 24;
    uint32_t small = bsmm_float_bits((float)(int32_t)a * 0x1p-9f);
    uint32_t finite = bsmm_select(a < 8, small, (a << 20) + (120u << 23)) | sign;
    return bsmm_bits_float(bsmm_select(a == 0x7f, 0x7fc00000u, finite));
}

#endif
