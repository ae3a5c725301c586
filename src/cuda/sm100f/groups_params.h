/* Defines the parameters of the sm_100f kernels for products with fp32 scales
 * (sm100f/groups_body.h), which the host fills. */
#ifndef BSMM_CUDA_SM100F_GROUPS_PARAMS_H
#define BSMM_CUDA_SM100F_GROUPS_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "gpu/epilogue.h"
#include "gpu/pack.h"

enum {
    /* BSMM_GROUP_SUMS_TILE is the number of rows, and of columns, of a tile of D. */
    BSMM_GROUP_SUMS_TILE = 128,
    BSMM_GROUP_SUMS_K = 128, /* Each scale covers a multiple of this number of elements of K. */
    /* Shared memory holds this number of stages. A stage has this number of bytes of each row. */
    BSMM_GROUP_SUMS_STAGES = 5,
    BSMM_GROUP_SUMS_ROW_BYTES = 128,
    BSMM_GROUP_SUMS_THREADS = 320,
    BSMM_GROUP_SUMS_STAGE_BYTES = 2 * BSMM_GROUP_SUMS_TILE * BSMM_GROUP_SUMS_ROW_BYTES,
    /* Each of the 8 warps that store D has a staging buffer of 32 rows of 32 fp32 results. Rows are
     * 33 floats apart, which avoids bank conflicts. */
    BSMM_GROUP_SUMS_STRIP_BYTES = 32 * 33 * 4,
    /* Stages must begin at a multiple of 1024 bytes. The first 1024 bytes make room for this
     * alignment. */
    BSMM_GROUP_SUMS_SHARED = 1024 + BSMM_GROUP_SUMS_STAGES * BSMM_GROUP_SUMS_STAGE_BYTES +
                             8 * BSMM_GROUP_SUMS_STRIP_BYTES
};

typedef struct bsmm_group_sums_params {
    CUtensorMap elements[2];   /* `elements` holds the tensor maps of A and of B. */
    bsmm_gpu_operand sides[2]; /* A and B as they are stored */
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k, k_blocks;
    uint32_t tiles, tiles_m, tiles_n;
    uint32_t group_m; /* tiles along M in a band of tiles that run at the same time (gpu/bands.h) */
    uint32_t form;    /* `form` is the instruction descriptor of tcgen05.mma. */
    /* `scaled` tells for A and for B whether fp32 scales multiply the sums. */
    uint32_t scaled[2];
    /* Only kernels for elements of 16 bits use these parameters. `a_parts` and `b_parts` are the
     * numbers of bf16 numbers whose sum is an element of A and of B. `headers` are those of packed
     * operands, or NULL. The kernel sets `refused` if the headers say that packing was not exact.
     */
    uint32_t a_parts, b_parts;
    const bsmm_pack_header *headers[2];
    uint32_t *refused;
} bsmm_group_sums_params;

#endif
