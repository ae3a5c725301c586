/* Declares the host code of the sm_90a GEMM kernels (device code: sm90a/gemm_body.h). The host code
 * chooses a tile, divides D among clusters, and launches the kernel. Callers provide operands that
 * the tensor cores can multiply, i.e. K-major rows of 8-bit floats, f16 or bf16. */
#ifndef BSMM_CUDA_HOST_WGMMA_H
#define BSMM_CUDA_HOST_WGMMA_H

#include "cuda/host/kernel.h"
#include "cuda/host/pack_plan.h"
#include "cuda/sm90a/gemm_params.h"

/* The kinds of GEMM kernels differ in the block scales that they apply. The kind and the element
 * types of A and B together determine which kernels can compute a GEMM. */
typedef enum bsmm_wgmma_kind {
    BSMM_WGMMA_BF16 = 0, /* BSMM_WGMMA_BF16: elements are bf16 or f16 without block scales. */
    /* BSMM_WGMMA_BLOCK: elements have 8 bits or are bf16 or f16. Scales are 1 x 128 for A and 128 x
     * 128 for B. An A with f16 elements has no scales. If A and B are e4m3, each row of A and of
     * B may instead have one scale for all of K. */
    BSMM_WGMMA_BLOCK = 1,
    /* BSMM_WGMMA_ROW: elements have 8 bits or are bf16. Scales are 1 x 128 for A and B. */
    BSMM_WGMMA_ROW = 2,
    /* BSMM_WGMMA_POW2: elements have 8 bits. Scales are 1 x 128 for A and B, and all of them are
     * powers of two. The product of any scale of A and any scale of B must be a normal fp32
     * number. */
    BSMM_WGMMA_POW2 = 3
} bsmm_wgmma_kind;

/* Describes the layout of one operand of a GEMM kernel in device memory. */
typedef struct bsmm_wgmma_form {
    uint32_t elem;  /* `elem` is the element type: BSMM_ELEM_E4M3, _E5M2, _BF16 or _F16. */
    uint64_t pitch; /* `pitch` is the stride of the operand's rows in bytes, a multiple of 16. */
    /* The operand's fp32 scales of 1 x 128 blocks lie in memory as a matrix [128 elements of
     * K][row]. `rows_pitch` is the stride of this matrix in floats, i.e. the distance from the
     * scales of all rows for 128 elements of K to those for the next 128. It is a multiple of 4, or
     * 0 if the operand has no such scales. */
    uint64_t rows_pitch;
    /* `is_row_wide` is true if each row has one scale for all of K. There is then only one scale of
     * each row in memory, and rows_pitch is not used. */
    bool is_row_wide;
    /* `n_step` and `k_step` are the strides of the 128 x 128 block scales of B. Element (n, k) has
     * the scale with index n / 128 * n_step + k / 128 * k_step. */
    uint64_t n_step, k_step;
    uint32_t parts; /* `parts` is the number of bf16 numbers whose sum is an element, 1 to 3. */
    /* `shift` is the exponent of the power of two by which packing has multiplied all values. It is
     * used only for a B whose packed elements are f16. */
    uint32_t shift;
} bsmm_wgmma_form;

/* Holds the device pointers of one operand of a GEMM kernel. All pointers are aligned to 16
 * bytes. */
typedef struct bsmm_wgmma_side {
    /* `elements` holds the operand's elements in device memory, row by row, with K contiguous. */
    const void *elements;
    /* `rows` points to the fp32 scales of all rows for the first 128 columns of K. The scales for
     * the next 128 columns follow, and so on. `rows` is NULL if the operand has no row scales. */
    const float *rows;
    /* `blocks` holds the fp32 scales of B's 128 x 128 blocks. Only products of the kind
     * BSMM_WGMMA_BLOCK use it. */
    const float *blocks;
} bsmm_wgmma_side;

/* Describes one tile shape of the GEMM kernels. wgmma.c has the table of all tile shapes. */
typedef struct bsmm_wgmma_tile bsmm_wgmma_tile;

