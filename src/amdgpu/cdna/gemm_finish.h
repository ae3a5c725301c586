/* Writes the fp32 sums of a workgroup's tile to D. Each wave does this in one of two ways.
 *
 * The fast way is possible if D is row-major, the epilogue only rounds, and no sum of the wave may
 * be inaccurate. Each lane then rounds its sums and stores neighbouring columns of a row of D
 * together.
 *
 * Otherwise the wave copies 16 rows of its sums at a time to a buffer in LDS, which the code calls
 * a strip. It reads them back with neighbouring lanes on neighbouring columns, so that its stores
 * to D are contiguous. It computes sums that may be inaccurate again in double. The epilogue then
 * converts each sum to D's format and stores it. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_FINISH_H
#define BSMM_AMDGPU_CDNA_GEMM_FINISH_H

#include "amdgpu/cdna/gemm_load.h"

typedef bsmm_f32x4 gemm_sums[GEMM_MOST_ROW_TILES][GEMM_MOST_COL_TILES];

/* Returns four zeros. The assembly clears two registers by one instruction, but the compiler would
 * need an instruction for each register. The assembly is volatile, because the compiler would
 * otherwise clear one pair of registers and copy it to the second pair. */
BSMM_DEVICE bsmm_f32x4 gemm_zeros(void) {
    typedef float pair __attribute__((vector_size(8)));
    pair low, high;
    __asm__ volatile("v_mov_b64 %0, 0" : "=v"(low));
    __asm__ volatile("v_mov_b64 %0, 0" : "=v"(high));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3);
}

/* Sets all sums of a wave to 0. */
BSMM_DEVICE void gemm_clear_sums(gemm_shape s, gemm_sums sums) {
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++)
            sums[i][j] = gemm_zeros();
}

/* GEMM_LEAST_SUM and GEMM_MOST_SUM are the smallest and the largest magnitude of an accurate sum. A
 * smaller sum (other than 0) may have lost terms to underflow. A larger sum may have overflowed. */
#define GEMM_LEAST_SUM 0x1p-118f
#define GEMM_MOST_SUM  0x1p127f

/* Tells which fp32 sums of a wave the kernel keeps; it computes the other sums again in double. No
 * kind keeps sums of a magnitude above GEMM_MOST_SUM. GEMM_TRUST_ALL: all other sums are kept.
 * GEMM_TRUST_ZERO: sums of magnitude GEMM_LEAST_SUM or more are kept, and so are sums of 0.
 * GEMM_TRUST_LARGE: only sums of magnitude GEMM_LEAST_SUM or more are kept. */
typedef enum gemm_trust { GEMM_TRUST_ALL, GEMM_TRUST_ZERO, GEMM_TRUST_LARGE } gemm_trust;

/* In the epilogue, a wave copies some rows of sums to a buffer in LDS, its strip. Returns the
 * number of rows of a strip: 16, or 8 if workgroups compute several tiles. In the second case LDS
 * has less room for strips, because it already receives operands of the next tile. */
BSMM_DEVICE uint32_t gemm_strip_rows(gemm_shape s) {
    return gemm_scouts(s) ? BSMM_CDNA_EDGE / 2 : BSMM_CDNA_EDGE;
}

/* A strip is a wave's buffer in LDS for some rows of its sums. Returns the stride of its rows in
 * floats. In strips of 16 rows, four floats of padding follow each row, so that neighbouring rows
 * begin in different LDS banks. */
BSMM_DEVICE uint32_t gemm_strip_pitch(gemm_shape s) {
    return s.col_tiles * BSMM_CDNA_EDGE + (gemm_scouts(s) ? 0 : 4);
}

/* Returns the number of bytes of a strip, i.e. of a wave's LDS buffer for rows of sums. */
BSMM_DEVICE uint32_t gemm_strip_bytes(gemm_shape s) {
    return gemm_strip_rows(s) * gemm_strip_pitch(s) * (uint32_t)sizeof(float);
}

/* Returns true if an fp32 sum may be inaccurate and must be computed again. A sum of 0 is accurate
 * unless `may_vanish`, i.e. unless the scales are so small that products may underflow to 0. */
BSMM_DEVICE bool gemm_doubts(float sum, bool may_vanish) {
    if (sum == 0) return may_vanish;
    const float size = __builtin_fabsf(sum);
    return !(size >= GEMM_LEAST_SUM && size <= GEMM_MOST_SUM);
}

