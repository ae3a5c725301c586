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
static inline void emulated_mma_vector(const uint64_t *registers, sim_tensor_vector *to) {
    float values[16];
    for (uint32_t k = 0; k < 16; k++)
        values[k] =
            __uint_as_float(uint32_t(registers[k % 8 / 2] >> (16 * (k % 2) + 32 * (k / 8))) << 16);
    sim_tensor_prepare(to, values, 16, SIM_TENSOR_LEAST_BF16);
}

/* Prepares the 16 rows of A. Lane 4 g + t holds parts of rows g and g + 8: its word i belongs to
 * row g + 8 i. */
static inline void emulated_mma_rows(const uint64_t *values, sim_tensor_vector *rows) {
    for (uint32_t i = 0; i < 16; i++)
        emulated_mma_vector(values + 32 * (i / 8) + 4 * (i % 8), &rows[i]);
}

/* Prepares the operands of one mma.sync in the warp's memory: 16 rows of A, then 8 columns of B. */
static inline void emulated_mma_prepare(const uint64_t *values, const void *) {
    sim_tensor_vector *to =
        static_cast<sim_tensor_vector *>(emulated_warp_memory(24 * sizeof(sim_tensor_vector)));
    emulated_mma_rows(values, to);
    for (uint32_t i = 0; i < 8; i++)
        emulated_mma_vector(values + 64 + 4 * i, &to[16 + i]);
}

static inline void ptx_mma_bf16(float d[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                uint32_t b0, uint32_t b1) {
    const uint32_t group = emulated_now->lane / 4, t = emulated_now->lane % 4;
    const uint64_t mine[3] = {uint64_t(a2) << 32 | a0, uint64_t(a3) << 32 | a1,
                              uint64_t(b1) << 32 | b0};
    emulated_exchange_words(mine, 3, emulated_mma_prepare, nullptr);
    const sim_tensor_vector *rows = static_cast<const sim_tensor_vector *>(emulated_warp_memory(0));
    const sim_tensor_vector *columns = rows + 16;
    for (uint32_t i = 0; i < 4; i++)
        d[i] = sim_tensor_sum(d[i], &rows[group + 8 * (i / 2)], &columns[2 * t + i % 2], 16,
                              emulated_mma_rule());
}

#endif