/* If the GEMM kernel multiplies bf16, an element of an operand is the sum of several bf16 numbers.
 * Returns how many: 2 for f16, 3 for fp32, and 1 for all other formats. If the product has a C, the
 * function returns 1 for every format, for this reason: one of the several bf16 numbers of a
 * nonzero element may be 0. If it meets an Inf of the other operand, their product is NaN, and the
 * result is wrong. The GEMM must then be computed again, which is impossible if D has overwritten
 * C. */
uint32_t bsmm_wgmma_parts(const bsmm_product *p, const bsmm_operand *o);

/* Returns entry number `index` of the table of all tile shapes, or NULL past the last entry. */
const bsmm_wgmma_tile *bsmm_wgmma_tile_at(size_t index);

/* Returns true if the kernel of this tile shape supports this kind of scales and these element
 * types of A and B. */
bool bsmm_wgmma_tile_takes(const bsmm_wgmma_tile *tile, bsmm_wgmma_kind kind, uint32_t a_elem,
                           uint32_t b_elem);

/* Describes how D is divided among the clusters of a launch. */
typedef struct bsmm_wgmma_deal {
    /* `tiles_m` and `tiles_n` are the numbers of cluster tiles of D along M and N. A cluster tile
     * consists of the tiles of all thread blocks of one cluster. */
    int64_t tiles_m, tiles_n;
    int64_t clusters; /* `clusters` is the number of clusters in the launch. */
    int64_t whole;    /* `whole` is the number of cluster tiles that are not split along K. */
    /* `splits` is the number of parts into which K of every tile is split, 1 or more. */
    int64_t splits;
    double cycles; /* `cycles` is the estimated time in cycles of an SM. */
} bsmm_wgmma_deal;

/* Divides D among clusters in the way that takes the least estimated time with this tile. The
 * product must have a device. */
bsmm_wgmma_deal bsmm_wgmma_deal_of(const bsmm_product *p, const bsmm_wgmma_tile *tile);

/* Returns the estimated time of the product with this tile shape in cycles of an SM, or 0 if the
 * product has no device. */
double bsmm_wgmma_tile_cycles(const bsmm_product *p, const bsmm_wgmma_tile *tile);

/* Returns the tile shape with the least estimated time among those whose kernel supports this kind
 * of scales and these element types of A and B. */
const bsmm_wgmma_tile *bsmm_wgmma_choose(const bsmm_product *p, bsmm_wgmma_kind kind,
                                         uint32_t a_elem, uint32_t b_elem);

/* Holds the parameters of the time model for a product in which K of every tile is split into the
 * same number of parts. Cycles are clock cycles of an SM. */
typedef struct bsmm_wgmma_split {
    int64_t most; /* `most` is the largest number of parts into which K can be split. */
    /* `blocks` is the number of k blocks of a tile before K is split. A k block is 128 bytes along
     * K. */
    int64_t blocks;
    /* `block_cycles` is the number of cycles per k block, i.e. per 128 bytes along K. */
    double block_cycles;
    /* `least_cycles` is the number of cycles that device memory needs to move A, B and D of the
     * whole product. */
    double least_cycles;
    /* `fixed_cycles` is the number of cycles that a tile takes in addition to the cycles of its k
     * blocks. */
    double fixed_cycles;
    /* If K of a tile is divided among thread blocks of a cluster, these thread blocks also divide
     * the storing of the tile's results: the results are `stores` pieces, and each piece takes
     * `store_cycles` cycles. `stores` is 0 if a kernel does not divide the storing in this way. */
    int64_t stores;
    double store_cycles;
    /* `join_cycles` is the number of additional cycles that a tile takes if its K is split,
     * whatever the number of parts is. part_cycles counts the cycles that depend on this number. */
    double join_cycles;
    /* `part_cycles` is the number of cycles that an SM needs to store the accumulators of one part
     * of K, or to add them. */
    double part_cycles;
} bsmm_wgmma_split;

/* Returns the estimated cycles of the product if K of each tile is split into `splits` parts, 1 or
 * more. */
