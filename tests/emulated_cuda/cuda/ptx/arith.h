#ifndef BSMM_CUDA_PTX_ARITH_H
#define BSMM_CUDA_PTX_ARITH_H

#include "values.h"

static inline uint32_t bsmm_ptx_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    return emulated_halves(EMULATED_BF16, a, b, c,
                           [](double x, double y, double z) { return fma(x, y, z); });
}
static inline uint32_t bsmm_ptx_fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
    return emulated_halves(EMULATED_F16, a, b, c,
                           [](double x, double y, double z) { return fma(x, y, z); });
}
static inline uint32_t bsmm_ptx_mul_f16x2(uint32_t a, uint32_t b) {
    return emulated_halves(EMULATED_F16, a, b, 0, [](double x, double y, double) { return x * y; });
}

#endif
