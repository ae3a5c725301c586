/* Declares the host code that all MFMA kernels share. MFMA kernels are the kernels for CDNA's
 * matrix instructions that include cdna/gemm_stage.h. */
#ifndef BSMM_AMDGPU_HOST_MFMA_H
#define BSMM_AMDGPU_HOST_MFMA_H

#include "amdgpu/cdna/gemm_params.h"
#include "amdgpu/runtime/device.h"
#include "core/kernel.h"

/* Describes one MFMA kernel: its function with the bytes of LDS, its tile of D, the threads of a
 * workgroup, and its cost. The cost is the time for an element of D, relative to the same time for
 * the other tiles of the list. A kernel that is `aligned` takes only operands whose memory is
 * aligned for direct loads, and whose K is a multiple of BSMM_CDNA_K. If the operands turn out not
 * to be aligned when the product runs, the run uses the tile before this one in the list. */
typedef struct bsmm_mfma_tile {
    bsmm_hip_function function;
    uint32_t rows, cols, threads;
    double cost;
    bool aligned;
} bsmm_mfma_tile;

/* Holds the state of a plan for an MFMA kernel: the chosen tile size, and the kernel's parameters
 * without memory addresses. */
typedef struct bsmm_mfma_state {
    const bsmm_mfma_tile *tile;
    bsmm_cdna_gemm job;
} bsmm_mfma_state;

/* Returns NULL if MFMA kernels can compute the product, else the reason why not. Reasons are that
 * the module has no code for the device, or that an extent is 0 or too large for the kernels'
 * offsets. `why` is a buffer for the reason. */
const char *bsmm_mfma_refuse(const bsmm_product *p, const bsmm_mfma_tile *tile, char *why,
                             size_t size);

/* Estimates the time of a product with a tile. The estimate is the number of rounds of workgroups
 * (with one workgroup on each compute unit at a time), times the elements of a tile, times the
 * tile's cost. */
double bsmm_mfma_estimate(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns true if the tile has a function with code for the product's device, and takes the
 * product's K and distances between rows (or columns). */
bool bsmm_mfma_fits(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns the tile of a list with the least estimated time (bsmm_mfma_estimate) of those that fit
 * (bsmm_mfma_fits). The first entry must fit every product. */
const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count);

/* Fills the state of a plan for a product that the kernel supports. The kernel multiplies every sum
 * by `factor`. */
void bsmm_mfma_begin(const bsmm_product *p, const bsmm_mfma_tile *tile, float factor,
                     bsmm_mfma_state *state);

/* These functions implement three members of bsmm_kernel for all MFMA kernels: the size of the
 * workspace, making a plan's state, and running a plan. */
uint64_t bsmm_mfma_workspace_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_mfma_make(const bsmm_product *p, void *state);
bsmm_status bsmm_mfma_run(const bsmm_product *p, const void *state, void *workspace);

/* Sets the members of bsmm_kernel that hip_cdna_fp8 and hip_gfx950_scaled have in common. The
 * kernels add products in ascending order of K. */
#define BSMM_MFMA_KERNEL                                                                           \
    .device = "hip", .state_bytes = sizeof(bsmm_mfma_state),                                       \
    .workspace_bytes = bsmm_mfma_workspace_bytes, .make = bsmm_mfma_make, .run = bsmm_mfma_run,    \
    .features = BSMM_FEATURE_INVARIANT

#endif