double bsmm_wgmma_split_cycles(const bsmm_wgmma_split *split, int64_t splits);

/* Returns the number of parts of K, from 1 to split->most, with the least estimated time. */
int64_t bsmm_wgmma_choose_splits(const bsmm_wgmma_split *split);

/* Returns the kernel of this tile shape. The caller passes it to bsmm_cuda_refuse. */
const bsmm_cuda_function *bsmm_wgmma_function(const bsmm_wgmma_tile *tile);

/* Returns the bytes of workspace that a launch needs for the flags and accumulators of tiles that
 * are split along K. The memory must be aligned to 256 bytes, and its content does not matter. */
uint64_t bsmm_wgmma_engine_bytes(const bsmm_product *p, const bsmm_wgmma_tile *tile);

/* Holds the arguments of a launch that are known only when the plan runs. */
typedef struct bsmm_wgmma_input {
    bsmm_wgmma_side a, b;
    bsmm_cuda_gate gate;
    /* plain[0] and plain[1] are device memory for A and B packed to bf16. Two kinds of kernels use
     * them as a fallback.
     *
     * A kernel of the kind BSMM_WGMMA_POW2 multiplies 8-bit floats. If these do not hold the
     * operands' values, the kernel packs A and B to `plain`. If bf16 does not hold the values
     * either, it computes the GEMM from the operands as the caller stores them.
     *
     * An f16 kernel with the gate BSMM_WHEN_HALF multiplies only if f16 holds the values of B.
     * Otherwise it packs B to plain[1] for the kernel that multiplies bf16. plain[1] is NULL if the
     * caller's B is bf16 already. */
    void *plain[2];
    /* An f16 kernel with the gate BSMM_WHEN_HALF multiplies A and B in f16 only if f16 can hold the
     * values of B. Otherwise it splits each element of A into two bf16 parts for the kernel that
     * follows, and stores them at `parts`. `parts_pitch` is the stride of the rows in this memory,
     * in bytes. Other kernels do not use these fields. */
    void *parts;
    uint64_t parts_pitch;
    /* If an accumulator leaves fp32's range, a bf16 kernel writes 1 to the address `overflowed` in
     * device memory. If `overflowed` is NULL, the kernel does not test its accumulators. */
    uint32_t *overflowed;
    void *workspace;
} bsmm_wgmma_input;

/* Holds the part of a plan's state that belongs to one GEMM kernel and its launch. */
typedef struct bsmm_wgmma_engine {
    /* `params` holds the kernel's parameters, in which all pointers are still NULL. */
    bsmm_wgmma_params params;
    bsmm_cuda_ready_map a, b, d, a_rows, b_rows;
    bsmm_cuda_ready ready;
    /* `flag_bytes` is the number of bytes of flags at the start of the workspace. A flag says that
     * the accumulators of a tile that is split along K are complete. The accumulators follow the
     * flags in memory. */
    uint64_t flag_bytes;
} bsmm_wgmma_engine;

/* Loads the tile's kernel and prepares its launch. `a` and `b` are the layouts that the operands
 * will have in each run. Set `plain` if, in each run, bsmm_wgmma_input.plain will point to memory
 * for A and B packed to bf16. The device's context must be current. */
bsmm_status bsmm_wgmma_make(const bsmm_product *p, const bsmm_wgmma_tile *tile,
                            const bsmm_wgmma_form *a, const bsmm_wgmma_form *b, bool plain,
                            bsmm_wgmma_engine *made);

/* Queues the GEMM kernel. The device's context must be current. */
bsmm_status bsmm_wgmma_run(const bsmm_product *p, const bsmm_wgmma_engine *made,
                           const bsmm_wgmma_input *input);

/* Returns the error bound of the GEMM kernel before the final rounding to D's format, as a multiple
 * of sum |a||b| (docs/NUMERICS.md). `elem` is the element type that the tensor cores multiply. */
double bsmm_wgmma_bound(bsmm_wgmma_kind kind, uint32_t elem, int64_t k);

#endif
