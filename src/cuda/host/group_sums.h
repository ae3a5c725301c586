/* The kernels cuda_sm100f_fp8 and cuda_sm100f_wide_groups share this file. Their device code
 * (sm100f/groups_body.h) multiplies separate sums of each 128 elements of K by fp32 scales. */
#ifndef BSMM_CUDA_HOST_GROUP_SUMS_H
#define BSMM_CUDA_HOST_GROUP_SUMS_H

#include "cuda/host/kernel.h"
#include "cuda/sm100f/groups_params.h"

/* Returns NULL if the number of tiles of D fits the kernel parameters. Otherwise writes the reason
 * to `why` and returns it. */
const char *bsmm_group_sums_refuse(const bsmm_product *p, char *why, size_t size);

/* Returns the kernel parameters that describe D, its tiles, and A and B as they are stored, except
 * for pointers, which are set in each run. */
bsmm_group_sums_params bsmm_group_sums_params_of(const bsmm_product *p);

/* Loads the kernel and prepares its launch. */
bsmm_status bsmm_group_sums_make(const bsmm_product *p, const bsmm_cuda_function *function,
                                 bsmm_cuda_ready *ready);

#endif
