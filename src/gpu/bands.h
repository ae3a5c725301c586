/* Defines the order in which thread blocks compute the tiles of D. The code is plain C for host and
 * device. */
#ifndef BSMM_GPU_BANDS_H
#define BSMM_GPU_BANDS_H

#include "base/device.h"

#include <stdint.h>

/* Holds the row and the column of a tile of D, counted in tiles. */
typedef struct bsmm_gpu_tile {
    uint32_t m, n;
} bsmm_gpu_tile;

/* Returns the row and column of tile number `tile`, in tiles. Tiles are numbered band by band, and
 * a band is group_m rows of tiles. In a band they are numbered column by column. The tiles that run
 * at the same time then read few different rows of A and B, so most reads hit in L2. */
BSMM_DEVICE bsmm_gpu_tile bsmm_gpu_tile_at(uint32_t tile, uint32_t group_m, uint32_t tiles_m,
                                           uint32_t tiles_n) {
    const uint32_t band = tile / (group_m * tiles_n), first = band * group_m,
                   inside = tile - first * tiles_n, left = tiles_m - first,
                   height = left < group_m ? left : group_m;
    const bsmm_gpu_tile at = {first + inside % height, inside / height};
    return at;
}

#endif
