/* Applies fp32 scales of B that change along K in a mixed-input kernel (mixed_kernels.h). Each row
 * of B has one scale for each step of 128 elements along K.
 *
 * The usual method would keep two accumulators for each result: one for the current step, and one
 * for the total over the steps before. These would need too many registers. The kernel therefore
 * keeps only the total, divided by the scale of the current step. wgmma can then add the products
 * of the step without scaling them. To go on to the next step, the kernel multiplies the
 * accumulators by the current scale divided by the next scale. After the last step it multiplies
 * them by the last scale. The rounding errors of these quotients are part of the kernel's error
 * bound (cuda_sm90a_mixed.c). */
#ifndef BSMM_CUDA_SM90A_MIXED_GROUPS_H
#define BSMM_CUDA_SM90A_MIXED_GROUPS_H

#include "cuda/sm90a/mixed_weights.h"

/* Holds the scales of a thread's two rows of B, which are 8 rows apart. */
typedef struct mixed_groups {
    const float *from[2]; /* `from` holds the addresses of the scales of step `next`. */
    uint32_t stride;      /* The scale of the following step lies `stride` floats later. */
    float current[2], next[2];
} mixed_groups;

/* Finds the addresses of the scales of rows `row` and `row` + 8 of B from step `step` on, and loads
 * the scales of step `step`. */
static __device__ __forceinline__ mixed_groups mixed_find_groups(const bsmm_small_m_params *p,
                                                                 uint32_t row, uint32_t step) {
    mixed_groups s;
    const float *const scales = (const float *)p->b.scales;
    const uint64_t along = bsmm_axis_at(&p->b.col_map, step * BSMM_SMALL_M_K);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        s.from[i] = scales + bsmm_axis_at(&p->b.row_map, min(row + i * 8, p->n - 1)) + along;
        const float scale = small_m_tame(*s.from[i]);
        /* The kernel keeps the accumulators divided by the scale of the current step, so this scale
         * must not be 0. A scale of 0 is replaced by 1 here. To make the products of the step 0,
         * mixed_group_factors multiplies the step's weights by 0. */
        s.current[i] = scale == 0 ? 1 : scale;
        s.next[i] = scale;
    }
    s.stride =
        (uint32_t)(bsmm_axis_at(&p->b.col_map, BSMM_SMALL_M_K) - bsmm_axis_at(&p->b.col_map, 0));
    return s;
}

/* Starts the loads of B's fp32 scales for the next step (128 elements of K). */
static __device__ __forceinline__ void mixed_load_groups(mixed_groups *s) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        s->from[i] += s->stride;
        s->next[i] = *s->from[i];
    }
}

/* Sets the factors by which the next step's weights are multiplied before the tensor cores multiply
 * them by A. The factors do not contain B's scales: a scale is applied to the accumulators, which
 * are kept divided by the scale of the current step (mixed_enter_group). A scale of 0 cannot be
 * applied in this way, because nothing can be divided by 0. The factor is then 0 instead, which
 * makes the products of the step 0. For all other scales the factor is 1 if weights are decoded to
 * f16 (`half` is true). If they are decoded to bf16, it is 2^120, which corrects the exponent bias
 * of decoded e4m3. */
static __device__ __forceinline__ void mixed_group_factors(const bool half, const mixed_groups *s,
                                                           small_m_factors *to) {
    const uint32_t one = half ? 0x3c003c00u : 0x7b807b80u;
#pragma unroll
    for (int row = 0; row < 2; row++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            to->f[half][row][0] = to->f[half][row][1] = s->next[row] == 0 ? 0 : one;
}

/* Multiplies the accumulators of the thread's two rows of B by one factor for each row. */
static __device__ __forceinline__ void mixed_multiply_rows(const int tiles, const float by[2],
                                                           float (*sums)[4]) {
#pragma unroll
    for (int i = 0; i < tiles; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sums[i][j] *= by[j / 2];
}

/* The accumulators hold the total over K divided by the scale of the current step of K, so products
 * of this step can be added without scaling. Multiplies the accumulators by the quotient of the
 * current and the next step's scale, so that products of the next step can be added. */
static __device__ __forceinline__ void mixed_enter_group(const int tiles, mixed_groups *s,
                                                         float (*sums)[4]) {
    float by[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float next = small_m_tame(s->next[i]);
        by[i] = next == 0 ? 1 : s->current[i] * __frcp_rn(next);
        if (next != 0) s->current[i] = next;
    }
    mixed_multiply_rows(tiles, by, sums);
}

#endif
