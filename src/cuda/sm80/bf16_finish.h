/* This is the epilogue of the generic bf16 GEMM kernels. Each warp has 32 x 32 accumulators in
 * shared memory (`strip`). The warp tests its accumulators. If fp32 may have overflowed or lost
 * terms to underflow in one of them, the warp recomputes it in double. Then the warp stores the
 * results. */
#ifndef BSMM_CUDA_SM80_BF16_FINISH_H
#define BSMM_CUDA_SM80_BF16_FINISH_H

#include "cuda/sm80/bf16_multiply.h"

enum { BF16_STRIP = 16 * 32 };

static __device__ __noinline__ void bf16_epilogue_store(const bsmm_bf16_job *p, const float *strip,
                                                        const uint32_t *nonzero, uint32_t a_base,
                                                        uint32_t b_base, uint32_t row,
                                                        uint32_t col) {
    const bsmm_bf16_side *a = &p->sides[0], *b = &p->sides[1];
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    for (uint32_t i = threadIdx.x % 32; i < BF16_ROW_TILES * BF16_STRIP; i += 32) {
        uint32_t r = row + i / 32, c = col + i % 32;
        bool wanted = a_base + r < a->rows && b_base + c < b->rows;
        bool zero = !nonzero[r] || !nonzero[BSMM_BF16_TILE + c];
        double sum = strip[i];
        uint32_t left = __ballot_sync(0xffffffffu, wanted && bf16_doubts(strip[i], zero));
        while (left) {
            int lane = __ffs((int)left) - 1;
            double again = bsmm_gpu_epilogue_sum_again(
                &a->o, &b->o, a_base + __shfl_sync(0xffffffffu, r, lane),
                b_base + __shfl_sync(0xffffffffu, c, lane), p->k);
            if ((int)(threadIdx.x % 32) == lane) sum = again;
            left &= left - 1;
        }
        if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, a_base + r, b_base + c, sum);
    }
}

#endif
