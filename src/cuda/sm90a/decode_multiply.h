/* The second part of a decode kernel: a warp takes its steps of K. A step is 128 along K of 32 rows
 * of 4-bit weights or 16 rows of 8-bit weights: 64 bytes for each thread, which copies them from
 * where they lie to its own places of a ring in shared memory, DECODE_AHEAD steps before it needs
 * them. No thread waits for another. */
#ifndef BSMM_CUDA_DECODE_MULTIPLY_H
#define BSMM_CUDA_DECODE_MULTIPLY_H

#include "cuda/ptx/bulk.h"
#include "cuda/ptx/halves.h"
#include "cuda/ptx/mma.h"
#include "cuda/sm90a/decode_stage.h"

/* ---- A ---- */

/* A's phase `turn`: up to phase_steps steps of each of the block's ranges. Two phases have room
 * where there is more than one: the next is copied while this one is used. In steps. */
static __device__ __forceinline__ uint32_t decode_phase_place(const bsmm_decode_params *p,
                                                              const decode_block *block,
                                                              uint32_t turn) {
    return turn % 2 * block->ranges * p->phase_steps;
}

/* Copies a phase, with the first also the fp32 scales of all, if there are such. By one thread. */
static __device__ __forceinline__ void decode_fetch_a(const bsmm_decode_params *p,
                                                      const decode_block *block, uint32_t turn,
                                                      uint32_t barriers) {
    uint32_t shared = decode_address(decode_shared), barrier = barriers + turn % 2 * 8;
    uint32_t step_bytes = p->columns * 256, place = decode_phase_place(p, block, turn), all = 0;
    for (uint32_t i = 0; i < block->ranges; i++) {
        uint32_t begin = decode_begin(p, block->first_range + i) + turn * p->phase_steps;
        uint32_t end = min(begin + p->phase_steps, decode_begin(p, block->first_range + i + 1));
        if (begin >= end) continue;
        ptx_bulk_copy(shared + (place + i * p->phase_steps) * step_bytes,
                      p->a_image + (uint64_t)begin * step_bytes, (end - begin) * step_bytes,
                      barrier);
        all += (end - begin) * step_bytes;
    }
    if (turn == 0 && p->a_image_scales) {
        uint32_t bytes = (block->end - block->begin) * p->scale_columns * 4;
        ptx_bulk_copy(shared + p->a_scales_at, p->a_image_scales + block->begin * p->scale_columns,
                      bytes, barrier);
        all += bytes;
    }
    ptx_bulk_expect(barrier, all);
}

/* ---- weights ---- */

/* One step's weights of a thread: [half][row, row + 8]. 4 bits: halves are 16 rows apart, 16 bytes
 * hold 32 elements. 8 bits: halves are 64 apart along K, 16 bytes hold 16. */
typedef struct decode_words {
    uint4 w[2][2];
} decode_words;

/* Where a thread reads. */
typedef struct decode_lane {
    const uint8_t *weights[4]; /* what it copies next: of 4 rows, or of 2 */
    int32_t left;              /* bytes of a row from there on */
    uint32_t ring;             /* shared address of its place in the first slot */
} decode_lane;

/* Copies one step, zeros behind the row's end, and goes on to the next. */
static __device__ __forceinline__ void decode_fetch(const int format, decode_lane *lane,
                                                    uint32_t slot) {
    uint32_t to = lane->ring + slot * BSMM_DECODE_SLOT_BYTES;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = format <= DECODE_NVFP4 ? i : i % 2;
        const int along = format <= DECODE_NVFP4 ? 0 : i / 2 * 64;
        ptx_copy16_once(to + i * (BSMM_DECODE_THREADS * 16), lane->weights[row] + along,
                        lane->left > along ? 16 : 0);
    }
}

static __device__ __forceinline__ void decode_go_on(const int format, decode_lane *lane) {
    const int rows = format <= DECODE_NVFP4 ? 4 : 2,
              bytes = 128; /* two steps of 4 bits, one of 8 */
#pragma unroll
    for (int i = 0; i < rows; i++)
        lane->weights[i] += bytes;
    lane->left -= bytes;
}

/* The steps after the first, as many as the ring holds. */
static __device__ __forceinline__ void decode_fetch_ahead(const int format, decode_lane *lane,
                                                          uint32_t step, uint32_t end) {
    const uint32_t walkers = format <= DECODE_NVFP4 ? 2 : 1;
#pragma unroll
    for (uint32_t i = 1; i < BSMM_DECODE_AHEAD; i++) {
        if (step + i * walkers < end) decode_fetch(format, lane, i);
        decode_go_on(format, lane);
        ptx_copy_commit();
    }
}

static __device__ __forceinline__ void decode_take(const decode_lane *lane, uint32_t slot,
                                                   decode_words *to) {
    const uint8_t *from =
        (const uint8_t *)__cvta_shared_to_generic(lane->ring + slot * BSMM_DECODE_SLOT_BYTES);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to->w[i / 2][i % 2] = *(const uint4 *)(from + i * (BSMM_DECODE_THREADS * 16));
}

