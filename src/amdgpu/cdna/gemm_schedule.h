/* Assigns a tile of D to each workgroup. The hardware distributes consecutive workgroups over the
 * XCDs (dies of the GPU), each of which has its own L2. The schedule gives neighbouring tiles to
 * the same XCD. Tiles that run on an XCD at about the same time share eight rows of tiles, so that
 * its L2 holds the rows of A and B that they read. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCHEDULE_H
#define BSMM_AMDGPU_CDNA_GEMM_SCHEDULE_H

#include "amdgpu/cdna/gemm_params.h"

typedef struct gemm_tile {
    uint32_t row, col; /* counted in tiles */
} gemm_tile;

/* Returns the number of the tile that workgroup `group` computes. The hardware runs the workgroup
 * on XCD group % 8. Each XCD gets consecutive tile numbers, and the first XCDs get one tile more if
 * the tiles are not a multiple of 8. */
BSMM_SHARED uint32_t gemm_number(uint32_t group, uint32_t tiles) {
    const uint32_t xcd = group % BSMM_CDNA_XCDS, each = tiles / BSMM_CDNA_XCDS;
    const uint32_t longer = tiles % BSMM_CDNA_XCDS;
    return xcd * each + (xcd < longer ? xcd : longer) + group / BSMM_CDNA_XCDS;
}

/* Returns the tile with a number. Tile numbers go through a band of eight rows of tiles column by
 * column, then through the next band. The last band may have fewer rows. */
BSMM_SHARED gemm_tile gemm_tile_of(uint32_t number, uint32_t row_tiles, uint32_t col_tiles) {
    const uint32_t band = number / (BSMM_CDNA_BAND_ROWS * col_tiles);
    const uint32_t first = band * BSMM_CDNA_BAND_ROWS, left = row_tiles - first;
    const uint32_t height = left < BSMM_CDNA_BAND_ROWS ? left : BSMM_CDNA_BAND_ROWS;
    const uint32_t inside = number - first * col_tiles;
    return (gemm_tile){first + inside % height, inside / height};
}

#endif
