/* Defines the layout of a tile of A or B in LDS, for every element type. Tests on the host use
 * these functions too.
 *
 * A stage holds 128 elements of K: a row has 128 bytes of 8-bit elements, 96 bytes of 6-bit
 * elements or 64 bytes of 4-bit elements. If both operands have 4-bit elements, a stage holds 256
 * elements of K, so that a row has a whole cache line. Each row is divided into pieces of 16 bytes
 * (12 bytes for 6-bit elements). Piece p of row r is stored at index p ^ swizzle(r) of its row, so
 * that lanes that read at the same time use different LDS banks. Loads from memory directly to LDS
 * write the bytes of neighbouring lanes side by side. Each lane therefore applies the swizzle to
 * the memory address from which it loads. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_LAYOUT_H
#define BSMM_AMDGPU_CDNA_GEMM_LAYOUT_H

#include "amdgpu/cdna/gemm_params.h"

/* The instruction f8f6f4 selects an element type by one of these numbers. */
enum { BSMM_F8F6F4_E4M3, BSMM_F8F6F4_E5M2, BSMM_F8F6F4_E2M3, BSMM_F8F6F4_E3M2, BSMM_F8F6F4_E2M1 };

/* GEMM_E2M1_TWICE is a further type number. It stands for e2m1 if both operands are e2m1. A stage
 * in LDS then holds 256 elements of K, twice as many as with any other pair of types. */
enum { GEMM_E2M1_TWICE = BSMM_F8F6F4_E2M1 + 1 };

BSMM_SHARED uint32_t gemm_bits(uint32_t type) {
    return type >= BSMM_F8F6F4_E2M1 ? 4 : type >= BSMM_F8F6F4_E2M3 ? 6 : 8;
}

/* Returns the number of elements along K in a stage. */
BSMM_SHARED uint32_t gemm_k(uint32_t type) {
    return type == GEMM_E2M1_TWICE ? 2 * BSMM_CDNA_K : BSMM_CDNA_K;
}

BSMM_SHARED uint32_t gemm_row_bytes(uint32_t type) {
    return gemm_k(type) / 8 * gemm_bits(type);
}

BSMM_SHARED uint32_t gemm_piece_bytes(uint32_t type) {
    return gemm_bits(type) == 6 ? 12 : 16;
}

/* Returns the swizzle of row `row` in an LDS of 32 or 64 banks. A piece is 16 bytes of a row (12
 * bytes for 6-bit elements). The index of each piece in its row is XORed with the swizzle of the
 * row.
 *
 * Why is a swizzle needed? When a wave reads operands for a matrix instruction, 16 lanes read the
 * same piece of 16 neighbouring rows. Without a swizzle, these pieces would often lie in the same
 * banks: rows of 128 bytes all begin at only one of 32 banks or at two of 64 banks, rows of 64
 * bytes at only four of 64 banks, and rows of 96 bytes at only eight of 64 banks. The swizzle moves
 * the pieces of some rows to other banks. For example, in rows of 96 bytes, pieces with an even
 * index begin at even banks, and those with an odd index at odd banks. The swizzle exchanges the
 * two in rows 8 to 15 of each 16 rows.
 *
 * LDS serves eight lanes at once if it has 32 banks, and 16 lanes if it has 64 banks. Lanes that
 * are served at once must read different banks. These lanes are not neighbours: lanes 0 to 3, for
 * example, are served with lanes 20 to 23, which read the next piece of other rows. The test
 * test_banks has the measured lists (docs/SIMULATOR.md). Pieces of 12 bytes are read word by word,
 * and an LDS of 64 banks then serves all 64 lanes at once.
 *
 * The swizzle repeats every 16 rows. The loads in gemm_load.h rely on this period. */
BSMM_SHARED uint32_t gemm_swizzle_of(uint32_t type, uint32_t row, uint32_t banks) {
    const uint32_t bytes = gemm_row_bytes(type);
    if (bytes == 128) return row / (banks / 32) % 8;
    if (bytes == 64) return row / 8 % 2 * 2;
    return row / 8 % 2;
}

/* In LDS, the rows of B are stored in another order than in the operand, so that a lane can store
 * its results with few wide stores. A wave computes a row of `tiles` tiles of 16 x 16 results, by
 * one matrix instruction per tile. Each instruction gives a lane the results for four rows of B
 * that are neighbours in LDS. From all these instructions a lane gets 4 * tiles results of a row of
 * D. The order of B's rows in LDS is chosen such that these results are neighbouring columns of D.
 * It is a permutation of 16 * tiles rows, which is repeated for all further rows. The rows of A
 * keep their order, which is the permutation for `tiles` = 1. */

/* Returns the number of the operand's row that is stored as row `at` in LDS. Both numbers count
 * from the first row of the tile. For B, `tiles` is the number of 16 x 16 tiles that a wave
 * computes along B's rows, and the rows are permuted. For A, `tiles` is 1, and the function returns
 * `at`. */
BSMM_SHARED uint32_t gemm_row_of(uint32_t tiles, uint32_t at) {
    const uint32_t tile = at / 16 % tiles, quad = at / 4 % 4;
    return at / (16 * tiles) * (16 * tiles) + quad * 4 * tiles + tile * 4 + at % 4;
}

/* Returns the number of the LDS row that holds row `row` of the operand. The function is the
 * inverse of gemm_row_of, with the same `tiles`. */
BSMM_SHARED uint32_t gemm_row_in_lds(uint32_t tiles, uint32_t row) {
    const uint32_t tile = row / 4 % tiles, quad = row / (4 * tiles) % 4;
    return row / (16 * tiles) * (16 * tiles) + tile * 16 + quad * 4 + row % 4;
}

/* A fragment is the data that a lane passes to a matrix instruction: 32 elements of K of a row. In
 * LDS, a row is stored in pieces of 16 bytes (12 bytes for 6-bit elements). A fragment is two
 * pieces of 8-bit or 6-bit elements, or one piece of 4-bit elements. Returns the index of piece
 * number `which` (0 or 1) of the fragment in its row. `group` is lane / 16, because lanes with the
 * same quotient hold the same part of K.
 *
 * If a stage has 256 elements of K (GEMM_E2M1_TWICE), a lane has two fragments for two
 * instructions, and `which` selects one of them. The scales of both fragments are in the same
 * aligned 32-bit word of four scales, so that a lane needs only one word (gemm_scales.h). */
BSMM_SHARED uint32_t gemm_piece_of(uint32_t type, uint32_t group, uint32_t which) {
    const uint32_t bits = gemm_bits(type);
    if (type == GEMM_E2M1_TWICE) return group % 2 + 2 * which + group / 2 * 4;
    return bits == 6 ? 2 * group + which : bits == 8 ? group + 4 * which : group;
}

#endif
