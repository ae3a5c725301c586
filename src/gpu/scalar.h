/* Defines scalar functions for kernels and the host. base/scalar.h has more of them. */
#ifndef BSMM_GPU_SCALAR_H
#define BSMM_GPU_SCALAR_H

#include "base/scalar.h"

BSMM_SHARED uint32_t bsmm_max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Returns floor(log2 |value|). The value must be finite and nonzero. */
BSMM_SHARED int bsmm_exponent_of(float value) {
    uint32_t magnitude = bsmm_float_bits(value) & 0x7fffffffu;
    if (magnitude >= 0x00800000u) return (int)(magnitude >> 23) - 127;
    return 31 - bsmm_leading_zeros(magnitude) - 149;
}

#endif
