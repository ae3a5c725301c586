/* A model of the packing kernels on the CPU. It calls their per-thread functions (gpu/pack_lane.h)
 * for one thread after another, and loads elements and scales by the format's functions instead of
 * the kernels'. */
#ifndef BSMM_TEST_PACK_MODEL_H
#define BSMM_TEST_PACK_MODEL_H

#include "cuda/host/pack_plan.h"

/* Writes every byte that the launch would write, at the addresses in its job. `o` is the
 * operand. */
void pack_model(const bsmm_pack_launch *launch, const bsmm_operand *o);

/* Counts the values that a launch has packed wrongly: they must equal the values of `o`, exactly or
 * within the route's bound, unless the header says WIDE. Also checks what the header says. */
typedef struct pack_verdict {
    uint64_t wrong;
    int64_t row, col; /* Row and column of the first element that is wrong. */
    double expected, got;
    uint32_t flags;
} pack_verdict;
pack_verdict pack_check(const bsmm_pack_launch *launch, const bsmm_operand *o);

#endif
