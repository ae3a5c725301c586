/* These kernels multiply few rows of A (1 to 64), which are bf16, by weights as they are stored.
 * The kernels are memory-bound: the time to read B limits their speed, and each byte of B is read
 * once.
 *
 * A workgroup computes the results of 16 or 32 rows of B and all rows of A. Its waves divide K
 * among them in whole steps of 128 elements. In each step a wave writes its part of A to LDS, reads
 * it back in the order of the matrix instructions, decodes weights to bf16 in registers, and
 * multiplies. The matrix instructions compute rows of B times rows of A, so that a lane has results
 * of neighbouring columns of D. No wave waits for another wave before the end. One barrier follows
 * there, and then the sums of all waves are added in the order of the waves.
 *
 * A wave prefetches A two steps ahead (one step for more than 32 rows of A) and B three steps
 * ahead. Loads finish in the order of issue. If A were prefetched fewer steps ahead, a wait for A
 * would also wait for loads of B that only a later step needs. */
#include "amdgpu/cdna/small_m_decode.h"
#include "amdgpu/cdna/small_m_finish.h"

/* The size of this array is set when the kernel is launched. */
extern BSMM_IN_LDS uint8_t launched[];

/* Holds the places in LDS at which a lane writes and reads A. LDS holds a step of A as
 * [row][piece], and a piece is eight elements along K. Piece 8 * x + 4 * y + z of row r (x, y < 2,
 * z < 4) lies in place (8 * x + 2 * z + y) XOR r % 16, so that neither writes nor reads have bank
 * conflicts. */
typedef struct small_m_places {
    BSMM_IN_LDS uint8_t *to, *from;
    uint32_t write, read;
} small_m_places;

enum {
    PIECE = 16,
    ROW = SMALL_M_K * 2, /* in bytes */
    /* Loads of A run at most AHEAD_A steps ahead, and loads of B run AHEAD_B steps ahead. */
    AHEAD_A = 2,
    AHEAD_B = 3,
};

BSMM_DEVICE small_m_places find_places(BSMM_IN_LDS uint8_t *memory) {
    const uint32_t lane = bsmm_device_lane(), piece = lane % 16, row = lane / 16;
    const uint32_t place = (piece & 8) | (piece & 3) << 1 | (piece >> 2 & 1);
    const uint32_t group = lane / 16, first = (group & 2) << 2 | (group & 1);
    return (small_m_places){.to = memory + row * ROW,
                            .from = memory + piece * ROW,
                            .write = (place ^ row) * PIECE,
                            .read = (first ^ piece) * PIECE};
}

BSMM_DEVICE void write_rows(small_m_shape s, const small_m_places *at, const small_m_rows *rows) {
#pragma unroll
    for (uint32_t i = 0; i < s.a_tiles * SMALL_M_LOADS; i++)
        *(BSMM_IN_LDS bsmm_u32x4 *)(at->to + i * 4 * ROW + (at->write ^ i % 4 * 4 * PIECE)) =
            rows->pieces[i];
}

/* Reads eight elements of row lane % 16 of a tile of A. They are the elements of a step from 32 *
 * (lane / 16) + 8 * quarter on. */
BSMM_DEVICE bsmm_u32x4 read_row(const small_m_places *at, uint32_t tile, uint32_t quarter) {
    return *(const BSMM_IN_LDS bsmm_u32x4 *)(at->from + tile * SMALL_M_EDGE * ROW +
                                             (at->read ^ quarter * 2 * PIECE));
}

/* Returns the code of the scale of a lane's weights. Beyond the end of the wave's part of K, the
 * function returns the code of the scale 1. */
BSMM_DEVICE uint32_t scale_of(const small_m_source *from, uint32_t step, uint32_t code) {
    if (!small_m_is_last(from, step)) return code;
    return step * SMALL_M_K + bsmm_device_lane() / 16 * 32 >= from->end ? 127 : code;
}

BSMM_DEVICE void multiply(small_m_shape s, const small_m_source *from, uint32_t step,
                          const small_m_places *at, const small_m_weights *b, small_m_sums sums,
                          uint32_t *most) {
    small_m_factor factors[SMALL_M_MOST_TILES];
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++) {
        const uint32_t code = scale_of(from, step, b->scales[i]);
        factors[i] = small_m_factor_of(code);
        most[i] = bsmm_e8m0_most(most[i], code);
    }
#pragma unroll
    for (uint32_t q = 0; q < 4; q++) {
        bsmm_u32x4 rows[SMALL_M_MOST_TILES];
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            rows[j] = read_row(at, j, q);
#pragma unroll
        for (uint32_t i = 0; i < s.b_tiles; i++) {
            const bsmm_u32x4 weights = small_m_decode_e2m1(&factors[i], b->words[i][q]);
#pragma unroll
            for (uint32_t j = 0; j < s.a_tiles; j++)
                sums[i][j] = bsmm_isa_mfma_bf16_16(weights, rows[j], sums[i][j]);
        }
    }
}

/* If a row of B has a scale outside the range of the kernel, the function sets the row's sums to
 * NaN. Each of four lanes has some of the scales of a row. */
