/* Declares the host code that all MFMA kernels share. MFMA kernels are the kernels for CDNA's
 * matrix instructions that include cdna/gemm_stage.h. */
#ifndef BSMM_AMDGPU_HOST_MFMA_H
#define BSMM_AMDGPU_HOST_MFMA_H

#include "amdgpu/cdna/gemm_params.h"
#include "amdgpu/runtime/device.h"
#include "gpu/refuse.h"

/* Describes one MFMA kernel. `rows` and `cols` are the size of the tile of D that a workgroup of
 * `threads` threads computes. `busy` and `alone` are numbers of cycles in which a tile is
 * multiplied along 128 elements of K. `busy` applies if a compute unit has enough workgroups to
 * hide the latency of memory. `alone` applies if a compute unit has a single workgroup, which must
 * wait for memory.
 *
 * If `aligned` is set, the kernel takes only a K that is a multiple of BSMM_CDNA_K, and only
 * operands that loads can transfer directly to LDS. This depends on the alignment of the buffers,
 * which is known only when the product runs. If the buffers are not aligned, the run uses the
 * previous entry of the list of tiles instead.
 *
 * If `persistent` is set and K is not split, a launch has at most one workgroup for each compute
 * unit. If there are more tiles than workgroups, a workgroup computes several tiles, one after
 * another. */
typedef struct bsmm_mfma_tile {
    bsmm_hip_function function;
    uint32_t rows, cols, threads;
    double busy, alone;
    bool aligned, persistent;
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

/* Estimates the cycles of a product with a tile if K is divided into `parts` parts (split-K). The
 * estimate is good enough to choose a tile and a number of parts. */
double bsmm_mfma_estimate(const bsmm_product *p, const bsmm_mfma_tile *tile, uint32_t parts);

/* Returns the largest number of parts into which K may be divided (split-K). Each workgroup
 * computes one part of a tile. With more than one part, all workgroups must run at once, on
 * different compute units. The number is 1 if the caller wants an order of additions that does not
 * depend on M and N. */
uint32_t bsmm_mfma_most_parts(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns the number of parts of K (split-K) with the least estimated time. */
uint32_t bsmm_mfma_choose_parts(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns the number of workgroups of a launch for `tiles` tiles of D and `parts` parts of K. */
uint32_t bsmm_mfma_choose_groups(const bsmm_product *p, const bsmm_mfma_tile *tile, uint32_t tiles,
                                 uint32_t parts);

/* Returns true if the tile has a function with code for the product's device, and if this function
 * supports the product's K and its strides between rows (or columns). */
bool bsmm_mfma_fits(const bsmm_product *p, const bsmm_mfma_tile *tile);

/* Returns the tile with the least estimated time (bsmm_mfma_estimate) among the tiles of a list
 * that fit (bsmm_mfma_fits). The first entry of the list must fit every product. */
const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count);

/* Fills the state of a plan for a product that the kernel supports. The kernel multiplies every sum
 * by `factor`. */
void bsmm_mfma_begin(const bsmm_product *p, const bsmm_mfma_tile *tile, float factor,
                     bsmm_mfma_state *state);

/* These functions implement members of bsmm_kernel for all MFMA kernels: the number of parts of K,
 * the size of the workspace, making a plan's state, and running a plan. */
uint32_t bsmm_mfma_k_parts(const bsmm_product *p, const void *state);
uint64_t bsmm_mfma_workspace_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_mfma_make(const bsmm_product *p, void *state);
bsmm_status bsmm_mfma_run(const bsmm_product *p, const void *state, void *workspace);

/* Sets the members of bsmm_kernel that hip_cdna_fp8 and hip_gfx950_scaled have in common.
 * BSMM_FEATURE_INVARIANT means that the kernels can compute results whose bits do not depend on M
 * and N. The kernels add products in ascending order of K. With split-K, they add the sums of the
 * parts in ascending order too, but the number of parts depends on M and N. They therefore do not
 * split K if the caller requires batch-invariant results. */
#define BSMM_MFMA_KERNEL                                                                           \
    .device = "hip", .state_bytes = sizeof(bsmm_mfma_state), .k_parts = bsmm_mfma_k_parts,         \
    .workspace_bytes = bsmm_mfma_workspace_bytes, .make = bsmm_mfma_make, .run = bsmm_mfma_run,    \
    .features = BSMM_FEATURE_INVARIANT

#endif
