/* Loads a stage, i.e. 128 elements of K of a tile, from memory to LDS. On gfx950, loads transfer
 * the bytes directly to LDS, except in three cases: the stage extends beyond K, the operand is not
 * aligned, or the operand is column-major. In these cases, and always on gfx942, the bytes go
 * through registers. gfx942 multiplies only e4m3fnuz, so e4m3 elements are recoded in the
 * registers. Rows beyond the operand and elements beyond K become bytes of 0, which means +0 in
 * every format. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_LOAD_H
#define BSMM_AMDGPU_CDNA_GEMM_LOAD_H

#include "amdgpu/cdna/gemm_schedule.h"
#include "amdgpu/cdna/gemm_shape.h"

/* Returns the number of the part of K that this workgroup multiplies (split-K). Workgroups with
 * consecutive numbers on an XCD have the same part, because they then share rows of A and B in
 * L2. */
BSMM_DEVICE uint32_t gemm_part_here(const bsmm_cdna_gemm *p) {
#if defined(GEMM_SKIPS_PARTS)
    /* If K is not split, the number of the part of K is 0, and the computation below is not needed.
     * A source file enables this shortcut by defining GEMM_SKIPS_PARTS if one of its kernels would
     * spill registers without it. */
    if (p->parts == 1) return 0;
#endif
    const uint32_t tiles = p->row_tiles * p->col_tiles;
    /* The empty assembly hides from the compiler that all calls of this function return the same
     * number. The compiler then computes the number anew in the rare code that needs it, instead of
     * keeping it in a register. */
    uint32_t group = bsmm_group_x();
    __asm__ volatile("" : "+s"(group));
    const uint32_t number = gemm_number(group, tiles * p->parts);
    return (uint32_t)(number * p->tiles_reciprocal >> 32);
}

/* Returns the first element along K of the workgroup's part of K. */
BSMM_DEVICE uint32_t gemm_part_begin(const bsmm_cdna_gemm *p) {
    return gemm_part_here(p) * p->part_k;
}

/* Returns the number of elements along K of the workgroup's part of K. */
BSMM_DEVICE uint32_t gemm_part_length(const bsmm_cdna_gemm *p) {
    const uint32_t left = p->k - gemm_part_begin(p);
    return left < p->part_k ? left : p->part_k;
}

/* A workgroup multiplies a part of K. Returns the distance, in scales, from a row's first scale to
 * its first scale in this part. `block` is the number of elements along K that have one scale. In
 * memory, the distances between BSMM_CDNA_SCALES consecutive scales of a row form a pattern, which
 * repeats scale_period scales later (bsmm_cdna_side). A part of K begins at the beginning of such a
 * pattern, so the distance is the number of patterns before it times scale_period. */
BSMM_DEVICE uint32_t gemm_part_scale(const bsmm_cdna_gemm *p, uint32_t side, uint32_t block) {
    return gemm_part_begin(p) / (BSMM_CDNA_SCALES * block) * p->sides[side].scale_period;
}

/* Returns the number of bytes per lane that one direct load from memory to LDS transfers. gfx942
 * has only loads of 4 bytes per lane. */
BSMM_DEVICE uint32_t gemm_load_bytes(uint32_t type) {
#if defined(__gfx950__)
    return gemm_piece_bytes(type);
#else
    (void)type;
    return 4;
#endif
}

typedef struct gemm_source {
    /* `buffer` is the operand's memory from the tile's first row, and from the first element of the
     * workgroup's part of K, to the operand's end. */
    bsmm_i32x4 buffer;
    /* `lane_offset` is the offset in bytes in `buffer` at which this lane's first direct load to
     * LDS reads. */
    uint32_t lane_offset;
    /* `row` is the number of the tile's first row in the operand, and `rows` is the number of rows
     * from there to the operand's end. `pitch` is the distance of two rows in bytes. `whole` is the
     * number of stages that loads can move directly from memory to LDS: those that lie inside the
     * workgroup's part of K completely, or 0 if the operand allows no such loads. */
    uint32_t row, pitch, rows, whole;
    /* `wave` is the result of gemm_wave, which would otherwise be computed again for each load. */
    uint32_t wave;
} gemm_source;

