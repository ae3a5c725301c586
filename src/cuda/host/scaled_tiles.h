/* The sm_100f kernels of scaled_body.h for many rows of A (cuda_sm100f_scaled, cuda_sm100f_wide)
 * share these functions. The functions choose the size of a tile of D, and say how D is stored. */
#ifndef BSMM_CUDA_HOST_SCALED_TILES_H
#define BSMM_CUDA_HOST_SCALED_TILES_H

#include "cuda/host/kernel.h"
#include "cuda/host/scaled_kernels.h"
#include "cuda/sm100f/scaled_params.h"

/* Describes a size of tiles of D. If a pair of thread blocks computes a tile, each block loads only
 * half of the tile's rows of B. */
typedef struct bsmm_scaled_tile {
    /* `ctas` is the number of thread blocks that compute a tile together. Each of them has 128 of
     * the tile's rows. */
    uint32_t ctas;
    uint32_t cols;
} bsmm_scaled_tile;

/* Says how a kernel divides a product among thread blocks. */
typedef struct bsmm_scaled_deal {
    const bsmm_scaled_tile *tile; /* `tile` is NULL if D has more than 2^31 tiles of each size. */
    /* `parts` is the number of groups that divide the K of each tile among them (split-K). A group
     * is one thread block or a pair of them. */
    uint32_t parts;
} bsmm_scaled_deal;

/* Returns the tile size of `tiles` and the number of parts of K with the fewest estimated cycles.
 * The K of a tile has `k_blocks` k blocks, each of which fills a stage in shared memory. If
 * `k_blocks` is 0, the kernel cannot split K. Among sizes with equal cycles the function chooses
 * the first in the table, which should be the one that loads the fewest bytes. */
bsmm_scaled_deal bsmm_scaled_tile_choose(const bsmm_product *p, const bsmm_scaled_tile *tiles,
                                         size_t count, int64_t k_blocks);

/* Writes to `why` the reason why no tile size suffices, and returns `why`. */
const char *bsmm_scaled_tile_refuse(const bsmm_product *p, char *why, size_t size);

/* Sets the parameters that describe D, its tiles, and A and B as they are stored. */
void bsmm_scaled_tile_set(const bsmm_product *p, const bsmm_scaled_deal *deal,
                          bsmm_scaled_params *params);

/* `kernels` is a row of bsmm_scaled_kernels. It has one kernel for tiles of a single thread block
 * and one for tiles of a pair. Loads the kernel of the two that computes deal->tile. */
bsmm_status bsmm_scaled_tile_make(const bsmm_product *p, const bsmm_scaled_deal *deal,
                                  const bsmm_scaled_kernel *kernels, bsmm_cuda_ready *ready);

/* Returns how the kernel stores D. */
bsmm_scaled_store bsmm_scaled_store_of(const bsmm_product *p);

/* Makes the tensor map with which TMA stores D, if the kernel stores D by TMA. */
void bsmm_scaled_result_map(const bsmm_product *p, uint32_t store, bsmm_cuda_ready_map *map);

#endif
