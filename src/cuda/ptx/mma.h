/* These functions wrap the matrix multiply-accumulate of a warp (PTX ISA 9.7.14.5 "mma"). */
#ifndef BSMM_CUDA_PTX_MMA_H
#define BSMM_CUDA_PTX_MMA_H

#include <stdint.h>

/* Computes d (16 x 8, fp32) += a (16 x 16, bf16) x b (16 x 8, bf16). The instruction requires
 * sm_80. */
static __device__ __forceinline__ void ptx_mma_bf16(float d[4], uint32_t a0, uint32_t a1,
                                                    uint32_t a2, uint32_t a3, uint32_t b0,
                                                    uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

#endif
