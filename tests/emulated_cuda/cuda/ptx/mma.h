#ifndef BSMM_CUDA_PTX_MMA_H
#define BSMM_CUDA_PTX_MMA_H

#include "common/tensor_core.h"

static inline sim_tensor_rule emulated_mma_rule(void) {
    return sim_tensor_rule_of(false, SIM_TENSOR_LEAST_BF16, SIM_TENSOR_LEAST_BF16);
}

/* Converts the 16 bf16 elements of one row of A (or of one column of B) to fp32. Four lanes hold
 * these elements, and `registers` contains one 64-bit value of each of the four lanes, i.e. two
 * 32-bit registers. Lane t holds elements 2 t and 2 t + 1 in its first register, and elements 8 +
 * 2 t and 9 + 2 t in its second register. */
static inline void emulated_mma_values(const uint64_t *registers, float to[16]) {
    for (uint32_t k = 0; k < 16; k++)
        to[k] =
            __uint_as_float(uint32_t(registers[k % 8 / 2] >> (16 * (k % 2) + 32 * (k / 8))) << 16);
}

static inline void ptx_mma_bf16(float d[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                uint32_t b0, uint32_t b1) {
    const uint32_t group = emulated_now->lane / 4, t = emulated_now->lane % 4;
    /* Holds the two rows of A and the two columns of B, the dot products of which this lane
     * returns. */
    float a[2][16], b[2][16];
    emulated_mma_values(emulated_exchange(uint64_t(a2) << 32 | a0) + 4 * group, a[0]);
    emulated_mma_values(emulated_exchange(uint64_t(a3) << 32 | a1) + 4 * group, a[1]);
    const uint64_t *all = emulated_exchange(uint64_t(b1) << 32 | b0);
    emulated_mma_values(all + 4 * (2 * t), b[0]);
    emulated_mma_values(all + 4 * (2 * t + 1), b[1]);
    for (uint32_t i = 0; i < 4; i++)
        d[i] = sim_tensor_sum(d[i], a[i / 2], b[i % 2], 16, emulated_mma_rule());
}

#endif
