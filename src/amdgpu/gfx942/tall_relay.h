/* Moves the operands of the tall tile (gfx942/tall.h) from memory through registers to LDS. A step
 * has 128 elements of K, i.e. a cache line of each row. A thread loads the two halves of a line one
 * after the other, so that L1 serves the second load. LDS has a buffer for each half: while a wave
 * multiplies one half, it writes the other half to LDS.
 *
 * gfx942 multiplies e4m3fnuz, and operands in e4m3 are adapted on their way to LDS. The code of a
 * number means half the value in e4m3fnuz, which the kernel corrects later. The code of -0 means
 * NaN in e4m3fnuz, so -0 becomes +0. The codes of e4m3's NaN mean numbers in e4m3fnuz. A thread
 * notes such codes, and the sums of their rows become NaN after the main loop. */
#ifndef BSMM_AMDGPU_GFX942_TALL_RELAY_H
#define BSMM_AMDGPU_GFX942_TALL_RELAY_H

#include "amdgpu/cdna/gemm_promoted.h"
#include "amdgpu/gfx942/tall_layout.h"

/* These are the numbers of pieces (16 bytes, i.e. 16 elements of K of a row) that a thread moves in
 * each half of a step (64 elements of K). If the operands are row-major, it moves TALL_ROW_PIECES
 * pieces. If they are column-major, it loads 16 columns of four rows and transposes them to
 * TALL_PIECES pieces.
 *
 * With column-major operands, the work of a half is six tasks, each for one wave: four waves move A
 * and two waves move B. A step has two halves and therefore 12 tasks: each of the eight waves moves
 * A in one half, and four of the waves also move B in the other half. Two waves run on each SIMD,
 * and together they have three tasks in a step. All SIMDs thus have equal work. */
enum { TALL_PIECES = 4, TALL_ROW_PIECES = 3 };

/* A wave without work writes to at most TALL_UNUSED bytes of LDS, which nothing reads. Such a wave
 * loads from TALL_NOWHERE, which is an offset beyond every column-major operand. */
enum { TALL_UNUSED = 2048 };
#define TALL_NOWHERE 0x80000000u

typedef struct tall_relay {
    /* These arrays describe the operands that the wave loads. buffers[i] is the memory of an
     * operand from the tile's first row on. pitch[i] is the stride of its rows (row-major) or
     * columns (column-major). from[i] is the offset in this memory at which the lane's loads begin.
     * If A and B are row-major, entry 0 is for A and entry 1 for B. If they are column-major, entry
     * i is for the operand that the wave loads in half i of a step (64 elements of K). */
    __amdgpu_buffer_rsrc_t buffers[2];
    /* The entries of `pitch` have 64 bits, so that the compiler does not join them to a vector. */
    uint64_t pitch[2];
    uint32_t from[2];
    uint32_t to[2]; /* `to` holds the lane's offset in each half in LDS. */
    uint32_t nan;   /* `nan` has bit 7 of a byte set if the thread has met a NaN (e4m3 only). */
    bsmm_i32x4 pieces[2][TALL_PIECES];
} tall_relay;

BSMM_DEVICE gemm_lds *tall_half(uint32_t half) {
    return (gemm_lds *)gemm_stages + half * TALL_BYTES;
}

/* Recodes four bytes of e4m3 to bytes of e4m3fnuz, which mean half the value. The code of a number
 * stays the same. Only the code of -0 changes, to that of +0. To change it, the function takes each
 * byte of x if the element is not 0, and the byte of x without its sign bit (`low`) otherwise. Bit
 * 7 of a byte of `nonzero` selects between the two. The other bits of `nonzero` do not matter,
 * because x and `low` differ only in bit 7. Bit 7 of a byte of *nan is set if the element is NaN.
 */
BSMM_DEVICE uint32_t tall_fnuz_of_ocp(uint32_t x, uint32_t *nan) {
    const uint32_t low = x & 0x7f7f7f7fu, nonzero = low + 0x7f7f7f7fu;
    uint32_t code;
    __asm__("v_bfi_b32 %0, %1, %2, %3" : "=v"(code) : "v"(nonzero), "v"(x), "v"(low));
    *nan |= low + 0x01010101u;
    return code;
}

BSMM_DEVICE void tall_recode(tall_relay *r, uint32_t half, uint32_t n, uint32_t first,
                             uint32_t count) {
#pragma unroll
    for (uint32_t w = first; w < first + count; w++)
        r->pieces[half][n][w] = (int32_t)tall_fnuz_of_ocp((uint32_t)r->pieces[half][n][w], &r->nan);
}