BSMM_DEVICE void spoil(small_m_shape s, const uint32_t *most, small_m_sums sums) {
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++) {
        uint64_t rows = __builtin_amdgcn_ballot_w64(bsmm_e8m0_beyond(most[i]));
        if (!rows) continue;
        rows |= rows >> 32;
        const uint32_t mine = (uint32_t)(rows | rows >> 16) >> bsmm_device_lane() / 16 * 4;
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                if (mine >> e & 1) sums[i][j][e] = bsmm_bits_float(0x7fc00000u);
    }
}

/* Returns the number of steps by which loads of A run ahead. A larger number would take too many
 * registers. */
BSMM_DEVICE uint32_t ahead_a(small_m_shape s) {
    return s.a_tiles > 2 ? 1 : AHEAD_A;
}

/* Starts the loads of later steps and computes a step, if it belongs to the wave. On entry, `a` has
 * the step's part of A, and on return that of the step ahead_a(s) later. `b` has the weights of the
 * step. `later` gets the weights of the step AHEAD_B later. */
BSMM_DEVICE void run_step(small_m_shape s, small_m_source *from, uint32_t step, uint32_t end,
                          const small_m_places *at, small_m_rows *a, const small_m_weights *b,
                          small_m_weights *later, small_m_sums sums, uint32_t *most) {
    write_rows(s, at, a);
    small_m_load_a(s, from, step + ahead_a(s), a);
    small_m_load_b(s, from, step + AHEAD_B, later);
    __builtin_amdgcn_sched_barrier(0);
    if (step < end) multiply(s, from, step, at, b, sums, most);
    __builtin_amdgcn_sched_barrier(0);
}

BSMM_DEVICE void run(small_m_shape s, const bsmm_cdna_small_m *p) {
    const uint32_t wave = (uint32_t)__builtin_amdgcn_readfirstlane((int)bsmm_thread()) / BSMM_LANES;
    const uint32_t first_row = bsmm_group_x() * s.b_tiles * SMALL_M_EDGE;
    const uint32_t begin = wave * p->steps_each + small_m_least(wave, p->longer);
    const uint32_t end = begin + p->steps_each + (wave < p->longer);
    small_m_source from = small_m_source_of(s, p, first_row, small_m_least(end * SMALL_M_K, p->k));
    const uint32_t bytes = s.a_tiles * BSMM_CDNA_SMALL_M_WAVE_BYTES;
    BSMM_IN_LDS uint8_t *mine = launched + wave * bytes;
    const small_m_places at = find_places(mine);
    small_m_sums sums;
    small_m_rows a[AHEAD_A];
    small_m_weights b[AHEAD_B + 1];
    uint32_t most[SMALL_M_MOST_TILES] = {0};
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            sums[i][j] = (bsmm_f32x4){0, 0, 0, 0};
#pragma unroll
    for (uint32_t i = 0; i < AHEAD_B; i++) {
        if (i < ahead_a(s)) small_m_load_a(s, &from, begin + i, &a[i]);
        small_m_load_b(s, &from, begin + i, &b[i]);
        __builtin_amdgcn_sched_barrier(0);
    }
#pragma clang loop unroll(disable)
    for (uint32_t step = begin; step < end; step += AHEAD_B + 1)
#pragma unroll
        for (uint32_t i = 0; i <= AHEAD_B; i++)
            run_step(s, &from, step + i, end, &at, &a[i % ahead_a(s)], &b[i],
                     &b[(i + AHEAD_B) % (AHEAD_B + 1)], sums, most);
    spoil(s, most, sums);
    small_m_write_sums(s, sums, (BSMM_IN_LDS float *)mine);
    bsmm_isa_barrier();
    small_m_finish(s, p, first_row, (BSMM_IN_LDS float *)launched, bytes / 4);
}

/* Declares a kernel whose workgroups have up to eight waves. The compiler limits the registers so
 * that two waves fit on a SIMD at once. */
#define KERNEL                                                                                     \
    __attribute__((amdgpu_kernel, amdgpu_waves_per_eu(2),                                          \
                   amdgpu_flat_work_group_size(64, 64 * BSMM_CDNA_SMALL_M_MOST_WAVES))) void

/* The name of a kernel ends in the number of rows of B, and the largest number of rows of A, of a
 * workgroup. */
KERNEL small_m_mxfp4_16x16(bsmm_cdna_small_m p) {
    run((small_m_shape){1, 1}, &p);
}

KERNEL small_m_mxfp4_16x32(bsmm_cdna_small_m p) {
    run((small_m_shape){1, 2}, &p);
}

KERNEL small_m_mxfp4_16x64(bsmm_cdna_small_m p) {
    run((small_m_shape){1, 4}, &p);
}

KERNEL small_m_mxfp4_32x16(bsmm_cdna_small_m p) {
    run((small_m_shape){2, 1}, &p);
}

KERNEL small_m_mxfp4_32x32(bsmm_cdna_small_m p) {
    run((small_m_shape){2, 2}, &p);
}

KERNEL small_m_mxfp4_32x64(bsmm_cdna_small_m p) {
    run((small_m_shape){2, 4}, &p);
}
