/* Reads fragments from LDS. A fragment is the part of an operand that one lane passes to a matrix
 * instruction: 32 elements along K of one row.
 *
 * LDS stores a row in units of 16 bytes (12 bytes for 6-bit elements), which the code calls pieces.
 * A fragment of 8-bit elements consists of two pieces that are 64 elements of K apart, as the
 * matrix instruction f8f6f4 requires. A fragment of 6-bit elements consists of two neighbouring
 * pieces. A fragment of 4-bit elements is one piece. If both operands have 4-bit elements, a stage
 * holds 256 elements of K, and the kernel reads two pieces together, for two instructions.
 *
 * gfx942 has no instruction f8f6f4. Its fp8 instruction multiplies only 32 elements of K and takes
 * eight bytes of the same fragment at a time. The instruction then multiplies elements in another
 * order along K than in memory, but the order is the same for A and B. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_FRAGMENT_H
#define BSMM_AMDGPU_CDNA_GEMM_FRAGMENT_H

#include "amdgpu/cdna/gemm_shape.h"

/* Holds the two places in LDS from which this lane reads its elements for a matrix instruction. At
 * each place it reads a piece of 16 bytes (12 for 6-bit elements). The places are byte offsets from
 * the beginning of a tile of 16 rows. */
typedef struct gemm_reader {
    uint32_t at[2];
} gemm_reader;

BSMM_DEVICE gemm_reader gemm_reader_of(uint32_t type) {
    const uint32_t lane = gemm_thread_of_tile() % GEMM_WAVE;
    const uint32_t row = lane % BSMM_CDNA_EDGE, group = lane / BSMM_CDNA_EDGE;
    const uint32_t swizzle = gemm_swizzle(type, row), piece = gemm_piece_bytes(type);
    const uint32_t base = row * gemm_row_bytes(type);
    return (gemm_reader){{base + (gemm_piece_of(type, group, 0) ^ swizzle) * piece,
                          base + (gemm_piece_of(type, group, 1) ^ swizzle) * piece}};
}

BSMM_DEVICE bsmm_i32x4 gemm_read_piece(const gemm_lds *from, uint32_t bytes) {
    if (bytes == 16) return *(const BSMM_IN_LDS bsmm_i32x4 *)from;
    const BSMM_IN_LDS int32_t *words = (const BSMM_IN_LDS int32_t *)from;
    return (bsmm_i32x4){words[0], words[1], words[2], 0};
}

BSMM_DEVICE bsmm_i32x8 gemm_read_fragment(const gemm_lds *tile, gemm_reader r, uint32_t type) {
    const uint32_t bits = gemm_bits(type), piece = gemm_piece_bytes(type);
    const bsmm_i32x4 x = gemm_read_piece(tile + r.at[0], piece);
    if (type == BSMM_F8F6F4_E2M1) return (bsmm_i32x8){x[0], x[1], x[2], x[3], 0, 0, 0, 0};
    const bsmm_i32x4 y = gemm_read_piece(tile + r.at[1], piece);
    if (bits == 6) return (bsmm_i32x8){x[0], x[1], x[2], y[0], y[1], y[2], 0, 0};
    return (bsmm_i32x8){x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]};
}

#endif