/* The functions from here on handle row-major operands. In each half of a step, a thread loads
 * three pieces of 16 bytes: pieces 0 and 1 are from A, and piece 2 is from B. */

BSMM_DEVICE __amdgpu_buffer_rsrc_t tall_buffer(const gemm_position *at, bool side) {
    const bsmm_i32x4 a = at->sources[0].buffer, b = at->sources[1].buffer;
    const uint32_t low = (uint32_t)(side ? b[0] : a[0]), high = (uint32_t)(side ? b[1] : a[1]);
    return __builtin_amdgcn_make_buffer_rsrc((void *)(low | (uint64_t)high << 32), 0,
                                             (uint32_t)(side ? b[2] : a[2]), 0x00020000);
}

BSMM_DEVICE void tall_rows_begin(tall_relay *r, const gemm_position *at) {
#pragma unroll
    for (uint32_t side = 0; side < 2; side++)
        r->buffers[side] = tall_buffer(at, side), r->pitch[side] = at->sources[side].pitch;
    const uint32_t row = tall_row_of_slot(bsmm_thread() / 4);
    const uint32_t byte = (bsmm_thread() % 4 ^ tall_swizzle(row)) * 16;
    r->from[0] = row * (uint32_t)r->pitch[0] + byte;
    r->from[1] = gemm_row_of(GEMM_MOST_COL_TILES, row) * (uint32_t)r->pitch[1] + byte;
    r->to[0] = r->to[1] = bsmm_thread() * 16;
}

BSMM_DEVICE void tall_rows_load(tall_relay *r, uint32_t step, uint32_t half, uint32_t n) {
    typedef uint32_t u32x4 __attribute__((vector_size(16)));
    const uint32_t side = n == 2, first = n == 1 ? 128 * (uint32_t)r->pitch[0] : 0;
    r->pieces[half][n] = (bsmm_i32x4)(u32x4)__builtin_amdgcn_raw_buffer_load_b128(
        r->buffers[side], (int32_t)r->from[side],
        (int32_t)(step * BSMM_CDNA_K + half * TALL_HALF + first), 0);
}

BSMM_DEVICE void tall_rows_store(const tall_relay *r, uint32_t half, uint32_t n) {
    *(BSMM_IN_LDS bsmm_i32x4 *)(tall_half(half) + r->to[0] + n * 128 * TALL_HALF) =
        r->pieces[half][n];
}

/* The functions from here on handle column-major operands. */

/* Returns the side (0 for A, 1 for B) for which this wave moves elements in half number `half` (64
 * elements of K) of a step, or 2 if the wave has no work. */
BSMM_DEVICE uint32_t tall_columns_side(uint32_t wave, uint32_t half) {
    if (wave / 4 == half) return 0;
    return wave / 2 == 2 - half ? 1 : 2;
}

/* A wave without work loads from an offset beyond the buffer. Such loads return 0 and read no cache
 * line. The wave stores the zeros to LDS that nothing reads. It runs the same code as the other
 * waves, because branches would need more registers. */
BSMM_DEVICE void tall_columns_begin(tall_relay *r, const gemm_position *at) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t own = tall_columns_side(at->sources[0].wave, half);
        const bool works = own < 2, side = own != 0;
        const uint32_t i = bsmm_thread() % (side ? 128 : 256), row = i / 4 * 4, piece = i % 4;
        const uint32_t place = side ? TALL_A + gemm_row_in_lds(GEMM_MOST_COL_TILES, row) : row;
        r->buffers[half] = tall_buffer(at, side);
        r->pitch[half] = side ? at->sources[1].pitch : at->sources[0].pitch;
        r->from[half] = works ? piece * 16 * (uint32_t)r->pitch[half] + row : TALL_NOWHERE;
        r->to[half] =
            works ? tall_slot(place) * TALL_HALF + piece * 16
                  : (2 - half) * TALL_BYTES + gemm_wave() % 2 * TALL_UNUSED + gemm_lane() * 16;
    }
}