static __device__ __forceinline__ uint32_t decode_word(const uint4 *w, const int i) {
    return i == 0 ? w->x : i == 1 ? w->y : i == 2 ? w->z : w->w;
}

static __device__ __forceinline__ uint32_t decode_shared_u8(uint32_t address) {
    return *(const uint8_t *)__cvta_shared_to_generic(address);
}

static __device__ __forceinline__ uint32_t decode_shared_u16(uint32_t address) {
    return *(const uint16_t *)__cvta_shared_to_generic(address);
}

/* Two e4m3 scales, each twice and times 2^118; exact. */
static __device__ __forceinline__ void decode_nv_factors(uint32_t codes, uint32_t factors[2]) {
    uint32_t halves = ptx_f16x2_of_e4m3x2(codes);
    float low = ptx_f32_of_f16(halves & 0xffff), high = ptx_f32_of_f16(halves >> 16);
    factors[0] = ptx_bf16x2_of_f32(low * 0x1p118f, low * 0x1p118f);
    factors[1] = ptx_bf16x2_of_f32(high * 0x1p118f, high * 0x1p118f);
}

/* The factors of a thread's weights in one step, [half][row][first or second 16 of a load]. */
typedef struct decode_factors {
    uint32_t f[2][2][2];
} decode_factors;

/* at: shared address of the thread's first row's scales of the step; stride: from row to row. */
static __device__ __forceinline__ void decode_find_factors(const int format, uint32_t at,
                                                           uint32_t stride, decode_factors *to) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int row = 0; row < 2; row++) {
            uint32_t *f = to->f[half][row];
            uint32_t here = at + (row * 8 + (format <= DECODE_NVFP4 ? half * 16 : 0)) * stride;
            if (format == DECODE_MXFP4)
                f[0] = f[1] = bsmm_e8m0_factor(decode_shared_u8(here));
            else if (format == DECODE_NVFP4)
                decode_nv_factors(decode_shared_u16(here), f);
            else if (format == DECODE_MXFP8)
                f[0] = f[1] = bsmm_e8m0_factor(decode_shared_u8(here + half * 2));
            else
                f[0] = f[1] = 0x7b807b80u; /* 2^120 */
        }
}

/* A chunk of 8 along K: pairs of bf16, scaled, of one row. */
static __device__ __forceinline__ void decode_chunk(const int format, const uint4 *w,
                                                    const int chunk, const uint32_t factor[2],
                                                    uint32_t pairs[4], uint32_t *nans) {
    if (format <= DECODE_NVFP4) {
        bsmm_e2m1_pairs(decode_word(w, chunk), pairs);
    } else {
        uint32_t first = decode_word(w, 2 * (chunk % 2)),
                 second = decode_word(w, 2 * (chunk % 2) + 1);
        bsmm_e4m3_pairs(first, pairs);
        bsmm_e4m3_pairs(second, pairs + 2);
        *nans |= bsmm_e4m3_nans(first) | bsmm_e4m3_nans(second);
    }
    uint32_t f = factor[format == DECODE_NVFP4 ? chunk / 2 : 0];
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = ptx_mul_bf16x2(pairs[i], f);
}

/* sums[tile of 16 rows][tile of 8 columns][4] += one step, of row tiles [first, end). a: the step's
 * first chunk in shared memory; columns[]: where each column's 16 bytes begin in a chunk. */
static __device__ __forceinline__ void
decode_step(const int format, const int tiles, const int first, const int end,
            const decode_words *words, const decode_factors *factors, uint32_t a,
            uint32_t chunk_bytes, const uint32_t *columns, float (*sums)[4], uint32_t nans[2]) {
#pragma unroll
    for (int chunk = 0; chunk < 4; chunk++) {
        uint4 b[4];
#pragma unroll
        for (int n = 0; n < tiles; n++)
            b[n] = *(const uint4 *)__cvta_shared_to_generic(a + chunk * chunk_bytes + columns[n]);
#pragma unroll
        for (int r = first; r < end; r++) {
            const int half = format <= DECODE_NVFP4 ? r : chunk / 2;
            uint32_t low[4], high[4];
            decode_chunk(format, &words->w[half][0], chunk, factors->f[half][0], low, &nans[0]);
            decode_chunk(format, &words->w[half][1], chunk, factors->f[half][1], high, &nans[1]);
#pragma unroll
            for (int n = 0; n < tiles; n++) {
                float *sum = sums[(r - first) * tiles + n];
                ptx_mma_bf16(sum, low[0], high[0], low[1], high[1], b[n].x, b[n].y);
                ptx_mma_bf16(sum, low[2], high[2], low[3], high[3], b[n].z, b[n].w);
            }
        }
    }
}

/* sums += part * scale of the row * scale of the column, for each of a tile's four. */
static __device__ __forceinline__ void
decode_add_scaled(float sum[4], const float part[4], const float row[2], const float column[2]) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = fmaf(part[i], row[i / 2] * column[i % 2], sum[i]);
}

#endif
