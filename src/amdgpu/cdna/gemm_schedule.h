/* Assigns a tile of D to each workgroup. The hardware distributes consecutive workgroups over the
 * XCDs (dies of the GPU), each of which has its own L2. The schedule gives neighbouring tiles to
 * the same XCD. Tiles that an XCD computes at about the same time lie in a band of eight rows of
 * tiles. These tiles read few different rows of A and B, so that the XCD's L2 can hold the rows. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCHEDULE_H
#define BSMM_AMDGPU_CDNA_GEMM_SCHEDULE_H

#include "amdgpu/cdna/gemm_params.h"

typedef struct gemm_tile {
    /* `row` and `col` are the row and column of the tile in D, counted in tiles. */
    uint32_t row, col;
} gemm_tile;

/* Returns the number of the tile that workgroup `group` computes. The hardware runs workgroup
 * `group` on XCD (die) group % 8. The function assigns tiles such that each XCD gets consecutive
 * tile numbers: XCD 0 gets the first eighth of the tiles, XCD 1 the next, and so on. If the number
 * of tiles is no multiple of 8, the first XCDs get one tile more than the others. */
BSMM_SHARED uint32_t gemm_number(uint32_t group, uint32_t tiles) {
    const uint32_t xcd = group % BSMM_CDNA_XCDS, each = tiles / BSMM_CDNA_XCDS;
    const uint32_t longer = tiles % BSMM_CDNA_XCDS;
    return xcd * each + (xcd < longer ? xcd : longer) + group / BSMM_CDNA_XCDS;
}

/* Returns the tile with number `number`. Tiles are numbered band by band, and a band is eight rows
 * of tiles. Within a band, tiles are numbered column by column. The last band may have fewer rows.
 */
BSMM_SHARED gemm_tile gemm_tile_of(uint32_t number, uint32_t row_tiles, uint32_t col_tiles) {
    const uint32_t band = number / (BSMM_CDNA_BAND_ROWS * col_tiles);
    const uint32_t first = band * BSMM_CDNA_BAND_ROWS, left = row_tiles - first;
    const uint32_t height = left < BSMM_CDNA_BAND_ROWS ? left : BSMM_CDNA_BAND_ROWS;
    const uint32_t inside = number - first * col_tiles;
    /* A band of the full height has BSMM_CDNA_BAND_ROWS rows of tiles. This number is a constant
     * power of two, so this case takes shifts instead of divisions. */
    if (height == BSMM_CDNA_BAND_ROWS)
        return (gemm_tile){first + inside % BSMM_CDNA_BAND_ROWS, inside / BSMM_CDNA_BAND_ROWS};
    return (gemm_tile){first + inside % height, inside / height};
}

#endif
