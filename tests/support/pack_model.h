/* A model of the GPU's packing kernels that runs on the CPU. It calls their per-thread functions
 * (gpu/pack_lane.h) for one thread after another. Elements and scales are loaded by the scalar
 * functions of the format instead of the kernels' vector loads. */
#ifndef BSMM_TEST_PACK_MODEL_H
#define BSMM_TEST_PACK_MODEL_H

#include "cuda/host/pack_plan.h"

/* Writes every byte that the launch of a packing kernel would write, at the addresses that the
 * launch names. `o` is the operand. */
void pack_model(const bsmm_pack_launch *launch, const bsmm_operand *o);

/* The result of checking a packed operand: the number of wrong values. Packed values must equal the
 * values of the operand, exactly or within the rounding error of the packed form, unless the header
 * has the flag WIDE. The check includes the header. */
typedef struct pack_verdict {
    uint64_t wrong;
    int64_t row, col; /* Row and column of the first element that is wrong. */
    double expected, got;
    uint32_t flags;
} pack_verdict;
pack_verdict pack_check(const bsmm_pack_launch *launch, const bsmm_operand *o);

#endif