/* A direct load writes consecutive bytes of LDS. Returns which byte of a row of the operand must be
 * loaded for byte `at` of a tile in LDS. The result is counted in bytes from the first byte of the
 * row that belongs to the stage. LDS holds the pieces (12 or 16 bytes) of a row in swizzled order,
 * so the loads permute the pieces. The rows of B are permuted too, but gemm_row_of returns the
 * number of the row. */
BSMM_DEVICE uint32_t gemm_source_byte(uint32_t type, uint32_t at) {
    const uint32_t bytes = gemm_row_bytes(type), piece = gemm_piece_bytes(type);
    const uint32_t row = at / bytes, place = at % bytes / piece;
    return (place ^ gemm_swizzle(type, row)) * piece + at % piece;
}

BSMM_DEVICE gemm_source gemm_source_of(const bsmm_cdna_gemm *p, gemm_shape s, uint32_t side,
                                       uint32_t row) {
    const bsmm_cdna_side *o = &p->sides[side];
    const uint32_t type = s.types[side], at = gemm_thread_of_tile() * gemm_load_bytes(type);
    const uint32_t begin = gemm_part_begin(p), left = p->k - begin;
    const uint64_t skipped = (uint64_t)begin * gemm_bits(type) / 8;
    const uint64_t row_bytes = ((uint64_t)left * gemm_bits(type) + 7) / 8;
    gemm_source from;
    from.wave = gemm_wave();
    __asm__ volatile("" : "+s"(from.wave));
    from.row = row, from.rows = o->rows - row, from.pitch = (uint32_t)o->pitch;
#if defined(__gfx950__)
    from.whole = o->direct && !s.ocp && !s.columns ? gemm_part_length(p) / gemm_k(type) : 0;
#else
    /* On gfx942 this kernel loads all stages through registers and none directly to LDS. A direct
     * load moves only four bytes per lane there, so a round, i.e. one load by each lane of the
     * workgroup, has only few rows. LDS holds B's rows in a permuted order (gemm_row_of), and the
     * pattern of this order is longer than such a round. A lane would therefore have to compute
     * another address for each round. */
    from.whole = 0;
#endif
    from.buffer = s.columns ? bsmm_isa_buffer(o->o.data + begin * o->pitch + row,
                                              (left - 1) * o->pitch + from.rows)
                            : bsmm_isa_buffer(o->o.data + row * o->pitch + skipped,
                                              (from.rows - 1) * o->pitch + row_bytes);
    from.lane_offset = gemm_row_of(gemm_order(s, side), at / gemm_row_bytes(type)) * from.pitch +
                       gemm_source_byte(type, at);
    return from;
}

/* Returns the number of direct loads (loads from memory to LDS without registers) that each lane
 * issues to fill one operand's part of a stage. In a round, every lane of the workgroup issues one
 * such load. The 64 lanes of a wave write their bytes to LDS side by side, and the bytes of the
 * next wave follow. */
BSMM_DEVICE uint32_t gemm_rounds(gemm_shape s, uint32_t side) {
    return gemm_side_bytes(s, side) / (gemm_threads(s) * gemm_load_bytes(s.types[side]));
}

/* Returns the number of loads that a wave issues for a stage that is loaded directly to LDS. */
BSMM_DEVICE uint32_t gemm_stage_loads(gemm_shape s) {
    return gemm_rounds(s, 0) + gemm_rounds(s, 1);
}

