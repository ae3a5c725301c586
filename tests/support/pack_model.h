/* What the packing kernels of the NVIDIA backend write, made on the CPU: their per-thread functions
 * (cuda/pack_lane.h), thread after thread. Elements and scales are fetched by the format's own
 * functions, not the kernels'. */
#ifndef BSMM_TEST_PACK_MODEL_H
#define BSMM_TEST_PACK_MODEL_H

#include "cuda/host/pack_plan.h"

/* Writes every byte that the launch would, at the addresses in its job; o is what it packs. */
void pack_model(const bsmm_pack_launch *launch, const bsmm_operand *o);

/* Counts the places where what a launch wrote is not what it must be: the value of o, exactly or
 * within the route's bound, where the header does not say WIDE; and the header's own claims. */
typedef struct pack_verdict {
    uint64_t wrong;
    int64_t row, col; /* of the first */
    double expected, got;
    uint32_t flags;
} pack_verdict;
pack_verdict pack_check(const bsmm_pack_launch *launch, const bsmm_operand *o);

#endif
