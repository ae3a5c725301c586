/* What the host tells the sm_90a engine (sm90a/gemm_body.h). */
#ifndef BSMM_CUDA_SM90A_GEMM_PARAMS_H
#define BSMM_CUDA_SM90A_GEMM_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "cuda/sm80/bf16_params.h"

/* fp32 scales of 128 x 128 blocks: that of block (n, k) at base[n * n_step + k * k_step]. */
typedef struct bsmm_wgmma_block_scales {
    const float *base;
    uint32_t n_step, k_step; /* all offsets are below 2^32 */
} bsmm_wgmma_block_scales;

/* Division of 0 <= n < 2^31 by d >= 1: n * multiplier >> shift, where 2^(shift - 31) is the power
 * of two from d on and multiplier is 2^shift / d, rounded up (Granlund, Montgomery: Division by
 * Invariant Integers using Multiplication, 1994). */
typedef struct bsmm_wgmma_divisor {
    uint32_t multiplier, shift;
} bsmm_wgmma_divisor;

/* How D is written. */
typedef enum bsmm_wgmma_store {
    BSMM_WGMMA_STORE_ANY = 0,  /* value by value, by the epilogue that all kernels share */
    BSMM_WGMMA_STORE_F32 = 1,  /* fp32 rows, from registers */
    BSMM_WGMMA_STORE_BF16 = 2, /* the copy engine, through the map d */
    BSMM_WGMMA_STORE_F16 = 3
} bsmm_wgmma_store;

typedef struct bsmm_wgmma_params {
    CUtensorMap a, b, d; /* d: of the stores that name it */
    /* fp32 scales of 1 x 128 blocks: (rows, k blocks), rows contiguous. b_rows: GEMM_ROW_ROW only.
     */
    CUtensorMap a_rows, b_rows;
    bsmm_wgmma_block_scales b_blocks; /* GEMM_ROW_BLOCK only */
    bsmm_bf16_job whole; /* the product of the operands as they are stored: D, sums made again */
    bsmm_cuda_gate gate;
    bsmm_pack_plain plain[2]; /* GEMM_ROW_ROW behind a gate: A and B, for who is queued next */
    uint32_t *overflowed;     /* not NULL: 1 is written there if a sum is not finite */
    float *handed;         /* per block: a tile's accumulators, on their way to the next cluster */
    uint64_t *handed_flag; /* per block and warpgroup: `ticket` when they are there */
    uint64_t ticket;
    int32_t m, n, k_blocks;   /* k_blocks: of 128 bytes */
    int32_t tiles_m, tiles_n; /* in cluster tiles */
    int32_t group_m;          /* cluster tiles of M that are walked together */
    int32_t whole_tiles; /* the first tiles are dealt out whole, the rest in equal shares of k */
    int32_t share, longer_shares; /* k blocks of a share; the first longer_shares have one more */
    bsmm_wgmma_divisor by_k, by_group, by_band; /* k_blocks, group_m, group_m * tiles_n */
    uint32_t store;                             /* bsmm_wgmma_store */
} bsmm_wgmma_params;

#endif