BSMM_DEVICE void gemm_epilogue_store_strip(gemm_shape s, const BSMM_IN_LDS float *strip,
                                           uint32_t row, uint32_t col, bool may_vanish) {
    const bsmm_cdna_gemm *p = gemm_params_here();
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    const uint32_t cols = s.col_tiles * BSMM_CDNA_EDGE;
#pragma clang loop unroll(disable)
    for (uint32_t i = gemm_thread_of_tile() % GEMM_WAVE; i < gemm_strip_rows(s) * cols;
         i += GEMM_WAVE) {
        const uint32_t r = row + i / cols, c = col + i % cols;
        const bool wanted = r < p->sides[0].rows && c < p->sides[1].rows;
        const float stored = strip[i / cols * gemm_strip_pitch(s) + i % cols];
        double sum = (double)stored;
        uint64_t left = __builtin_amdgcn_ballot_w64(wanted && gemm_doubts(stored, may_vanish));
#pragma clang loop unroll(disable)
        for (; left; left &= left - 1) {
            const int lane = __builtin_ctzll(left);
            const bsmm_cdna_gemm *q = gemm_params_here();
            const double again = bsmm_gpu_epilogue_sum_again(
                &q->sides[0].o, &q->sides[1].o, (uint32_t)__builtin_amdgcn_readlane((int)r, lane),
                (uint32_t)__builtin_amdgcn_readlane((int)c, lane), q->k);
            if ((int)(gemm_thread_of_tile() % GEMM_WAVE) == lane) sum = again;
        }
        if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, r, c, sum);
    }
}

/* Stores all sums of a wave by the general epilogue. The matrix instruction leaves in each lane
 * four neighbouring columns of row lane % 16 of a 16 x 16 tile. The wave copies 8 or 16 rows of
 * sums at a time to `strip`, its buffer in LDS, and stores these rows from there. Loads or
 * prefetches of the next tile may still write to this buffer, so the wave first waits for them.
 * Iteration `t` copies group number t of rows. Registers cannot be indexed at run time, so it
 * compares t with every constant i. `row` and `col` are the first row and column of the wave's tile
 * in D. */
BSMM_DEVICE void gemm_epilogue_store_slowly(gemm_shape s, const gemm_sums sums,
                                            BSMM_IN_LDS float *strip, uint32_t row, uint32_t col,
                                            bool may_vanish) {
    const uint32_t pitch = gemm_strip_pitch(s), lane = gemm_thread_of_tile() % GEMM_WAVE;
    const uint32_t rows = gemm_strip_rows(s), strips = BSMM_CDNA_EDGE / rows;
    BSMM_IN_LDS float *mine = strip + lane % rows * pitch + lane / BSMM_CDNA_EDGE * 4 * s.col_tiles;
    if (gemm_scouts(s)) bsmm_isa_wait_loads(0);
#pragma clang loop unroll(disable)
    for (uint32_t t = 0; t < s.row_tiles * strips; t++) {
#pragma unroll
        for (uint32_t i = 0; i < s.row_tiles; i++) {
            if (t / strips != i || lane % BSMM_CDNA_EDGE / rows != t % strips) continue;
#pragma unroll
            for (uint32_t j = 0; j < s.col_tiles; j++)
                *(BSMM_IN_LDS bsmm_f32x4 *)(mine + j * 4) = sums[i][j];
        }
        __builtin_amdgcn_wave_barrier();
        gemm_epilogue_store_strip(s, strip, row + t * rows, col, may_vanish);
        __builtin_amdgcn_wave_barrier();
    }
    bsmm_isa_wait_loads(0);
}

#if defined(__gfx950__)
/* Returns true if the magnitude of all sums of a lane is at most GEMM_MOST_SUM. NaN counts as too
 * large, because the maximum of NaN and any number is NaN. */
BSMM_DEVICE bool gemm_trusts_large(gemm_shape s, const gemm_sums sums) {
    float most = 0;
#    pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
#    pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++)
#    pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                most = __builtin_elementwise_maximum(most, __builtin_fabsf(sums[i][j][e]));
    return most <= GEMM_MOST_SUM;
}
#else
/* Returns true if the magnitude of all sums of a lane is at most GEMM_MOST_SUM. NaN counts as too
 * large. The function compares the bits of the sums as integers. The largest signed integer is the
 * largest positive sum. The largest unsigned integer is the negative sum of the largest
 * magnitude. */
BSMM_DEVICE bool gemm_trusts_large(gemm_shape s, const gemm_sums sums) {
    const uint32_t sign = 0x80000000u, limit = bsmm_float_bits(GEMM_MOST_SUM);
    int32_t positive = 0;
    uint32_t negative = sign;
#    pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
#    pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++)
#    pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                const uint32_t bits = bsmm_float_bits(sums[i][j][e]);
                positive = (int32_t)bits > positive ? (int32_t)bits : positive;
                negative = bits > negative ? bits : negative;
            }
    return (uint32_t)positive <= limit && negative - sign <= limit;
}
#endif

