/* These functions wrap PTX instructions that convert numbers and move parts of registers (PTX ISA
 * "cvt", "mov", "prmt"). The first element of a pair is in the low half or the low byte of its
 * register. */
#ifndef BSMM_CUDA_PTX_CONVERT_H
#define BSMM_CUDA_PTX_CONVERT_H

#include <stdint.h>

/* Converts f16 to fp32, which is exact. */
static __device__ __forceinline__ float bsmm_ptx_cvt_f32_f16(uint16_t half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

/* Converts two fp32 to a pair of bf16, rounded to nearest even. bsmm_ptx_cvt_f16x2 converts them to
 * a pair of f16. The instructions require sm_80. */
static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_bf16x2(float high, float low) {
    uint32_t halves;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    return halves;
}

static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_f16x2(float high, float low) {
    uint32_t halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    return halves;
}

/* Splits a 32-bit register into its 16-bit halves (PTX ISA 9.7.9.3 "mov"). */
static __device__ __forceinline__ void bsmm_ptx_mov_halves(uint32_t word, uint16_t *low,
                                                           uint16_t *high) {
    asm("mov.b32 {%0, %1}, %2;" : "=h"(*low), "=h"(*high) : "r"(word));
}

/* Selects bytes (PTX ISA 9.7.9.7 "prmt"). Nibble i of `selectors` chooses byte i of the result. The
 * nibble's low three bits are the number of a byte: 0 to 3 for the bytes of `low`, 4 to 7 for those
 * of `high`. If the nibble's highest bit is set, the result is the sign bit of that byte, repeated
 * eight times. */
static __device__ __forceinline__ uint32_t bsmm_ptx_prmt(uint32_t low, uint32_t high,
                                                         uint32_t selectors) {
    uint32_t bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selectors));
    return bytes;
}

#if __CUDA_ARCH__ >= 890
/* Converts a pair of f16 to two e4m3 codes, rounded to nearest even and saturated. NaN becomes
 * 0x7f. bsmm_ptx_cvt_e5m2x2_f16x2 converts to two e5m2 codes. The instructions require sm_89. */
static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_e4m3x2_f16x2(uint32_t halves) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(pair) : "r"(halves));
    return pair;
}

static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_e5m2x2_f16x2(uint32_t halves) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(pair) : "r"(halves));
    return pair;
}

/* Converts two e4m3 codes to a pair of f16, which is exact. The instruction requires sm_89. */
static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_f16x2_e4m3x2(uint16_t pair) {
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
}

/* Converts two fp32 to two e4m3 codes, rounded to nearest even and saturated. NaN becomes 0x7f.
 * bsmm_ptx_cvt_e5m2x2 converts to two e5m2 codes. The instructions require sm_89. */
static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_e4m3x2(float high, float low) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

static __device__ __forceinline__ uint32_t bsmm_ptx_cvt_e5m2x2(float high, float low) {
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}
#endif

#endif
