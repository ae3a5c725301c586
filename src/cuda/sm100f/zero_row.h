/* The sm_100f kernels share this function, which tests whether all elements of a row of A or B are
 * 0. If an accumulator is 0, the kernel must find out whether products have underflowed to 0. They
 * have not if the accumulator's row of A or its row of B has only zeros. */
#ifndef BSMM_CUDA_SM100F_ZERO_ROW_H
#define BSMM_CUDA_SM100F_ZERO_ROW_H

#include "gpu/epilogue.h"

/* Returns true if all K elements of a row of A or B are 0. Each lane of the warp tests a part of
 * the elements, and all lanes get the result. */
static __device__ __noinline__ bool is_zero_row(const bsmm_gpu_operand *o, uint32_t row,
                                                uint32_t k) {
    for (uint32_t first = 0; first < k; first += 32) {
        const uint32_t col = first + threadIdx.x % 32;
        const bool zero = col >= k || bsmm_gpu_elem(o, bsmm_gpu_code(o, row, col)) == 0;
        if (!__all_sync(0xffffffffu, zero)) return false;
    }
    return true;
}

#endif