/* Returns true if each sum of a lane is 0 or has a magnitude of at least GEMM_LEAST_SUM. The
 * function shifts the bits of each sum left by one, which removes the sign, and subtracts 1. The
 * resulting integers have the order of the magnitudes, with one exception: a sum of 0 becomes the
 * largest integer, so it does not count as small. */
BSMM_DEVICE bool gemm_trusts_small(gemm_shape s, const gemm_sums sums) {
    uint32_t least = UINT32_MAX;
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j++)
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                const uint32_t bits = (bsmm_float_bits(sums[i][j][e]) << 1) - 1;
                least = bits < least ? bits : least;
            }
    return least >= (bsmm_float_bits(GEMM_LEAST_SUM) << 1) - 1;
}

/* Rounds two neighbouring sums to f16 and returns both in a 32-bit word. */
BSMM_DEVICE uint32_t gemm_round_f16(float x, float y) {
    typedef _Float16 pair __attribute__((vector_size(4)));
    const pair both = {(_Float16)x, (_Float16)y};
    return (uint32_t)both;
}

/* Rounds two neighbouring sums to bf16 and returns both in a 32-bit word. gfx950 has an instruction
 * for this. */
BSMM_DEVICE uint32_t gemm_round_bf16(float x, float y) {
#if defined(__gfx950__)
    typedef __bf16 pair __attribute__((vector_size(4)));
    const pair both = {(__bf16)x, (__bf16)y};
    return (uint32_t)both;
#else
    return bsmm_gpu_epilogue_bf16(x) | bsmm_gpu_epilogue_bf16(y) << 16;
#endif
}

/* Rounds eight neighbouring sums to `elem`, which is f16 or bf16. */
BSMM_DEVICE bsmm_i32x4 gemm_round_eight(bsmm_f32x4 x, bsmm_f32x4 y, uint32_t elem) {
    bsmm_i32x4 codes;
#pragma unroll
    for (uint32_t h = 0; h < 4; h++) {
        const float a = h < 2 ? x[2 * h] : y[2 * h - 4];
        const float b = h < 2 ? x[2 * h + 1] : y[2 * h - 3];
        codes[h] = (int32_t)(elem == BSMM_ELEM_F16 ? gemm_round_f16(a, b) : gemm_round_bf16(a, b));
    }
    return codes;
}

/* Stores the sums of one row of D that a lane holds. The sums lie in 4 * col_tiles neighbouring
 * columns. */
BSMM_DEVICE void gemm_store_row(gemm_shape s, const bsmm_f32x4 sums[GEMM_MOST_COL_TILES],
                                uint32_t elem, BSMM_GLOBAL bsmm_i32x4 *to) {
#pragma unroll
    for (uint32_t j = 0; j < s.col_tiles; j += 2) {
        if (elem == BSMM_ELEM_F32)
            to[j] = (bsmm_i32x4)sums[j], to[j + 1] = (bsmm_i32x4)sums[j + 1];
        else
            to[j / 2] = gemm_round_eight(sums[j], sums[j + 1], elem);
    }
}

/* Holds the address of the first element of D that a lane stores, the distance in bytes to the
 * element 16 rows below, and D's element type. */
typedef struct gemm_target {
    uint64_t to, step;
    uint32_t elem;
} gemm_target;

/* Returns where a lane stores its results (gemm_target). `row` and `col` are the first row and
 * column of the wave's tile. The empty assembly moves the fields of the result to vector registers,
 * because scalar registers are scarce in the code that stores sums. */
BSMM_DEVICE gemm_target gemm_target_of(const bsmm_gpu_epilogue *e, gemm_shape s, uint32_t row,
                                       uint32_t col) {
    const uint32_t bytes = e->d_elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint32_t lane = gemm_thread_of_tile() % GEMM_WAVE;
    const uint64_t first = (uint64_t)(row + lane % BSMM_CDNA_EDGE) * e->d_row + col +
                           lane / BSMM_CDNA_EDGE * 4 * s.col_tiles;
    gemm_target target = {(uint64_t)e->d + first * bytes, BSMM_CDNA_EDGE * e->d_row * bytes,
                          e->d_elem};
    __asm__ volatile("" : "+v"(target.to), "+v"(target.step), "+v"(target.elem));
    return target;
}

/* Says where to store the results of a tile that the wave stores in the first step of its next tile
 * (gemm_begin_row). The results of a row of 16 x 16 tiles lie in the registers of the row's first
 * sums. `any` is 1 if there are such results, else 0. */
typedef struct gemm_late {
    gemm_target target;
    uint32_t any;
} gemm_late;

/* Rounds all sums of a wave to `elem`, which is f16 or bf16, and keeps the results in the registers
 * of the first sums of each row. Then it waits until the wave's loads for the first step of its
 * next tile have finished. The loads for the second step and the prefetches, which the wave has
 * issued after them, may be unfinished. */
