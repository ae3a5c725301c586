/* The layout of a tile in LDS for every element type. Tests on the host use these functions too.
 *
 * A stage holds 128 elements of K: a row has 128 bytes of 8-bit elements, 96 bytes of 6-bit
 * elements or 64 bytes of 4-bit elements. Each row is divided into pieces of 16 bytes (12 bytes for
 * 6-bit elements). Piece p of row r is stored at index p ^ swizzle(r) of its row, so that lanes
 * that read together do not conflict in a bank. Loads from memory directly to LDS can only write
 * the lanes' bytes side by side. Each lane therefore applies the swizzle to its address in
 * memory. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_LAYOUT_H
#define BSMM_AMDGPU_CDNA_GEMM_LAYOUT_H

#include "amdgpu/cdna/gemm_params.h"

/* The numbers by which the instruction f8f6f4 selects an element type. */
enum { BSMM_F8F6F4_E4M3, BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E2M3, BSMM_F8F6F4_E3M2, BSMM_F8F6F4_E2M1 };

BSMM_SHARED uint32_t gemm_bits(uint32_t type) {
    return type == BSMM_F8F6F4_E2M1 ? 4 : type >= BSMM_F8F6F4_E2M3 ? 6 : 8;
}

BSMM_SHARED uint32_t gemm_row_bytes(uint32_t type) {
    return BSMM_CDNA_K / 8 * gemm_bits(type);
}

BSMM_SHARED uint32_t gemm_piece_bytes(uint32_t type) {
    return gemm_bits(type) == 6 ? 12 : 16;
}

/* Returns the swizzle of a row, for an LDS of 32 or 64 banks: the number that is XORed with the
 * index of each piece (16 bytes, or 12 for 6-bit elements) of the row.
 *
 * When a wave reads a fragment, 16 lanes read the same piece of 16 neighbouring rows. An LDS of 32
 * banks serves eight of these lanes at once, and an LDS of 64 banks serves all 16. Pieces of 12
 * bytes are read word by word, with 32 lanes at once. Rows of 128 bytes all begin at the same bank,
 * rows of 64 bytes at two different banks, and rows of 96 bytes at four.
 *
 * The swizzle repeats every 16 rows, or every 8 for 128-byte rows and 32 banks. gemm_load_direct
 * relies on this period. */
BSMM_SHARED uint32_t gemm_swizzle_of(uint32_t type, uint32_t row, uint32_t banks) {
    const uint32_t bits = gemm_bits(type), half = banks == 64 ? row / 8 % 2 : 0;
    if (bits == 8) return row % 8 ^ half;
    if (bits == 4) return (row / 2 % 4) ^ half;
    return row / 4 % 2 + row / 8 % 2 * 4;
}

/* Returns where the pieces of a lane's fragment are: the index of piece `which` (0 or 1) among the
 * pieces of the row. A piece has 16 bytes (12 for 6-bit elements). A fragment has 32 elements of K,
 * i.e. two pieces (one for 4-bit elements). `group` is lane / 16, because lanes with the same
 * quotient hold the same part of K. */
BSMM_SHARED uint32_t gemm_piece_of(uint32_t type, uint32_t group, uint32_t which) {
    const uint32_t bits = gemm_bits(type);
    return bits == 6 ? 2 * group + which : bits == 8 ? group + 4 * which : group;
}

#endif
