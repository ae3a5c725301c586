/* The schedule gives each workgroup its tile. Workgroups go to the XCDs in turn, and each XCD has
 * an L2 of its own: an XCD gets tiles side by side, and inside an XCD neighbours in time share
 * eight rows of tiles, so that both operands are found in its L2. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCHEDULE_H
#define BSMM_AMDGPU_CDNA_GEMM_SCHEDULE_H

#include "amdgpu/cdna/gemm_params.h"

typedef struct gemm_tile {
    uint32_t row, col; /* in tiles */
} gemm_tile;

/* Workgroup g is number g / 8 of XCD g % 8; the first XCDs have one tile more. */
BSMM_SHARED uint32_t gemm_number(uint32_t group, uint32_t tiles) {
    const uint32_t xcd = group % BSMM_CDNA_XCDS, each = tiles / BSMM_CDNA_XCDS;
    const uint32_t longer = tiles % BSMM_CDNA_XCDS;
    return xcd * each + (xcd < longer ? xcd : longer) + group / BSMM_CDNA_XCDS;
}

/* Bands of eight rows, column by column inside a band; the last band may be lower. */
BSMM_SHARED gemm_tile gemm_tile_of(uint32_t number, uint32_t row_tiles, uint32_t col_tiles) {
    const uint32_t band = number / (BSMM_CDNA_BAND_ROWS * col_tiles);
    const uint32_t first = band * BSMM_CDNA_BAND_ROWS, left = row_tiles - first;
    const uint32_t height = left < BSMM_CDNA_BAND_ROWS ? left : BSMM_CDNA_BAND_ROWS;
    const uint32_t inside = number - first * col_tiles;
    return (gemm_tile){first + inside % height, inside / height};
}

#endif