BSMM_DEVICE void gemm_keep_rows(gemm_shape s, gemm_sums sums, uint32_t elem) {
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.col_tiles; j += 2)
            sums[i][j / 2] = (bsmm_f32x4)gemm_round_eight(sums[i][j], sums[i][j + 1], elem);
    bsmm_isa_wait_loads(gemm_stage_loads(s) + gemm_scouted_first(s));
}

/* Rounds all sums of a wave to D's element type and stores them. `elem` is a constant in each call,
 * so that the compiler makes one loop without branches for each element type. */
BSMM_DEVICE void gemm_store_rows(gemm_target target, gemm_shape s, const gemm_sums sums,
                                 uint32_t elem) {
    const uint32_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
#pragma unroll
    for (uint32_t i = 0; i < s.row_tiles; i++) {
        gemm_store_row(s, sums[i], elem, (BSMM_GLOBAL bsmm_i32x4 *)target.to);
        target.to += target.step;
    }
    /* Waits until the wave's loads of its next tile have finished. The stores and the prefetches,
     * which the wave has issued after these loads, may be unfinished. */
    bsmm_isa_wait_loads(s.row_tiles * s.col_tiles * bytes / 4 + gemm_scouted_first(s));
}

/* Returns true if the global (second-level) scales of A, B and D are all 1. The epilogue then need
 * not multiply by them. Packed weights always have a global scale, which is usually 1. */
BSMM_DEVICE bool gemm_globals_are_1(const bsmm_gpu_epilogue *e) {
    bool all = true;
    if ((e->globals[0] != NULL) | (e->globals[1] != NULL) | (e->globals[2] != NULL))
        for (int i = 0; i < 3; i++)
            if (e->globals[i]) all = all && *e->globals[i] == 1;
    return all;
}

/* Loads the parameters that gemm_epilogue_store needs. Because of the empty assembly, the wave
 * issues all of these loads before it waits for one of them. */
BSMM_DEVICE void gemm_epilogue_fetch(const bsmm_cdna_gemm *p) {
    const bsmm_gpu_epilogue *e = &p->epilogue;
    __asm__ volatile(""
                     :
                     : "s"(p->sides[0].rows), "s"(p->sides[1].rows), "s"(p->only_rounds),
                       "s"(p->parts), "s"(e->d), "s"(e->d_row), "s"(e->d_elem), "s"(e->globals[0]),
                       "s"(e->globals[1]), "s"(e->globals[2]));
}

/* Stores the sums of a wave's tile. `row` and `col` are the tile's first row and column in D. The
 * conditions are joined by & instead of &&, so that there is no branch between them. The wave then
 * waits only once for all kernel parameters that the conditions read. If `keeps` is true and no sum
 * must be computed again, results of 16 bits are not stored yet. They replace the sums, and *late
 * tells where to store them. */
BSMM_DEVICE void gemm_epilogue_store(const bsmm_cdna_gemm *p, gemm_shape s, gemm_sums sums,
                                     BSMM_IN_LDS float *strip, uint32_t row, uint32_t col,
                                     gemm_trust trust, bool keeps, gemm_late *late) {
    const gemm_target target = gemm_target_of(&p->epilogue, s, row, col);
    const bool plain = (row + s.row_tiles * BSMM_CDNA_EDGE <= p->sides[0].rows) &
                       (col + s.col_tiles * BSMM_CDNA_EDGE <= p->sides[1].rows) &
                       (p->only_rounds != 0) & (trust != GEMM_TRUST_LARGE);
    bool trusted = plain && gemm_globals_are_1(&p->epilogue) && gemm_trusts_large(s, sums);
    if (trusted && trust == GEMM_TRUST_ZERO) trusted = gemm_trusts_small(s, sums);
    if (__builtin_amdgcn_ballot_w64(!trusted)) {
        gemm_epilogue_store_slowly(s, sums, strip, row, col, trust == GEMM_TRUST_LARGE);
        return;
    }
    const int32_t elem = __builtin_amdgcn_readfirstlane((int32_t)target.elem);
    if (keeps && elem != BSMM_ELEM_F32) {
        *late = (gemm_late){target, 1};
        if (elem == BSMM_ELEM_F16)
            gemm_keep_rows(s, sums, BSMM_ELEM_F16);
        else
            gemm_keep_rows(s, sums, BSMM_ELEM_BF16);
        return;
    }
    if (elem == BSMM_ELEM_F32)
        gemm_store_rows(target, s, sums, BSMM_ELEM_F32);
    else if (elem == BSMM_ELEM_F16)
        gemm_store_rows(target, s, sums, BSMM_ELEM_F16);
    else
        gemm_store_rows(target, s, sums, BSMM_ELEM_BF16);
}

#endif
