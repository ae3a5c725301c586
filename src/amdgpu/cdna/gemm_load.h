/* From memory to a stage in LDS. Whole stages of aligned operands go there directly; a stage that K
 * cuts, operands that are not aligned and e4m3 for a unit of e4m3fnuz pass through registers. Rows
 * beyond the operand, and what is beyond K, are 0: code 0 is +0 in every format. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_LOAD_H
#define BSMM_AMDGPU_CDNA_GEMM_LOAD_H

#include "amdgpu/cdna/gemm_shape.h"

/* Bytes that a lane of one direct load brings. */
BSMM_DEVICE uint32_t gemm_load_bytes(uint32_t type) {
#if defined(__gfx950__)
    return gemm_piece_bytes(type);
#else
    (void)type;
    return 4;
#endif
}

typedef struct gemm_source {
    bsmm_i32x4 buffer;    /* from the tile's first row to the operand's end */
    uint32_t lane_offset; /* of this lane's bytes in its first load */
    uint32_t row, pitch, rows,
        whole; /* the tile's first row; rows that the operand has from there */
} gemm_source;

/* Byte `at` of a tile in LDS comes from this byte of the same row. */
BSMM_DEVICE uint32_t gemm_source_byte(uint32_t type, uint32_t at) {
    const uint32_t bytes = gemm_row_bytes(type), piece = gemm_piece_bytes(type);
    const uint32_t row = at / bytes, place = at % bytes / piece;
    return (place ^ gemm_swizzle(type, row)) * piece + at % piece;
}

BSMM_DEVICE gemm_source gemm_source_of(const bsmm_cdna_gemm *p, gemm_shape s, uint32_t side,
                                       uint32_t row) {
    const bsmm_cdna_side *o = &p->sides[side];
    const uint32_t type = s.types[side], at = bsmm_thread() * gemm_load_bytes(type);
    const uint64_t row_bytes = ((uint64_t)p->k * gemm_bits(type) + 7) / 8;
    gemm_source from;
    from.row = row, from.rows = o->rows - row, from.pitch = (uint32_t)o->pitch;
    from.whole = o->direct && !s.ocp && !s.columns ? p->k / BSMM_CDNA_K : 0;
    from.buffer =
        bsmm_isa_buffer(o->o.data + row * o->pitch, (from.rows - 1) * o->pitch + row_bytes);
    from.lane_offset = at / gemm_row_bytes(type) * from.pitch + gemm_source_byte(type, at);
    return from;
}

/* Each wave loads 64 lanes side by side, the waves of the group in turn: whole rows, as many as the
 * swizzle repeats after or a multiple, so that a lane's place in the swizzle stays. */
BSMM_DEVICE void gemm_load_direct(const gemm_source *from, gemm_shape s, uint32_t side,
                                  uint32_t step, uint32_t lds) {
    const uint32_t type = s.types[side], bytes = gemm_load_bytes(type);
    const uint32_t round = gemm_threads(s) * bytes, rows = round / gemm_row_bytes(type);
    const uint32_t first = lds + gemm_wave() * GEMM_WAVE * bytes;
    uint32_t offset = step * gemm_row_bytes(type);
#pragma unroll
    for (uint32_t at = 0; at < gemm_side_bytes(s, side); at += round) {
        bsmm_isa_load_to_lds(from->buffer, first + at, from->lane_offset, offset, bytes);
        offset += rows * from->pitch;
    }
}

/* Recodes four bytes of e4m3. Read as e4m3fnuz, the same bits mean half the value, but for three
 * codes: -0 would be NaN and becomes +0; the two NaNs would be numbers and become NaN. */
BSMM_DEVICE uint32_t gemm_fnuz_of_ocp(uint32_t x) {
    const uint32_t low = x & 0x7f7f7f7fu;
    const uint32_t nonzero = low + 0x7f7f7f7fu, nan = (low + 0x01010101u) & 0x80808080u;
    return (low & ~(nan - (nan >> 7))) | (x & nonzero & 0x80808080u) | nan;
}

/* A piece's words; `bits` of them are elements, the rest are 0. At any address, and no byte is read
 * that holds no element. */
BSMM_DEVICE bsmm_i32x4 gemm_load_piece(gemm_memory *from, uint32_t bytes, int32_t bits) {
    typedef bsmm_i32x4 __attribute__((aligned(1))) anywhere;
    bsmm_i32x4 words = {0};
    if (bits >= (int32_t)bytes * 8) {
        if (bytes == 16) return *(BSMM_GLOBAL const anywhere *)from;
        __builtin_memcpy(&words, (const void *)from, 12);
        return words;
    }
    uint64_t low = 0, high = 0; /* from the last byte on */
#pragma clang loop unroll(disable)
    for (uint32_t i = bytes; i-- > 0;) {
        const int32_t left = bits - 8 * (int32_t)i;
        uint32_t byte = left > 0 ? from[i] : 0;
        if (left > 0 && left < 8) byte &= (1u << left) - 1;
        high = high << 8 | low >> 56;
        low = low << 8 | byte;
    }
    words = (bsmm_i32x4){(int32_t)low, (int32_t)(low >> 32), (int32_t)high, (int32_t)(high >> 32)};
    return words;
}

