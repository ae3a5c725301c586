/* More scalar functions that kernels and the host share. */
#ifndef BSMM_GPU_SCALAR_H
#define BSMM_GPU_SCALAR_H

#include "base/scalar.h"

/* Byte i of the result is byte (selectors >> 4 * i) & 7 of low (0 to 3) and high (4 to 7). */
BSMM_SHARED uint32_t bsmm_pick_bytes(uint32_t low, uint32_t high, uint32_t selectors) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, selectors);
#else
    uint64_t bytes = low | (uint64_t)high << 32;
    uint32_t picked = 0;
    for (int i = 0; i < 4; i++)
        picked |= (uint32_t)(bytes >> 8 * (selectors >> 4 * i & 7) & 0xff) << 8 * i;
    return picked;
#endif
}

/* The larger of each pair of 16-bit halves. */
BSMM_SHARED uint32_t bsmm_max_halves(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __vmaxu2(a, b);
#else
    uint32_t low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | (a >> 16 > b >> 16 ? a >> 16 : b >> 16) << 16;
#endif
}

/* The high word of a product. */
BSMM_SHARED uint32_t bsmm_high_product(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

BSMM_SHARED uint32_t bsmm_max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* floor(log2 |value|) of a finite value other than 0. */
BSMM_SHARED int bsmm_exponent_of(float value) {
    uint32_t magnitude = bsmm_float_bits(value) & 0x7fffffffu;
    if (magnitude >= 0x00800000u) return (int)(magnitude >> 23) - 127;
#if defined(__CUDA_ARCH__)
    return 31 - __clz((int)magnitude) - 149;
#else
    return 31 - __builtin_clz(magnitude) - 149;
#endif
}

#endif