/* Loads one round of a stage directly to LDS, i.e. one load by every lane of the workgroup. A round
 * consists of whole rows. Their number is a multiple of the period of the swizzle, and of the
 * length of the pattern in which LDS permutes B's rows (gemm_row_of). From one round to the next, a
 * lane's place in these patterns is therefore the same, and the same `lane_offset` is right for all
 * rounds. */
BSMM_DEVICE void gemm_load_round(const gemm_source *from, gemm_shape s, uint32_t side,
                                 uint32_t step, uint32_t round, uint32_t lds) {
    const uint32_t type = s.types[side], bytes = gemm_load_bytes(type);
    const uint32_t all = gemm_threads(s) * bytes, rows = all / gemm_row_bytes(type);
    bsmm_isa_load_to_lds(from->buffer, lds + round * all + from->wave * GEMM_WAVE * bytes,
                         from->lane_offset,
                         step * gemm_row_bytes(type) + round * rows * from->pitch, bytes);
}

/* Loads one stage (128 elements of K, or 256 of 4-bit operands) of A or B directly to LDS. */
BSMM_DEVICE void gemm_load_direct(const gemm_source *from, gemm_shape s, uint32_t side,
                                  uint32_t step, uint32_t lds) {
#pragma unroll
    for (uint32_t round = 0; round < gemm_rounds(s, side); round++)
        gemm_load_round(from, s, side, step, round, lds);
}

/* Recodes four bytes of e4m3 to e4m3fnuz with half the value. Most bytes stay the same. Only three
 * codes change: -0 becomes +0, because its code means NaN in e4m3fnuz. The two NaNs become
 * e4m3fnuz's NaN, because their codes mean numbers in e4m3fnuz. */
BSMM_DEVICE uint32_t gemm_fnuz_of_ocp(uint32_t x) {
    const uint32_t low = x & 0x7f7f7f7fu;
    const uint32_t nonzero = low + 0x7f7f7f7fu, nan = (low + 0x01010101u) & 0x80808080u;
    return (low & ~(nan - (nan >> 7))) | (x & nonzero & 0x80808080u) | nan;
}

/* Loads one piece of a row, i.e. the unit of 12 or 16 bytes in which LDS stores rows, from an
 * address of any alignment. The first `bits` bits are elements, and the other bits become 0. The
 * function does not read bytes without elements, because they may lie outside the operand's
 * memory. */
BSMM_DEVICE bsmm_i32x4 gemm_load_piece(gemm_memory *from, uint32_t bytes, int32_t bits) {
    typedef bsmm_i32x4 __attribute__((aligned(1))) anywhere;
    bsmm_i32x4 words = {0};
    if (bits >= (int32_t)bytes * 8) {
        if (bytes == 16) return *(BSMM_GLOBAL const anywhere *)from;
        __builtin_memcpy(&words, (const void *)from, 12);
        return words;
    }
    /* low and high hold the piece of 12 or 16 bytes as a number of 128 bits. The loop goes
     * backwards, from the last byte of the piece to the first. */
    uint64_t low = 0, high = 0;
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

/* Loads one stage of one row-major operand to LDS through registers. */
BSMM_DEVICE void gemm_load_by_registers(const gemm_source *from, gemm_shape s, uint32_t side,
                                        uint32_t step, gemm_lds *lds) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    gemm_memory *data = (gemm_memory *)p->sides[side].o.data;
    step += gemm_part_begin(p) / gemm_k(s.types[side]);
    const uint32_t type = s.types[side], bits = gemm_bits(type), piece = gemm_piece_bytes(type);
    const uint32_t row_bytes = gemm_row_bytes(type), row_pieces = row_bytes / piece;
    const uint32_t pieces = gemm_rows(s, side) * row_pieces;
    uint32_t i = gemm_thread_here();
#pragma clang loop unroll(disable)
    for (; i < pieces; i += gemm_threads(s)) {
        const uint32_t row = gemm_row_of(gemm_order(s, side), i / row_pieces);
        const uint32_t byte = gemm_source_byte(type, i * piece);
        const int32_t left = (int32_t)((p->k - step * gemm_k(type)) * bits - byte * 8);
        bsmm_i32x4 words = {0};
        if (from->row + row < p->sides[side].rows && left > 0)
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

/* A gemm_word is a 32-bit word at an address of any alignment. */
typedef uint32_t __attribute__((aligned(1))) gemm_word;

/* Loads up to four neighbouring one-byte elements of a column of a column-major operand into one
 * word. Rows beyond `rows` become 0. */
BSMM_DEVICE uint32_t gemm_load_column(gemm_memory *from, uint32_t rows) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4 && i < rows; i++)
        word |= (uint32_t)from[i] << 8 * i;
    return word;
}

