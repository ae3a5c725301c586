/* Defines the layout in LDS of the tall tile (gfx942/tall.h). A buffer holds 256 rows of A, then
 * 128 rows of B. Each row has 64 elements, i.e. one half of the 128 elements of K that a cache line
 * holds. Tests on the host use these functions too.
 *
 * A row has four pieces of 16 bytes. LDS serves eight lanes at once, i.e. 128 bytes from its 32
 * banks. When lanes read, the eight lanes read piece p of eight consecutive rows. When lanes write,
 * they write all pieces of rows r and r + 4. The layout avoids bank conflicts in both cases:
 * - Rows r and r + 4 are stored side by side, so that they lie in different halves of the 32 banks.
 * - Piece p of row r is stored at index p ^ (r % 4) in the row, so that the pieces p of four
 *   consecutive rows lie in different banks of one half. */
#ifndef BSMM_AMDGPU_GFX942_TALL_LAYOUT_H
#define BSMM_AMDGPU_GFX942_TALL_LAYOUT_H

#include "amdgpu/cdna/gemm_layout.h"

enum {
    TALL_HALF = 64, /* TALL_HALF is the number of bytes of a row in LDS. */
    TALL_A = 256,
    TALL_B = 128,
    TALL_BYTES = (TALL_A + TALL_B) * TALL_HALF,
};

/* Returns the position in LDS of row `row` of the operand's tile, counted in rows. */
BSMM_SHARED uint32_t tall_slot(uint32_t row) {
    return row / 8 * 8 + row % 4 * 2 + row / 4 % 2;
}

/* Returns the number of the operand's row that LDS holds at position `slot`. The function is the
 * inverse of tall_slot. */
BSMM_SHARED uint32_t tall_row_of_slot(uint32_t slot) {
    return slot / 8 * 8 + slot % 2 * 4 + slot / 2 % 4;
}

BSMM_SHARED uint32_t tall_swizzle(uint32_t row) {
    return row % 4;
}

#endif
