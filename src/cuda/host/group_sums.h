/* Declares what the host code of the kernels cuda_sm100f_fp8 and cuda_sm100f_wide_groups has in
 * common. In both kernels, the device code (sm100f/scaled_promote.h) sums the products of each 128
 * elements of K separately, and multiplies each such sum by fp32 scales. */
#ifndef BSMM_CUDA_HOST_GROUP_SUMS_H
#define BSMM_CUDA_HOST_GROUP_SUMS_H

#include "cuda/host/scaled_tiles.h"

typedef struct bsmm_group_sums {
    bsmm_scaled_deal deal;
    bsmm_cuda_ready_map d;
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
} bsmm_group_sums;

/* Chooses the size of a tile of D and returns NULL. If D has too many tiles for the kernel's
 * parameters, writes the reason to `why` and returns it. */
const char *bsmm_group_sums_begin(const bsmm_product *p, bsmm_group_sums *s, char *why,
                                  size_t size);

/* Returns the number of rows of B that one TMA copy reads. A copy of A always reads
 * BSMM_SCALED_TILE_M rows. */
uint32_t bsmm_group_sums_b_rows(const bsmm_group_sums *s);

/* Returns the bits of tcgen05.mma's instruction descriptor (PTX ISA, "Instruction descriptor") for
 * fp32 sums and for the rows and columns of the tile. */
uint32_t bsmm_group_sums_form(const bsmm_group_sums *s);

/* Loads the kernel and sets its parameters, except the instruction descriptor and the numbers of
 * parts, which the caller sets, and the pointers, which each run sets. `kernels` is a row of
 * bsmm_scaled_kernels. A k block has `block_k` elements of K. If elements of A and B are split into
 * several bf16 numbers (parts), `pairs` is the number of parts of A times the number of parts of B.
 * Otherwise `pairs` is 1. */
bsmm_status bsmm_group_sums_make(const bsmm_product *p, int64_t block_k, int64_t pairs,
                                 const bsmm_scaled_kernel *kernels, bsmm_group_sums *s);

/* Sets the parameters of the epilogue in `params`, which is a copy of s->params, and queues the
 * kernel that `s` describes. */
bsmm_status bsmm_group_sums_run(const bsmm_product *p, const bsmm_group_sums *s,
                                bsmm_scaled_params *params);

#endif
