/* Loads a stage (128 elements of K of A and B) to LDS through registers, while the wave multiplies
 * the stage before it. gemm_relay_load starts the loads. After the multiplication, gemm_relay_store
 * writes the registers to LDS. On gfx942, three kinds of operands are loaded through registers:
 * e4m3 elements, because the kernel changes their codes on the way; column-major operands, because
 * the kernel transposes them; and row-major e4m3fnuz, because gfx942's direct loads to LDS transfer
 * only four bytes per lane. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_RELAY_H
#define BSMM_AMDGPU_CDNA_GEMM_RELAY_H

#include "amdgpu/cdna/gemm_stage.h"

/* GEMM_RELAYED is the largest number of 16-byte pieces of a stage that a thread holds in
 * registers. */
enum { GEMM_RELAYED = 4 };

typedef struct gemm_relay {
    bsmm_i32x4 pieces[GEMM_RELAYED];
} gemm_relay;

/* Returns the number of pieces of 16 bytes that each thread loads into registers and then writes to
 * LDS, for one stage. A thread has an equal share of the stage's bytes. With row-major operands it
 * moves pieces of A and of B. With column-major operands it moves pieces of only one of the two. */
BSMM_DEVICE uint32_t gemm_relay_pieces(gemm_shape s) {
    return gemm_stage_bytes(s) / 16 / gemm_threads(s);
}

/* Returns true if the kernel loads its stages through registers. This requires a shape in which
 * each thread holds four pieces of 16 bytes. */
BSMM_DEVICE bool gemm_relays(gemm_shape s) {
#if defined(__gfx950__)
    return s.columns && gemm_relay_pieces(s) == GEMM_RELAYED;
#else
    return gemm_relay_pieces(s) == GEMM_RELAYED;
#endif
}

/* gemm_relay_load loads stages (128 elements of K each) by loads of 32-bit words. These words must
 * be aligned, and must not extend beyond the memory of a column-major operand. Returns how many
 * stages, counted from the first one, can be loaded in this way: all whole stages of the
 * workgroup's part of K, or 0 if the operands do not meet these conditions. */
BSMM_DEVICE uint32_t gemm_relay_steps(const bsmm_cdna_gemm *p, gemm_shape s) {
    bool fits = gemm_relays(s);
    for (uint32_t side = 0; side < 2; side++)
        fits = fits && p->sides[side].direct && (!s.columns || p->sides[side].rows % 4 == 0);
    return fits ? gemm_part_length(p) / BSMM_CDNA_K : 0;
}

/* Describes the block of a column-major operand that a thread transposes: 16 elements along K of
 * four rows, `row` to `row` + 3. In LDS, the 16 bytes of a row become piece number `piece` of this
 * row. Four neighbouring threads have different pieces of the same four rows, so that their stores
 * use all LDS banks. The next four threads have the next four rows, so that the loads of a wave
 * share cache lines. */
typedef struct gemm_quad {
    uint32_t side, row, piece;
} gemm_quad;

BSMM_DEVICE gemm_quad gemm_quad_of(gemm_shape s) {
    const uint32_t half = gemm_threads(s) / 2, i = bsmm_thread() % half;
    return (gemm_quad){gemm_wave() * GEMM_WAVE >= half, i / 4 % (half / 8) * 4,
                       i % 4 + i / (half / 2) * 4};
}

BSMM_DEVICE __amdgpu_buffer_rsrc_t gemm_relay_buffer(const gemm_position *at, uint32_t side) {
    const gemm_source *from = &at->sources[side];
    const uint64_t first = (uint32_t)from->buffer[0] | (uint64_t)(uint32_t)from->buffer[1] << 32;
    return __builtin_amdgcn_make_buffer_rsrc((void *)first, 0, (uint32_t)from->buffer[2],
                                             0x00020000);
}

BSMM_DEVICE void gemm_relay_load(const gemm_position *at, gemm_shape s, uint32_t step,
                                 gemm_relay *relay) {
    typedef uint32_t u32x4 __attribute__((vector_size(16)));
    const gemm_quad q = gemm_quad_of(s);
#pragma unroll
    for (uint32_t n = 0; n < GEMM_RELAYED; n++) {
        if (s.columns) {
            const __amdgpu_buffer_rsrc_t buffer = gemm_relay_buffer(at, q.side);
            const uint32_t pitch = at->sources[q.side].pitch;
#pragma unroll
            for (uint32_t c = 0; c < 4; c++)
                relay->pieces[n][c] = (int32_t)__builtin_amdgcn_raw_buffer_load_b32(
                    buffer, (int32_t)(q.piece * 16 * pitch + q.row),
                    (int32_t)((step * BSMM_CDNA_K + 4 * n + c) * pitch), 0);
            continue;
        }
        const uint32_t side = n >= GEMM_RELAYED / 2, round = n % (GEMM_RELAYED / 2);
        const uint32_t index = round * gemm_threads(s) + bsmm_thread(), piece_row = index / 8;
        const uint32_t row = gemm_row_of(gemm_order(s, side), piece_row);
        relay->pieces[n] = (bsmm_i32x4)(u32x4)__builtin_amdgcn_raw_buffer_load_b128(
            gemm_relay_buffer(at, side),
            (int32_t)(row * at->sources[side].pitch +
                      gemm_source_byte(BSMM_F8F6F4_E4M3, index * 16)),
            (int32_t)(step * BSMM_CDNA_K), 0);
    }
}

BSMM_DEVICE uint32_t gemm_relay_recode(gemm_shape s, int32_t word) {
    return s.ocp ? gemm_fnuz_of_ocp((uint32_t)word) : (uint32_t)word;
}

/* Writes a thread's transposed block of a column-major operand to LDS: 16 elements along K of each
 * of four rows. */
BSMM_DEVICE void gemm_relay_transpose(gemm_shape s, gemm_relay *relay, gemm_lds *stage) {
    const gemm_quad q = gemm_quad_of(s);
    const uint32_t first = q.side ? gemm_row_in_lds(gemm_order(s, 1), q.row) : q.row;
    gemm_lds *to = stage + (q.side ? gemm_side_bytes(s, 0) : 0);
    uint32_t words[4][4];
#pragma unroll
    for (uint32_t n = 0; n < 4; n++) {
        uint32_t from[4];
        for (uint32_t c = 0; c < 4; c++)
            from[c] = gemm_relay_recode(s, relay->pieces[n][c]);
        gemm_transpose(from, words[n]);
    }
#pragma unroll
    for (uint32_t r = 0; r < 4; r++) {
        const uint32_t row = first + r;
        const bsmm_i32x4 piece = {(int32_t)words[0][r], (int32_t)words[1][r], (int32_t)words[2][r],
                                  (int32_t)words[3][r]};
        *(BSMM_IN_LDS bsmm_i32x4 *)(to + row * 128 +
                                    (q.piece ^ gemm_swizzle(BSMM_F8F6F4_E4M3, row)) * 16) = piece;
    }
}

BSMM_DEVICE void gemm_relay_store(gemm_shape s, gemm_relay *relay, gemm_lds *stage) {
    if (s.columns) {
        gemm_relay_transpose(s, relay, stage);
        return;
    }
#pragma unroll
    for (uint32_t n = 0; n < GEMM_RELAYED; n++) {
        bsmm_i32x4 piece;
        for (uint32_t c = 0; c < 4; c++)
            piece[c] = (int32_t)gemm_relay_recode(s, relay->pieces[n][c]);
        *(BSMM_IN_LDS bsmm_i32x4 *)(stage + (n * gemm_threads(s) + bsmm_thread()) * 16) = piece;
    }
}

#endif
