/* Host side of the sm_90a engine: which tile a product takes, how its tiles are dealt out, and the
 * launch. Kernels give it operands that the tensor cores eat: K-major rows of 8-bit floats or bf16.
 */
#ifndef BSMM_CUDA_HOST_WGMMA_H
#define BSMM_CUDA_HOST_WGMMA_H

#include "cuda/host/kernel.h"
#include "cuda/host/pack_plan.h"
#include "cuda/sm90a/gemm_params.h"

/* How scales apply; with the element types it names the kernels that can do it. */
typedef enum bsmm_wgmma_kind {
    BSMM_WGMMA_BF16 = 0,  /* bf16, no scales */
    BSMM_WGMMA_BLOCK = 1, /* 8 bits; A's scales 1 x 128, B's 128 x 128 */
    BSMM_WGMMA_ROW = 2,   /* 8 bits; scales 1 x 128 on both sides */
    BSMM_WGMMA_POW2 = 3   /* the same, where products of scales are normal fp32 numbers */
} bsmm_wgmma_kind;

/* How an operand lies in device memory. */
typedef struct bsmm_wgmma_form {
    uint32_t elem;           /* BSMM_ELEM_E4M3, E5M2 or BF16 */
    uint64_t pitch;          /* bytes from row to row, a multiple of 16 */
    uint64_t rows_pitch;     /* floats from one k block to the next, a multiple of 4; 0: no rows */
    uint64_t n_step, k_step; /* blocks: n / 128 * n_step + k / 128 * k_step */
} bsmm_wgmma_form;

/* Where it lies, aligned to 16 bytes. */
typedef struct bsmm_wgmma_side {
    const void *elements; /* rows with K contiguous */
    const float *rows;    /* scales (k blocks, rows), rows contiguous; or NULL */
    const float *blocks;  /* of B, BSMM_WGMMA_BLOCK: scale of (n / 128, k / 128) */
} bsmm_wgmma_side;

typedef struct bsmm_wgmma_tile bsmm_wgmma_tile; /* a row of the table of tiles (wgmma.c) */

/* A row of the table; NULL past the last. */
const bsmm_wgmma_tile *bsmm_wgmma_tile_at(size_t index);

/* Whether it multiplies such operands. */
bool bsmm_wgmma_tile_takes(const bsmm_wgmma_tile *tile, bsmm_wgmma_kind kind, uint32_t a_elem,
                           uint32_t b_elem);

/* Its estimated time for the product's shape; 0 for a product without a device. */
double bsmm_wgmma_tile_cycles(const bsmm_product *p, const bsmm_wgmma_tile *tile);

/* The tile with the least estimated time for the product's shape. elem: of A and B. */
const bsmm_wgmma_tile *bsmm_wgmma_choose(const bsmm_product *p, bsmm_wgmma_kind kind,
                                         uint32_t a_elem, uint32_t b_elem);

/* For bsmm_cuda_refuse. */
const bsmm_cuda_function *bsmm_wgmma_function(const bsmm_wgmma_tile *tile);

/* Device memory that a launch needs for accumulators on their way between blocks. Aligned to 256
 * bytes; its content does not matter. */
uint64_t bsmm_wgmma_engine_bytes(const bsmm_product *p, const bsmm_wgmma_tile *tile);

/* What a launch is given. */
typedef struct bsmm_wgmma_input {
    bsmm_wgmma_side a, b;
    bsmm_cuda_gate gate;
    /* BSMM_WGMMA_POW2, where the gate is closed: room for both operands as bf16, packed there if
     * that is exact; else the kernel makes the product from the operands as they are stored. */
    void *plain[2];
    /* NULL: not wanted. Device memory where 1 is written if a sum leaves fp32, which only a kernel
     * for bf16 looks for. */
    uint32_t *overflowed;
    void *workspace;
} bsmm_wgmma_input;

/* What a plan keeps of a launch. */
typedef struct bsmm_wgmma_engine {
    bsmm_wgmma_params params; /* without memory */
    bsmm_cuda_ready_map a, b, d, a_rows, b_rows;
    bsmm_cuda_ready ready;
    uint64_t flag_bytes; /* of the workspace, ahead of accumulators */
} bsmm_wgmma_engine;

/* a, b: how the operands will lie. plain: launches will be given room for both as bf16. Loads the
 * tile's kernel; with the device's context current. */
bsmm_status bsmm_wgmma_make(const bsmm_product *p, const bsmm_wgmma_tile *tile,
                            const bsmm_wgmma_form *a, const bsmm_wgmma_form *b, bool plain,
                            bsmm_wgmma_engine *made);

/* Queues the product, with the device's context current. */
bsmm_status bsmm_wgmma_run(const bsmm_product *p, const bsmm_wgmma_engine *made,
                           const bsmm_wgmma_input *input);

/* The largest error before the last rounding, as a multiple of sum |a||b|; see docs/NUMERICS.md. */
double bsmm_wgmma_bound(bsmm_wgmma_kind kind, int64_t k);

#endif
