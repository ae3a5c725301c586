#ifndef BSMM_CUDA_PTX_CONVERT_H
#define BSMM_CUDA_PTX_CONVERT_H

#include "values.h"

static inline void bsmm_ptx_mov_halves(uint32_t word, uint16_t *low, uint16_t *high) {
    *low = uint16_t(word);
    *high = uint16_t(word >> 16);
}
static inline uint32_t bsmm_ptx_prmt(uint32_t low, uint32_t high, uint32_t selectors) {
    uint32_t tops = 0, bytes = __byte_perm(low, high, selectors);
    for (int i = 0; i < 4; i++)
        if (selectors >> 4 * i & 8) tops |= 0xffu << 8 * i;
    return (bytes & ~tops) | ((bytes >> 7 & 0x01010101u) * 0xff & tops);
}
static inline float bsmm_ptx_cvt_f32_f16(uint16_t half) {
    return emulated_value(EMULATED_F16, half);
}
static inline uint32_t bsmm_ptx_cvt_bf16x2(float high, float low) {
    return emulated_pair(EMULATED_BF16, 16, high, low);
}
static inline uint32_t bsmm_ptx_cvt_f16x2(float high, float low) {
    return emulated_pair(EMULATED_F16, 16, high, low);
}
static inline uint32_t bsmm_ptx_cvt_e4m3x2(float high, float low) {
    return emulated_pair(EMULATED_E4M3, 8, high, low);
}
static inline uint32_t bsmm_ptx_cvt_e5m2x2(float high, float low) {
    return emulated_pair(EMULATED_E5M2, 8, high, low);
}
static inline uint32_t bsmm_ptx_cvt_e4m3x2_f16x2(uint32_t halves) {
    return bsmm_ptx_cvt_e4m3x2(emulated_value(EMULATED_F16, halves >> 16),
                               emulated_value(EMULATED_F16, halves & 0xffff));
}
static inline uint32_t bsmm_ptx_cvt_e5m2x2_f16x2(uint32_t halves) {
    return bsmm_ptx_cvt_e5m2x2(emulated_value(EMULATED_F16, halves >> 16),
                               emulated_value(EMULATED_F16, halves & 0xffff));
}
static inline uint32_t bsmm_ptx_cvt_f16x2_e4m3x2(uint16_t pair) {
    return emulated_pair(EMULATED_F16, 16, emulated_decode(EMULATED_E4M3, pair >> 8),
                         emulated_decode(EMULATED_E4M3, pair & 0xff));
}

#endif
