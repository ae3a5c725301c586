/* These functions wrap instructions for arithmetic on pairs of 16-bit floats in a register, and for
 * conversions of such pairs (PTX ISA 9.7.4 "Half Precision Floating-Point Instructions", and
 * "cvt"). */
#ifndef BSMM_CUDA_PTX_HALVES_H
#define BSMM_CUDA_PTX_HALVES_H

#include <stdint.h>

/* PTX ISA "mul", since sm_90: multiplies the pair of bf16 in `a` by the pair in `b`, element by
 * element, without flushing subnormals to 0. */
static __device__ __forceinline__ uint32_t ptx_mul_bf16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* PTX ISA "cvt", since sm_89: converts two e4m3 codes to a pair of f16, which is exact. NaN stays
 * NaN. */
static __device__ __forceinline__ uint32_t ptx_f16x2_of_e4m3x2(uint32_t codes) {
    uint32_t d;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"((uint16_t)codes));
    return d;
}

/* PTX ISA "cvt": converts f16 to fp32, which is exact. */
static __device__ __forceinline__ float ptx_f32_of_f16(uint32_t code) {
    float d;
    asm("cvt.f32.f16 %0, %1;" : "=f"(d) : "h"((uint16_t)code));
    return d;
}

/* PTX ISA "cvt", since sm_80: converts two fp32 to a pair of bf16, rounded to nearest even. `low`
 * goes to the low half. */
static __device__ __forceinline__ uint32_t ptx_bf16x2_of_f32(float high, float low) {
    uint32_t d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}

#endif
