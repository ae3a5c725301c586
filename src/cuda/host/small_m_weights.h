/* Lists the formats of weights B that the small-M kernels take (sm90a/small_m.def), and the kernels
 * for each of them. */
#ifndef BSMM_CUDA_HOST_SMALL_M_WEIGHTS_H
#define BSMM_CUDA_HOST_SMALL_M_WEIGHTS_H

#include "cuda/host/kernel.h"

/* Lists the generations of GPUs that have small-M kernels, i.e. kernels for few rows of A. The rows
 * of A are the columns of the kernels' tiles; an f16 or f32 row takes one column for each of its
 * bf16 parts. Hopper's kernels for more than 16 columns use wgmma. Blackwell has no wgmma, so its
 * kernels use mma.sync. With mma.sync, a thread has enough registers for at most 32 columns (16
 * with 4-bit weights and fp32 scales). */
enum { BSMM_SMALL_M_HOPPER, BSMM_SMALL_M_BLACKWELL, BSMM_SMALL_M_GENERATIONS };

/* Describes a format of B and the kernels for it. functions[g][i][j] is a kernel for generation g
 * of GPUs (BSMM_SMALL_M_HOPPER or _BLACKWELL). It takes up to 8, 16, 32 or 64 columns (j = 0 to 3).
 * A column is one row of A or one bf16 part of a row. The kernels with i = 0 are for products
 * without fp32 scales of B, in which no fp32 scale of A changes along K. The kernels with i = 1 are
 * for all other products. If a kernel would need more registers than a thread has, the kernel does
 * not exist and its name is NULL. */
typedef struct bsmm_small_m_weights {
    /* `format` is the format of B. With fp32 scales, scale blocks of other sizes are allowed than
     * `format` states. Along K, a block may have any multiple of 128 elements, or all of K. Along
     * B's rows, it may have any multiple of 16 rows, or any number of rows if `by_row` is set. */
    bsmm_format format;
    uint32_t step_scales; /* `step_scales` is the number of bytes of scales of a row of B in 128
                             elements of K. */
    /* If `by_row` is true, shared memory holds one fp32 scale per row of B, else per 16 rows. */
    bool by_row;
    const bsmm_cuda_function (*functions)[2][4];
} bsmm_small_m_weights;

/* Returns the entry for the format of B, or NULL if no kernel takes it. */
const bsmm_small_m_weights *bsmm_small_m_find_weights(const bsmm_operand *b);

/* Returns an arbitrary entry of the table of weight formats. The host uses it for a B whose format
 * no entry supports, to find out whether the device has small-M kernels at all. Every entry has
 * kernels for the same generations of GPUs. */
const bsmm_small_m_weights *bsmm_small_m_any_weights(void);

/* Returns the number of bits of a weight. */
uint32_t bsmm_small_m_bits(const bsmm_small_m_weights *w);

/* Returns the generation of kernels for the device. Devices without kernels get
 * BSMM_SMALL_M_HOPPER, and bsmm_cuda_refuse then reports that these kernels do not run on the
 * device. */
int bsmm_small_m_generation(const bsmm_product *p);

/* Returns true if A or B has fp32 scales that change along K. The kernels then sum each step of K
 * (128 elements) by itself, starting from 0. They multiply this sum by the step's scales of A and B
 * and add it to the total. */
bool bsmm_small_m_is_grouped(const bsmm_product *p);

/* This array holds, for each generation of GPUs, the kernel that converts A to bf16. */
extern const bsmm_cuda_function bsmm_small_m_prepare_a[BSMM_SMALL_M_GENERATIONS];

#endif
