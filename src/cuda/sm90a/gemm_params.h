/* Parameters of the sm_90a GEMM kernels (sm90a/gemm_body.h), which the host fills. */
#ifndef BSMM_CUDA_SM90A_GEMM_PARAMS_H
#define BSMM_CUDA_SM90A_GEMM_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "cuda/sm80/bf16_params.h"

/* The fp32 scales of 128 x 128 blocks of B. Block (n, k) has the scale base[n * n_step + k *
 * k_step]. */
typedef struct bsmm_wgmma_block_scales {
    const float *base;
    /* strides of the scale's index along N and K; all offsets are below 2^32 */
    uint32_t n_step, k_step;
} bsmm_wgmma_block_scales;

/* A divisor d >= 1 for dividends 0 <= n < 2^31, replaced by a multiplication:
 * n / d = n * multiplier >> shift. Here 2^(shift - 31) is the smallest power of two that is at
 * least d, and multiplier is 2^shift / d, rounded up (Granlund, Montgomery: Division by Invariant
 * Integers using Multiplication, 1994). */
typedef struct bsmm_wgmma_divisor {
    uint32_t multiplier, shift;
} bsmm_wgmma_divisor;

/* The ways to store D. */
typedef enum bsmm_wgmma_store {
    /* Threads store one element at a time by the epilogue that all kernels share. */
    BSMM_WGMMA_STORE_ANY = 0,
    BSMM_WGMMA_STORE_F32 = 1,  /* Threads store rows of fp32 from registers. */
    BSMM_WGMMA_STORE_BF16 = 2, /* TMA stores D through the tensor map d. */
    BSMM_WGMMA_STORE_F16 = 3
} bsmm_wgmma_store;

typedef struct bsmm_wgmma_params {
    /* The tensor maps of A, B and D. BSMM_WGMMA_STORE_BF16 and BSMM_WGMMA_STORE_F16 use d. */
    CUtensorMap a, b, d;
    /* Tensor maps of fp32 scales of 1 x 128 blocks, as (rows, k blocks) with rows contiguous.
     * b_rows is used by GEMM_ROW_ROW only. */
    CUtensorMap a_rows, b_rows;
    /* The block scales of B. Only kernels with GEMM_ROW_BLOCK use them. */
    bsmm_wgmma_block_scales b_blocks;
    /* The stored operands and D, for results that are recomputed and for the fallback. */
    bsmm_bf16_job whole;
    bsmm_cuda_gate gate;
    /* A and B, to be packed to bf16 for the kernel that is queued next. They are used with the kind
     * POW2. */
    bsmm_pack_plain plain[2];
    /* If not NULL, the kernel writes 1 here when an accumulator is not finite or may have lost
     * terms to underflow. */
    uint32_t *overflowed;
    /* For each block, the accumulators of a tile that is split along K. They are passed to the next
     * cluster. */
    float *handed;
    /* For each block and warpgroup, a flag. It equals `ticket` when the accumulators are in
     * `handed`. */
    uint64_t *handed_flag;
    uint64_t ticket;
    /* The sizes of the GEMM. k_blocks is the number of k blocks, each of 128 bytes along K. */
    int32_t m, n, k_blocks;
    /* The numbers of bf16 parts of an element of A and of B. Each part of A is multiplied by each
     * part of B. */
    int32_t a_parts, b_parts;
    /* 32 / a_parts, rounded up. It replaces a division by a_parts, and is exact for the up to 9
     * pairs of parts. */
    int32_t a_reciprocal;
    int32_t tiles_m, tiles_n; /* the numbers of cluster tiles along M and N */
    /* The number of cluster tiles along M in a band. Tiles of a band run at the same time. */
    int32_t group_m;
    /* The number of first tiles, which are not split along K. The tiles after them are split into
     * equal ranges. */
    int32_t whole_tiles;
    /* The k blocks of a cluster's split-K range. The first longer_shares ranges have one more. */
    int32_t share, longer_shares;
    /* These replace divisions by k_blocks, by group_m and by group_m * tiles_n. */
    bsmm_wgmma_divisor by_k, by_group, by_band;
    bsmm_wgmma_divisor by_pairs; /* This replaces divisions by a_parts * b_parts. */
    uint32_t store; /* The way that D is stored, a value of the enum bsmm_wgmma_store. */
} bsmm_wgmma_params;

#endif
