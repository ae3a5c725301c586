/* Defines the parameters that the host passes to the sm_90a GEMM kernels (sm90a/gemm_body.h). */
#ifndef BSMM_CUDA_SM90A_GEMM_PARAMS_H
#define BSMM_CUDA_SM90A_GEMM_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "cuda/sm80/bf16_params.h"

/* Describes the fp32 scales of B's 128 x 128 blocks. The scale of block n along N and block k along
 * K is base[n * n_step + k * k_step]. */
typedef struct bsmm_wgmma_block_scales {
    const float *base;
    uint32_t n_step, k_step;
} bsmm_wgmma_block_scales;

/* This struct represents a divisor d >= 1, so that kernels can divide a number 0 <= n < 2^31 by a
 * multiplication: n / d = n * multiplier >> shift. 2^(shift - 31) is the smallest power of two that
 * is at least d, and multiplier is 2^shift / d, rounded up (Granlund, Montgomery: Division by
 * Invariant Integers using Multiplication, 1994). */
typedef struct bsmm_wgmma_divisor {
    uint32_t multiplier, shift;
} bsmm_wgmma_divisor;

/* These are the ways in which a kernel stores D. */
typedef enum bsmm_wgmma_store {
    /* Threads store one element at a time through the general epilogue (gpu/epilogue.h), which
     * supports every format and layout of D. */
    BSMM_WGMMA_STORE_ANY = 0,
    BSMM_WGMMA_STORE_F32 = 1, /* BSMM_WGMMA_STORE_F32: threads store rows of fp32 from registers. */
    /* BSMM_WGMMA_STORE_E4M3 and later values: TMA stores D through the tensor map d. */
    BSMM_WGMMA_STORE_E4M3 = 2,
    BSMM_WGMMA_STORE_E5M2 = 3,
    BSMM_WGMMA_STORE_BF16 = 4,
    BSMM_WGMMA_STORE_F16 = 5
} bsmm_wgmma_store;

