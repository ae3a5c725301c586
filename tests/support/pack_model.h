/* Declares a model of the GPU's packing kernels that runs on the CPU. The model calls the kernels'
 * per-thread functions (gpu/pack_lane.h) for one thread after another. */
#ifndef BSMM_TEST_PACK_MODEL_H
#define BSMM_TEST_PACK_MODEL_H

#include "cuda/host/pack_plan.h"

/* Packs operand `o` on the CPU. The function writes the same bytes as the launch of the packing
 * kernel writes. */
void pack_model(const bsmm_pack_launch *launch, const bsmm_operand *o);

/* Holds the result of a check of a packed operand. `wrong` counts the wrong values. Packed values
 * must equal the values of the operand, exactly or within the rounding error of the packed format.
 */
typedef struct pack_verdict {
    uint64_t wrong;
    int64_t row, col;
    double expected, got;
    uint32_t flags;
} pack_verdict;
pack_verdict pack_check(const bsmm_pack_launch *launch, const bsmm_operand *o);

#endif
