#ifndef BSMM_CUDA_PTX_HALVES_H
#define BSMM_CUDA_PTX_HALVES_H

#include "values.h"

static inline uint32_t ptx_mul_bf16x2(uint32_t a, uint32_t b) {
    return emulated_halves(EMULATED_BF16, a, b, 0,
                           [](double x, double y, double) { return x * y; });
}
static inline uint32_t ptx_f16x2_of_e4m3x2(uint32_t codes) {
    return emulated_pair(EMULATED_F16, 16, emulated_decode(EMULATED_E4M3, codes >> 8 & 0xff),
                         emulated_decode(EMULATED_E4M3, codes & 0xff));
}
static inline float ptx_f32_of_f16(uint32_t code) {
    return emulated_value(EMULATED_F16, code & 0xffff);
}
static inline uint32_t ptx_bf16x2_of_f32(float high, float low) {
    return emulated_pair(EMULATED_BF16, 16, high, low);
}

#endif
