/* Defines the parameters of the sm_100f kernel for FP8 products with fp32 scales
 * (sm100f/fp8_groups.cu), which the host fills. */
#ifndef BSMM_CUDA_SM100F_FP8_PARAMS_H
#define BSMM_CUDA_SM100F_FP8_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "gpu/epilogue.h"

enum {
    BSMM_FP8_GROUPS_TILE = 128, /* the rows and columns of a tile of D */
    BSMM_FP8_GROUPS_K = 128,    /* Each scale covers a multiple of this number of elements of K. */
    BSMM_FP8_GROUPS_STAGES = 5, /* Shared memory holds this number of k blocks. */
    BSMM_FP8_GROUPS_THREADS = 320,
    BSMM_FP8_GROUPS_STAGE_BYTES = 2 * BSMM_FP8_GROUPS_TILE * BSMM_FP8_GROUPS_K,
    /* Each of the 8 warps that store D has a staging buffer of 32 rows of 32 fp32 results. Rows are
     * 33 floats apart, which avoids bank conflicts. */
    BSMM_FP8_GROUPS_STRIP_BYTES = 32 * 33 * 4,
    /* Stages must begin at a multiple of 1024 bytes. The first 1024 bytes make room for this
     * alignment. */
    BSMM_FP8_GROUPS_SHARED = 1024 + BSMM_FP8_GROUPS_STAGES * BSMM_FP8_GROUPS_STAGE_BYTES +
                             8 * BSMM_FP8_GROUPS_STRIP_BYTES
};

typedef struct bsmm_fp8_groups_params {
    CUtensorMap elements[2];   /* the tensor maps of A and of B */
    bsmm_gpu_operand sides[2]; /* A and B as they are stored */
    bsmm_gpu_epilogue epilogue;
    uint32_t m, n, k, k_blocks;
    uint32_t tiles, tiles_m, tiles_n;
    uint32_t group_m; /* tiles along M in a band of tiles that run at the same time (gpu/bands.h) */
    uint32_t form;    /* the instruction descriptor of tcgen05.mma */
} bsmm_fp8_groups_params;

#endif
