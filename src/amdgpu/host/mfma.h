/* The host code that all MFMA kernels share. These kernels multiply with the matrix instructions of
 * CDNA through cdna/gemm_stage.h. */
#ifndef BSMM_AMDGPU_HOST_MFMA_H
#define BSMM_AMDGPU_HOST_MFMA_H

#include "amdgpu/cdna/gemm_params.h"
#include "amdgpu/runtime/device.h"
#include "core/kernel.h"

/* One MFMA kernel: its function with the bytes of LDS, its tile of D and the threads of a
 * workgroup. */
typedef struct bsmm_mfma_tile {
    bsmm_hip_function function;
    uint32_t rows, cols, threads;
} bsmm_mfma_tile;

/* The data that a plan keeps for an MFMA kernel: the chosen tile, and the launch parameters except
 * memory addresses. */
typedef struct bsmm_mfma_state {
    const bsmm_mfma_tile *tile;
    bsmm_cdna_gemm job;
} bsmm_mfma_state;

/* Returns the reason if no MFMA kernel can take the product, else NULL. Reasons are that the module
 * has no code for the device, that D is block-scaled, or that an extent is 0 or too large for the
 * kernels' offsets. `why` is a buffer for the reason. */
const char *bsmm_mfma_refuse(const bsmm_product *p, const bsmm_mfma_tile *tile, char *why,
                             size_t size);

/* Estimates the time of a product with a tile, in elements of D per compute unit: the rounds of
 * workgroups, with one workgroup on each compute unit at a time, times the area of a tile. The
 * estimate of a tile below 128 x 128 is multiplied by 1.5, because small tiles load each operand
 * into LDS more often. */
double bsmm_mfma_estimate(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns the tile of a list with the least estimated time (bsmm_mfma_estimate). Entries without a
 * function are skipped. The first entry must have a function. */
const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count);

/* Fills the state of a product that the kernel takes. The kernel multiplies every sum by
 * `factor`. */
void bsmm_mfma_begin(const bsmm_product *p, const bsmm_mfma_tile *tile, float factor,
                     bsmm_mfma_state *state);

/* These functions implement the remaining functions of bsmm_kernel, which all MFMA kernels share.
 */
uint64_t bsmm_mfma_workspace_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_mfma_make(const bsmm_product *p, void *state);
bsmm_status bsmm_mfma_run(const bsmm_product *p, const void *state, void *workspace);

#endif