/* Loads four columns of four rows. Each word has the four rows of a column. */
BSMM_DEVICE void tall_columns_load(tall_relay *r, uint32_t step, uint32_t half, uint32_t n) {
#pragma unroll
    for (uint32_t c = 0; c < 4; c++) {
        const uint32_t column = step * BSMM_CDNA_K + half * TALL_HALF + 4 * n + c;
        r->pieces[half][n][c] = (int32_t)__builtin_amdgcn_raw_buffer_load_b32(
            r->buffers[half], (int32_t)r->from[half], (int32_t)(column * (uint32_t)r->pitch[half]),
            0);
    }
}

/* Transposes 4 x 4 bytes. Before, a word holds one column of four rows; afterwards, it holds four
 * columns of one row. */
BSMM_DEVICE void tall_columns_transpose(tall_relay *r, uint32_t half, uint32_t n) {
    uint32_t words[4];
    for (uint32_t c = 0; c < 4; c++)
        words[c] = (uint32_t)r->pieces[half][n][c];
    gemm_transpose(words, words);
    for (uint32_t c = 0; c < 4; c++)
        r->pieces[half][n][c] = (int32_t)words[c];
}

/* The thread holds a block of 4 rows and 16 columns of an operand. Stores row number `row` of this
 * block to LDS. */
BSMM_DEVICE void tall_columns_store(const tall_relay *r, uint32_t half, uint32_t row) {
    const bsmm_i32x4 piece = {r->pieces[half][0][row], r->pieces[half][1][row],
                              r->pieces[half][2][row], r->pieces[half][3][row]};
    *(BSMM_IN_LDS bsmm_i32x4 *)(tall_half(half) + (r->to[half] ^ row * 16) + row * 2 * TALL_HALF) =
        piece;
}

/* The functions from here on handle NaN. */

/* TALL_NAN is the bits of a NaN. An OR with these bits turns every fp32 number into a NaN, without
 * a comparison. */
enum { TALL_NAN = 0x7fc00000 };

/* Marks rows that contain a NaN in `flags`, which has a flag for each row of the tile, in the order
 * of rows in LDS. A thread remembers only that it has moved a NaN to LDS, but not in which row. It
 * therefore writes TALL_NAN to the flags of all rows of which it has moved pieces (16 bytes of a
 * row). The epilogue computes the results of these rows again in double, which does no harm if a
 * row has no NaN. */
BSMM_DEVICE void tall_flag_rows(const tall_relay *r, gemm_shape s, BSMM_IN_LDS uint32_t *flags) {
    if (!(r->nan & 0x80808080u)) return;
#pragma unroll
    for (uint32_t half = 0; half < (s.columns ? 2 : 1); half++)
#pragma unroll
        for (uint32_t n = 0; n < (s.columns ? 4 : TALL_ROW_PIECES); n++)
            if (r->to[half] < TALL_BYTES)
                flags[tall_row_of_slot(r->to[half] / TALL_HALF) + (s.columns ? n : n * 128)] =
                    TALL_NAN;
}

/* The functions from here on each do a part of the work of half a step, i.e. of 64 elements of K.
 * The kernel calls them between groups of matrix instructions. */
enum { TALL_PARTS = 6 };

/* Does part number `part` (0 to TALL_PARTS - 1) of moving half a step, i.e. 64 elements of K, from
 * registers to LDS. If an operand is column-major, the first parts transpose its data, and only the
 * last two parts write to LDS. If elements are in an OCP format, they are first converted to the
 * fnuz format. The compiler inserts a wait for the loads of the registers that the part uses. */
BSMM_DEVICE void tall_store(tall_relay *r, gemm_shape s, uint32_t half, uint32_t part) {
    const uint32_t n = part / 2;
    if (s.columns) {
        if (part < 4) {
            if (s.ocp) tall_recode(r, half, part, 0, 4);
            tall_columns_transpose(r, half, part);
        }
        if (part == 4) tall_columns_store(r, half, 0), tall_columns_store(r, half, 1);
        if (part == 5) tall_columns_store(r, half, 2), tall_columns_store(r, half, 3);
        return;
    }
    if (s.ocp) tall_recode(r, half, n, part % 2 * 2, 2);
    if (part % 2) tall_rows_store(r, half, n);
}

/* Issues the loads of part `part` of a step, for both halves of the step's elements of K. */
BSMM_DEVICE void tall_load(tall_relay *r, gemm_shape s, uint32_t step, uint32_t part) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        if (!s.columns && part % 2) tall_rows_load(r, step, half, part / 2);
        if (s.columns && part < 4) tall_columns_load(r, step, half, part);
    }
}

#endif