typedef struct bsmm_wgmma_params {
    /* `a`, `b` and `d` are the tensor maps of A, B and D. Kernels use `d` if `store` is
     * BSMM_WGMMA_STORE_E4M3 or a later value of the enum. */
    CUtensorMap a, b, d;
    /* `a_rows` and `b_rows` are the tensor maps by which TMA loads fp32 scales of 1 x 128 blocks.
     * The scales are a matrix [block along K][row], in which the scales of neighboring rows are
     * adjacent. Kernels with GEMM_ROW_ROW use both maps, because A and B have such scales. Other
     * kernels do not use b_rows. */
    CUtensorMap a_rows, b_rows;
    /* `b_blocks` holds the scales of B's 128 x 128 blocks. Only kernels with GEMM_ROW_BLOCK, i.e.
     * with scales of 1 x 128 for A and of 128 x 128 for B, use them. If its base is NULL, all of
     * these scales are 1. */
    bsmm_wgmma_block_scales b_blocks;
    /* The kernel multiplies sums over all of K by these fp32 scales: `row_factors` has one for each
     * row of A, and `col_factors` has one for each row of B, i.e. for each column of D. A pointer
     * is NULL if the operand has no such scales. If col_factors is NULL, row_factors is NULL too.
     * Kernels of the kind BSMM_WGMMA_BF16 multiply by both. Kernels of the kind BSMM_WGMMA_BLOCK
     * for e4m3 multiply by col_factors only, because they load A's scales through a_rows.
     * `col_factors` is aligned to 8 bytes, and its length is even or padded to an even number. */
    const float *row_factors, *col_factors;
    /* `whole` describes A and B as the caller stores them (not packed), and the epilogue of D. The
     * kernel needs the stored operands in two cases: it recomputes some results in double, or it
     * computes the whole product by slower code because its fast path does not support the
     * operands' values. */
    bsmm_bf16_job whole;
    bsmm_cuda_gate gate;
    /* plain[0] has the parameters for packing A to bf16, and plain[1] those for packing B. Two
     * kinds of kernels use them if they cannot compute the product themselves, to prepare the
     * operands of the kernel that is queued next:
     * - A kernel of the kind POW2 packs A and B to bf16 if 8-bit floats cannot hold the values of A
     *   or B.
     * - A kernel for f16 that runs only if f16 can hold the values of B (the gate BSMM_WHEN_HALF)
     *   otherwise splits each element of A into two bf16 numbers. It also packs B to bf16, unless
     *   plain[1].job.elements is NULL. */
    bsmm_pack_plain plain[2];
    /* If `overflowed` is not NULL, the kernel writes 1 to this address when an accumulator is not
     * finite or may have lost terms to underflow. */
    uint32_t *overflowed;
    /* A tile that is split along K may be computed by several clusters, one after another. If
     * another cluster continues a tile, each thread block stores its accumulators in `handed`. The
     * thread block at the same position in the other cluster loads them and goes on with them. */
    float *handed;
    /* `handed_flag` has a flag for each warpgroup of each thread block. A warpgroup sets its flag
     * to `ticket` when it has stored all of its accumulators in `handed`. The thread block that
     * continues the tile waits for this value. */
    uint64_t *handed_flag;
    uint64_t ticket;
    /* `m` and `n` are the extents of D. k_blocks is the number of k blocks, i.e. of ranges of 128
     * bytes along K. If A or B is split into bf16 parts (a_parts, b_parts), the kernel multiplies
     * each part of A by each part of B, one pair after another. Each pair has k blocks of its own,
     * and k_blocks counts those of all pairs. */
    int32_t m, n, k_blocks;
    /* An element of A is the sum of `a_parts` bf16 numbers (parts), and one of B is the sum of
     * `b_parts`. The kernel multiplies each part of A by each part of B and adds all products. */
    int32_t a_parts, b_parts;
    /* Each pair of a bf16 part of A and a bf16 part of B has a number, at most 8. Kernels divide
     * this number by a_parts to find the part of B. Instead of a division, they multiply it by
     * `a_reciprocal`, which is 32 / a_parts rounded up, and shift the product right by 5 bits. For
     * numbers up to 8 this gives exactly the quotient, rounded down. */
    int32_t a_reciprocal;
    /* A cluster tile is the part of D that the thread blocks of one cluster compute together.
     * `tiles_m` and `tiles_n` are the numbers of cluster tiles of D along M and along N. */
    int32_t tiles_m, tiles_n;
    /* `group_m` is the number of cluster tiles along M in a band, i.e. in a horizontal stripe of D.
     * Clusters compute D band by band, so that the tiles that run at the same time share most of
     * their reads of A and B in L2. */
    int32_t group_m;
    /* The first `whole_tiles` cluster tiles are not split along K: one cluster computes each of
     * them. All later tiles are split. Their k blocks are laid end to end, tile after tile, and
     * divided into equal ranges, one for each cluster. A range may therefore begin or end inside a
     * tile. */
    int32_t whole_tiles;
    /* If D has too few tiles for all SMs, the k blocks of every tile are split into `splits` parts,
     * each of which another cluster multiplies (gemm_schedule.h). Otherwise `splits` is 1. */
    int32_t splits;
    /* The k blocks of all tiles that are split along K are laid end to end and divided into ranges,
     * one for each cluster. `range_blocks` is the number of k blocks of a range. The first
     * longer_ranges ranges have one k block more. */
    int32_t range_blocks, longer_ranges;
    /* gemm_divide divides by a number that the host has prepared as a divisor, without a division
     * instruction. by_k divides by k_blocks, by_group divides by group_m, and by_band divides by
     * group_m * tiles_n. */
    bsmm_wgmma_divisor by_k, by_group, by_band;
    bsmm_wgmma_divisor by_pairs; /* `by_pairs` is the divisor a_parts * b_parts for gemm_divide. */
    /* The scales of A are in a_rows, one row for each k block. a_rows_step is added to the row
     * number for each further k block. It is 1, or 0 if each row of A has one scale for all of K,
     * so that a_rows has only one row. */
    int32_t a_rows_step;
    /* `store` tells how D is stored, by a value of the enum bsmm_wgmma_store. */
    uint32_t store;
} bsmm_wgmma_params;

#endif
