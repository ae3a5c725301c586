/* How a tile lies in LDS: of every type, for the host's tests too.
 *
 * A stage is 128 of K: 128 bytes a row of 8-bit elements, 96 of 6 bits, 64 of 4. A row is cut into
 * pieces, of 16 bytes (12 of 6-bit elements), and piece p of row r stands at place p ^ swizzle(r),
 * so that lanes that read at once meet no bank twice. Loads that go straight to LDS write lanes
 * side by side, so each lane picks its source by the same rule. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_LAYOUT_H
#define BSMM_AMDGPU_CDNA_GEMM_LAYOUT_H

#include "amdgpu/cdna/gemm_params.h"

/* How f8f6f4 numbers its types. */
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

/* Lanes read one piece of 16 neighbouring rows, eight of them at once from 32 banks, or all from
 * 64; pieces of 12 bytes go word by word, 32 lanes at once: those of two groups. Rows of 128 bytes
 * begin at the same bank, of 64 at two, of 96 at four. It repeats after 16 rows, of 32 banks and
 * 128 bytes after 8: direct loads of one round are a multiple of that. */
BSMM_SHARED uint32_t gemm_swizzle_of(uint32_t type, uint32_t row, uint32_t banks) {
    const uint32_t bits = gemm_bits(type), half = banks == 64 ? row / 8 % 2 : 0;
    if (bits == 8) return row % 8 ^ half;
    if (bits == 4) return (row / 2 % 4) ^ half;
    return row / 4 % 2 + row / 8 % 2 * 4;
}

/* The pieces of a lane's fragment: 32 elements. Lanes go in four groups along K. Of 8 bits a group
 * has two pieces, 64 of K apart; of 6 two neighbours; of 4 one. */
BSMM_SHARED uint32_t gemm_piece_of(uint32_t type, uint32_t group, uint32_t which) {
    const uint32_t bits = gemm_bits(type);
    return bits == 6 ? 2 * group + which : bits == 8 ? group + 4 * which : group;
}

#endif