/* The same stage by way of registers. */
BSMM_DEVICE void gemm_load_by_registers(const gemm_source *from, gemm_shape s, uint32_t side,
                                        uint32_t step, gemm_lds *lds) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    gemm_memory *data = (gemm_memory *)p->sides[side].o.data;
    const uint32_t type = s.types[side], bits = gemm_bits(type), piece = gemm_piece_bytes(type);
    const uint32_t row_bytes = gemm_row_bytes(type), row_pieces = row_bytes / piece;
    const uint32_t pieces = gemm_rows(s, side) * row_pieces;
    uint32_t i = gemm_thread_here();
#pragma clang loop unroll(disable)
    for (; i < pieces; i += gemm_threads(s)) {
        const uint32_t row = i / row_pieces, byte = gemm_source_byte(type, i * piece);
        const int32_t left = (int32_t)((p->k - step * BSMM_CDNA_K) * bits - byte * 8);
        bsmm_i32x4 words = {0};
        if (row < from->rows && left > 0)
            words = gemm_load_piece(data + (uint64_t)(from->row + row) * from->pitch +
                                        step * row_bytes + byte,
                                    piece, left);
        if (s.ocp)
            for (uint32_t w = 0; w < 4; w++)
                words[w] = (int32_t)gemm_fnuz_of_ocp((uint32_t)words[w]);
        BSMM_IN_LDS int32_t *to = (BSMM_IN_LDS int32_t *)(lds + i * piece);
        for (uint32_t w = 0; w < piece / 4; w++)
            to[w] = words[w];
    }
}

typedef uint32_t __attribute__((aligned(1))) gemm_word; /* at any address */

/* Four rows of one column as bytes; those beyond the operand are 0. */
BSMM_DEVICE uint32_t gemm_load_column(gemm_memory *from, uint32_t rows) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4 && i < rows; i++)
        word |= (uint32_t)from[i] << 8 * i;
    return word;
}

/* The same of 16 columns, of which the operand has `columns`. */
BSMM_DEVICE void gemm_load_columns(gemm_memory *from, uint32_t at, uint32_t pitch, uint32_t rows,
                                   uint32_t columns, uint32_t words[4][4]) {
    if (rows >= 4 && columns >= 16) {
#pragma unroll
        for (uint32_t c = 0; c < 16; c++, at += pitch)
            words[c / 4][c % 4] = *(BSMM_GLOBAL const gemm_word *)(from + at);
        return;
    }
#pragma unroll
    for (uint32_t c = 0; c < 16; c++, at += pitch)
        words[c / 4][c % 4] = c < columns ? gemm_load_column(from + at, rows) : 0;
}

/* Turns four words of four bytes. */
BSMM_DEVICE void gemm_turn(const uint32_t from[4], uint32_t to[4]) {
    const uint32_t a = bsmm_pick_bytes(from[0], from[1], 0x5140);
    const uint32_t b = bsmm_pick_bytes(from[2], from[3], 0x5140);
    const uint32_t c = bsmm_pick_bytes(from[0], from[1], 0x7362);
    const uint32_t d = bsmm_pick_bytes(from[2], from[3], 0x7362);
    to[0] = bsmm_pick_bytes(a, b, 0x5410), to[1] = bsmm_pick_bytes(a, b, 0x7632);
    to[2] = bsmm_pick_bytes(c, d, 0x5410), to[3] = bsmm_pick_bytes(c, d, 0x7632);
}

/* A stage of 8-bit elements that are column-major. A thread turns 16 columns of four rows into a
 * piece of each; neighbouring threads read neighbouring rows. */
BSMM_DEVICE void gemm_load_by_columns(const gemm_source *from, gemm_shape s, uint32_t side,
                                      uint32_t step, gemm_lds *lds) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    const uint32_t first = step * BSMM_CDNA_K, left = p->k - first;
    gemm_memory *data =
        (gemm_memory *)p->sides[side].o.data + (uint64_t)first * from->pitch + from->row;
    const uint32_t type = s.types[side], row_bytes = gemm_row_bytes(type);
    const uint32_t quads = gemm_rows(s, side) / 4;
    uint32_t i = gemm_thread_here();
#pragma clang loop unroll(disable)
    for (; i < quads * (row_bytes / 16); i += gemm_threads(s)) {
        const uint32_t row = i % quads * 4, piece = i / quads, k = piece * 16;
        const uint32_t rows = row < from->rows ? from->rows - row : 0;
        uint32_t words[4][4]; /* of four columns each, then a row's */
        gemm_load_columns(data, k * from->pitch + row, from->pitch, rows, k < left ? left - k : 0,
                          words);
#pragma unroll
        for (uint32_t q = 0; q < 4; q++)
            gemm_turn(words[q], words[q]);
#pragma unroll
        for (uint32_t r = 0; r < 4; r++) {
            bsmm_i32x4 turned;
            for (uint32_t q = 0; q < 4; q++)
                turned[q] = (int32_t)(s.ocp ? gemm_fnuz_of_ocp(words[q][r]) : words[q][r]);
            *(BSMM_IN_LDS bsmm_i32x4 *)(lds + (row + r) * row_bytes +
                                        (piece ^ gemm_swizzle(type, row + r)) * 16) = turned;
        }
    }
}

BSMM_DEVICE void gemm_load(const gemm_source *from, gemm_shape s, uint32_t side, uint32_t step,
                           gemm_lds *lds) {
    if (s.columns)
        gemm_load_by_columns(from, s, side, step, lds);
    else if (step < from->whole)
        gemm_load_direct(from, s, side, step, (uint32_t)(uintptr_t)lds);
    else
        gemm_load_by_registers(from, s, side, step, lds);
}

#endif
