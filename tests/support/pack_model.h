/* Declares a model of the GPU's packing kernels on the CPU. It calls the per-thread functions of
 * the kernels (gpu/pack_lane.h) for one thread after another. */
#ifndef BSMM_TEST_PACK_MODEL_H
#define BSMM_TEST_PACK_MODEL_H

#include "cuda/host/pack_plan.h"

/* Packs operand `o` on the CPU. The bytes are the same as those of a launch of the packing
 * kernel. */
void pack_model(const bsmm_pack_launch *launch, const bsmm_operand *o);

/* Holds the result of a check of a packed operand. `wrong` is the number of wrong values. A packed
 * value is right if it equals the operand's value, or differs by no more than the rounding error of
 * the packed format. */
typedef struct pack_verdict {
    uint64_t wrong;
    int64_t row, col;
    double expected, got;
    uint32_t flags;
} pack_verdict;
pack_verdict pack_check(const bsmm_pack_launch *launch, const bsmm_operand *o);

#endif
