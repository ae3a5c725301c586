/* Parameters of the sm_90a GEMM kernels (sm90a/gemm_body.h), which the host fills. */
#ifndef BSMM_CUDA_SM90A_GEMM_PARAMS_H
#define BSMM_CUDA_SM90A_GEMM_PARAMS_H

#include "cuda/runtime/tensor_map.h"
#include "cuda/sm80/bf16_params.h"

/* The fp32 scales of B's 128 x 128 blocks. The scale of block n along N and block k along K is
 * base[n * n_step + k * k_step]. */
typedef struct bsmm_wgmma_block_scales {
    const float *base;
    uint32_t n_step, k_step;
} bsmm_wgmma_block_scales;

/* A number d >= 1 by which kernels divide 0 <= n < 2^31, by a multiplication: n / d = n *
 * multiplier >> shift. 2^(shift - 31) is the smallest power of two that is at least d, and
 * multiplier is 2^shift / d, rounded up (Granlund, Montgomery: Division by Invariant Integers using
 * Multiplication, 1994). */
typedef struct bsmm_wgmma_divisor {
    uint32_t multiplier, shift;
} bsmm_wgmma_divisor;

/* how a kernel stores D */
typedef enum bsmm_wgmma_store {
    /* Threads store one element at a time by the epilogue of gpu/epilogue.h, which supports every
     * D. */
    BSMM_WGMMA_STORE_ANY = 0,
    BSMM_WGMMA_STORE_F32 = 1, /* threads store rows of fp32 from registers */
    /* TMA stores D through the tensor map d. */
    BSMM_WGMMA_STORE_E4M3 = 2,
    BSMM_WGMMA_STORE_E5M2 = 3,
    BSMM_WGMMA_STORE_BF16 = 4,
    BSMM_WGMMA_STORE_F16 = 5
} bsmm_wgmma_store;

typedef struct bsmm_wgmma_params {
    /* The tensor maps of A, B and D. BSMM_WGMMA_STORE_E4M3 and later ways to store use d. */
    CUtensorMap a, b, d;
    /* The tensor maps of the fp32 scales of 1 x 128 blocks, as a matrix [k block][row] with rows
     * contiguous. Only kernels with GEMM_ROW_ROW, i.e. with such scales for A and for B, use
     * b_rows. */
    CUtensorMap a_rows, b_rows;
    /* The scales of B's 128 x 128 blocks. Only kernels with GEMM_ROW_BLOCK, i.e. with scales of 1 x
     * 128 for A and of 128 x 128 for B, use them. */
    bsmm_wgmma_block_scales b_blocks;
    /* Only kernels of the kind BSMM_WGMMA_BF16 use these fp32 scales, one for each row of A
     * (row_factors) and of B (col_factors). The kernel multiplies sums over all of K by them. NULL
     * means that the operand has no scales. If B has none, A has none. `col_factors` is aligned to
     * 8 bytes, and its length is padded to a multiple of 4. */
    const float *row_factors, *col_factors;
    /* A, B and the epilogue of D as the caller describes them. The kernel reads A and B from there
     * to recompute results in double, or if its fast path does not support the operands' values. */
    bsmm_bf16_job whole;
    bsmm_cuda_gate gate;
    /* Parameters for packing A and B to bf16. A kernel of the kind POW2 packs them if 8-bit floats
     * cannot hold the values of A or B. The kernel that is queued next then multiplies the packed
     * operands. Other kernels ignore this field. */
    bsmm_pack_plain plain[2];
    /* If not NULL, the kernel writes 1 here when an accumulator is not finite or may have lost
     * terms to underflow. */
    uint32_t *overflowed;
    /* Memory in which a thread block passes on the accumulators of a tile that is split along K.
     * The corresponding thread block of the next cluster continues with them. */
    float *handed;
    /* A flag for each thread block and each of its warpgroups. It equals `ticket` when the
     * accumulators in `handed` are complete. */
    uint64_t *handed_flag;
    uint64_t ticket;
    /* The extents of D, and the number of k blocks. A k block is a range of 128 bytes along K. If A
     * or B is split into bf16 parts (a_parts, b_parts), each pair of a part of A and a part of B
     * has its own k blocks. */
    int32_t m, n, k_blocks;
    /* The numbers of bf16 parts whose sum is an element of A and of B. Each part of A is multiplied
     * by each part of B. */
    int32_t a_parts, b_parts;
    /* 32 / a_parts, rounded up. Kernels number the pairs of a bf16 part of A and a bf16 part of B
     * from 0 to 8. To divide such a number by a_parts, they multiply it by a_reciprocal and shift
     * right by 5, which is exact for these numbers. */
    int32_t a_reciprocal;
    /* The numbers of cluster tiles along M and N. A cluster tile is the area of D that the thread
     * blocks of one cluster compute together. */
    int32_t tiles_m, tiles_n;
    /* The number of cluster tiles along M in a band, i.e. in a horizontal stripe of D. Clusters
     * compute D band by band, so that the tiles that run at the same time share most of their reads
     * of A and B in L2. */
    int32_t group_m;
    /* The number of cluster tiles that are not split along K. The tiles after them are laid end to
     * end along K and split into equal ranges, one for each cluster. */
    int32_t whole_tiles;
    /* The number of parts into which the k blocks of every tile are split, if there are too few
     * tiles for the SMs (gemm_schedule.h). Otherwise 1. */
    int32_t splits;
    /* The number of k blocks that each cluster computes of the tiles that are split along K. The
     * first longer_shares clusters compute one k block more. */
    int32_t share, longer_shares;
    /* divisors for gemm_divide: by_k is k_blocks, by_group is group_m, and by_band is group_m *
     * tiles_n */
    bsmm_wgmma_divisor by_k, by_group, by_band;
    bsmm_wgmma_divisor by_pairs; /* the divisor a_parts * b_parts for gemm_divide */
    uint32_t store;              /* how D is stored, a value of the enum bsmm_wgmma_store */
} bsmm_wgmma_params;

#endif