/* Loads a block of four rows by 16 columns of one-byte elements of a column-major operand. Elements
 * of columns beyond `columns` and of rows beyond `rows` become 0. */
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

/* Transposes a 4 x 4 matrix of bytes. Each word is one row of the matrix. */
BSMM_DEVICE void gemm_transpose(const uint32_t from[4], uint32_t to[4]) {
    const uint32_t a = bsmm_pick_bytes(from[0], from[1], 0x5140);
    const uint32_t b = bsmm_pick_bytes(from[2], from[3], 0x5140);
    const uint32_t c = bsmm_pick_bytes(from[0], from[1], 0x7362);
    const uint32_t d = bsmm_pick_bytes(from[2], from[3], 0x7362);
    to[0] = bsmm_pick_bytes(a, b, 0x5410), to[1] = bsmm_pick_bytes(a, b, 0x7632);
    to[2] = bsmm_pick_bytes(c, d, 0x5410), to[3] = bsmm_pick_bytes(c, d, 0x7632);
}

/* Loads one stage of a column-major operand of 8-bit elements. A thread loads 16 columns (elements
 * along K) of four rows, transposes them in registers, and stores 16 bytes of each row to LDS.
 * Neighbouring threads load neighbouring rows, so that their loads are contiguous. */
BSMM_DEVICE void gemm_load_by_columns(const gemm_source *from, gemm_shape s, uint32_t side,
                                      uint32_t step, gemm_lds *lds) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    const uint32_t first = gemm_part_begin(p) + step * BSMM_CDNA_K, left = p->k - first;
    gemm_memory *data =
        (gemm_memory *)p->sides[side].o.data + (uint64_t)first * from->pitch + from->row;
    const uint32_t type = s.types[side], row_bytes = gemm_row_bytes(type);
    const uint32_t quads = gemm_rows(s, side) / 4;
    uint32_t i = gemm_thread_here();
#pragma clang loop unroll(disable)
    for (; i < quads * (row_bytes / 16); i += gemm_threads(s)) {
        const uint32_t row = i % quads * 4, piece = i / quads, k = piece * 16;
        const uint32_t rows = row < from->rows ? from->rows - row : 0;
        /* The word words[q][i] first holds column 4 q + i of four rows. After gemm_transpose it
         * holds row i of columns 4 q to 4 q + 3. */
        uint32_t words[4][4];
        gemm_load_columns(data, k * from->pitch + row, from->pitch, rows, k < left ? left - k : 0,
                          words);
#pragma unroll
        for (uint32_t q = 0; q < 4; q++)
            gemm_transpose(words[q], words[q]);
#pragma unroll
        for (uint32_t r = 0; r < 4; r++) {
            const uint32_t to = gemm_row_in_lds(gemm_order(s, side), row) + r;
            bsmm_i32x4 turned;
            for (uint32_t q = 0; q < 4; q++)
                turned[q] = (int32_t)(s.ocp ? gemm_fnuz_of_ocp(words[q][r]) : words[q][r]);
            *(BSMM_IN_LDS bsmm_i32x4 *)(lds + to * row_bytes +
                                        (piece ^ gemm_swizzle(type, to)) * 16) = turned;
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
