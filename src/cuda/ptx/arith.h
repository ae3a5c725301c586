/* These functions wrap arithmetic instructions on pairs of 16-bit floats (PTX ISA 9.7.4, "Half
 * Precision Floating Point Instructions"). */
#ifndef BSMM_CUDA_PTX_ARITH_H
#define BSMM_CUDA_PTX_ARITH_H

#include <stdint.h>

/* PTX ISA 9.7.4.4 "fma", since sm_80: computes a * b + c for two bf16 at once, without flushing
 * subnormals to 0. */
static __device__ __forceinline__ uint32_t bsmm_ptx_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

static __device__ __forceinline__ uint32_t bsmm_ptx_fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* PTX ISA "mul": computes a * b for two f16 at once, without flushing subnormals to 0. */
static __device__ __forceinline__ uint32_t bsmm_ptx_mul_f16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

#endif
