/* The host code that all kernels of the MFMA engine share. */
#ifndef BSMM_AMDGPU_HOST_MFMA_H
#define BSMM_AMDGPU_HOST_MFMA_H

#include "amdgpu/cdna/gemm_params.h"
#include "amdgpu/runtime/device.h"
#include "core/kernel.h"

/* One kernel of the engine: its tile of D, its threads and, in `function`, its LDS. */
typedef struct bsmm_mfma_tile {
    bsmm_hip_function function;
    uint32_t rows, cols, threads;
} bsmm_mfma_tile;

/* A kernel's state: the tile that a plan has chosen, and the parameters but for memory. */
typedef struct bsmm_mfma_state {
    const bsmm_mfma_tile *tile;
    bsmm_cdna_gemm job;
} bsmm_mfma_state;

/* The reasons that all of them have: the module has no code for the device, D is block-scaled, an
 * extent is 0 or beyond what offsets hold. NULL: none. */
const char *bsmm_mfma_refuse(const bsmm_product *p, const bsmm_mfma_tile *tile, char *why,
                             size_t size);

/* Rounds of workgroups, one on each compute unit, in units of D's elements. A small tile moves each
 * operand to LDS more often, which is counted as half as much again. */
double bsmm_mfma_estimate(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns the tile with the least estimate. Tiles without a function are skipped; the first one has
 * a function. */
const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count);

/* Fills the state of a product that the kernel takes. `factor` multiplies every sum. */
void bsmm_mfma_begin(const bsmm_product *p, const bsmm_mfma_tile *tile, float factor,
                     bsmm_mfma_state *state);

/* The rest of a bsmm_kernel. */
uint64_t bsmm_mfma_workspace_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_mfma_make(const bsmm_product *p, void *state);
bsmm_status bsmm_mfma_run(const bsmm_product *p, const void *state, void *workspace);

#endif
