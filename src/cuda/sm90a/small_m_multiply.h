/* The second part of a small-M kernel: a warp takes its steps of K. A step is 128 along K of 32
 * rows of 4-bit weights or 16 rows of 8-bit weights: 64 bytes for each thread, which copies them
 * from where they lie to its own places of a ring in shared memory, SMALL_M_AHEAD steps before it
 * needs them. No thread waits for another. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_MULTIPLY_H
#define BSMM_CUDA_SM90A_SMALL_M_MULTIPLY_H

#include "cuda/ptx/bulk.h"
#include "cuda/ptx/halves.h"
#include "cuda/ptx/mma.h"
#include "cuda/sm90a/small_m_stage.h"

/* ---- A ---- */

/* Warps of the same steps share A's: where there is no room for all, a ring of slots, each with a
 * barrier that it is full and one that all of these warps are done with it. Barrier 0 is for what
 * comes in one piece; with no ring, barrier 1 for the second of two. */
typedef struct small_m_ring {
    uint32_t slots, slot, parity;     /* the next span's */
    uint32_t full, done;              /* barriers of the first slot */
    uint32_t first, step_bytes, span; /* where it begins; a step's size; steps of a slot */
    uint32_t stride;                  /* steps from span to span */
    uint32_t lag;                     /* spans after which a slot that was left is filled */
} small_m_ring;

static __device__ __forceinline__ small_m_ring small_m_find_ring(const bsmm_small_m_params *p,
                                                                 uint32_t k_warp, uint32_t span,
                                                                 uint32_t stride, uint32_t lag) {
    small_m_ring ring;
    ring.slots = p->a_slots;
    ring.slot = ring.parity = 0;
    ring.span = span;
    ring.stride = stride;
    ring.lag = lag;
    ring.full =
        small_m_address(small_m_shared + p->barriers_at) + 8 + k_warp / span * p->a_slots * 8;
    ring.done = ring.full + (p->a_slots * 8 << p->k_warps_log2);
    ring.step_bytes = p->columns * 256;
    ring.first = small_m_address(small_m_shared) + k_warp * p->a_slots * ring.step_bytes;
    return ring;
}

/* Makes all barriers; row_warps use each slot. */
static __device__ __forceinline__ void small_m_make_barriers(const bsmm_small_m_params *p,
                                                             uint32_t row_warps) {
    uint32_t barriers = small_m_address(small_m_shared + p->barriers_at);
    uint32_t slots = p->a_slots << p->k_warps_log2, last = slots ? 2 * slots : 1;
    for (uint32_t i = threadIdx.x; i <= last; i += BSMM_SMALL_M_THREADS)
        ptx_bulk_init(barriers + i * 8, slots && i > slots ? row_warps : 1);
    if (threadIdx.x <= last) ptx_bulk_fence_init();
}

/* With the span from `step` on, of a range until `end`; by one thread of the warps that share it.
 */
static __device__ __forceinline__ void small_m_fill_slot(const bsmm_small_m_params *p,
                                                         const small_m_ring *ring, uint32_t slot,
                                                         uint32_t step, uint32_t end) {
    uint32_t bytes = min(ring->span, end - step) * ring->step_bytes;
    ptx_bulk_expect(ring->full + slot * 8, bytes);
    ptx_bulk_copy(ring->first + slot * ring->span * ring->step_bytes,
                  p->a_image + (uint64_t)step * ring->step_bytes, bytes, ring->full + slot * 8);
}

static __device__ __forceinline__ void small_m_enter_next(small_m_ring *ring) {
    if (++ring->slot == ring->slots) ring->slot = 0, ring->parity ^= 1;
}

static __device__ __forceinline__ void small_m_enter_last(small_m_ring *ring) {
    if (ring->slot-- == 0) ring->slot = ring->slots - 1, ring->parity ^= 1;
}

/* Done with the span of A at `step`, of [begin, end), in the ring's slot: it or, with lag, the one
 * before, which the other warps have left by now, is filled with the span that comes next there. */
static __device__ __forceinline__ void small_m_leave_slot(const bsmm_small_m_params *p,
                                                          small_m_ring ring, bool fills,
                                                          uint32_t step, uint32_t begin,
                                                          uint32_t end) {
    uint32_t next = step + (ring.slots - ring.lag) * ring.stride;
    if (next >= end) return;
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx_bulk_arrive(ring.done + ring.slot * 8);
    if (!fills || (ring.lag && step == begin)) return;
    if (ring.lag) small_m_enter_last(&ring);
    while (!ptx_bulk_try_wait(ring.done + ring.slot * 8, ring.parity)) {
    }
    small_m_fill_slot(p, &ring, ring.slot, next, end);
}

/* Steps [first, end) of the block's A, where all of it has room; the bytes count towards `barrier`.
 */
static __device__ __forceinline__ void small_m_fetch_steps(const bsmm_small_m_params *p,
                                                           const small_m_block *block,
                                                           uint32_t first, uint32_t end,
                                                           uint32_t barrier) {
    const uint32_t step_bytes = p->columns * 256;
    if (first < end)
        ptx_bulk_copy(small_m_address(small_m_shared) + (first - block->begin) * step_bytes,
                      p->a_image + (uint64_t)first * step_bytes, (end - first) * step_bytes,
                      barrier);
}

/* Where the steps of a range that come first end; head: how many. */
static __device__ __forceinline__ uint32_t small_m_head_end(const bsmm_small_m_params *p,
                                                            uint32_t range, uint32_t head) {
    return min(small_m_begin(p, range) + head, small_m_begin(p, range + 1));
}

/* What does not come by a ring: all of the block's A, or the fp32 scales of all. With a head, the
 * first steps of each range come at the first barrier and the rest of A at the second; else all at
 * the first. By one thread. */
static __device__ __forceinline__ void
small_m_fetch_whole(const bsmm_small_m_params *p, const small_m_block *block, const uint32_t head) {
    const uint32_t barrier = small_m_address(small_m_shared + p->barriers_at);
    const uint32_t scales_at = small_m_address(small_m_shared) + p->a_scales_at;
    const uint32_t all = block->end - block->begin, step_bytes = p->columns * 256;
    const uint32_t scales = p->a_image_scales ? all * p->scale_columns * 4 : 0;
    const uint32_t end = block->first_range + block->ranges;
    uint32_t first = p->a_slots ? 0 : all;
    if (head && first) {
        first = 0;
        for (uint32_t i = block->first_range; i < end; i++)
            first += small_m_head_end(p, i, head) - small_m_begin(p, i);
        ptx_bulk_expect(barrier + 8, (all - first) * step_bytes);
    }
    ptx_bulk_expect(barrier, first * step_bytes + scales);
    if (scales)
        ptx_bulk_copy(scales_at, p->a_image_scales + block->begin * p->scale_columns, scales,
                      barrier);
    if (p->a_slots) return;
    if (!head) small_m_fetch_steps(p, block, block->begin, block->end, barrier);
    for (uint32_t i = block->first_range; head && i < end; i++)
        small_m_fetch_steps(p, block, small_m_begin(p, i), small_m_head_end(p, i, head), barrier);
    for (uint32_t i = block->first_range; head && i < end; i++)
        small_m_fetch_steps(p, block, small_m_head_end(p, i, head), small_m_begin(p, i + 1),
                            barrier + 8);
}

/* ---- weights ---- */

/* One step's weights of a thread, or one span's: [half][row, row + 8]. 16 bytes hold 32 elements of
 * 4 bits: halves are 16 rows apart, or, in a span of two steps, one step. They hold 16 of 8 bits:
 * halves are 64 apart along K. */
typedef struct small_m_words {
    uint4 w[2][2];
} small_m_words;

/* Where a thread reads. */
typedef struct small_m_lane {
    const uint8_t *weights[4]; /* what it copies next: of 4 rows, or of 2 */
    int32_t left;              /* bytes of a row from there on */
    uint32_t ring;             /* shared address of its place in the first slot */
} small_m_lane;

/* Copies 64 bytes, 16 of each of 4 rows or twice 16 of each of 2, zeros behind the row's end. */
static __device__ __forceinline__ void small_m_fetch(const int rows, small_m_lane *lane,
                                                     uint32_t to) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = i % rows, along = i / rows * 64;
        ptx_copy16_once(to + i * (BSMM_SMALL_M_THREADS * 16), lane->weights[row] + along,
                        lane->left > along ? 16 : 0);
    }
}

static __device__ __forceinline__ void small_m_go_on(const int rows, small_m_lane *lane) {
    const int bytes = 128; /* two steps of 4 bits, one of 8 */
#pragma unroll
    for (int i = 0; i < rows; i++)
        lane->weights[i] += bytes;
    lane->left -= bytes;
}

/* The step after the first: the ring holds two. */
static __device__ __forceinline__ void small_m_fetch_ahead(const int rows, small_m_lane *lane,
                                                           uint32_t step, uint32_t walkers,
                                                           uint32_t end) {
    if (step + walkers < end) small_m_fetch(rows, lane, lane->ring + BSMM_SMALL_M_SLOT_BYTES);
    small_m_go_on(rows, lane);
    ptx_copy_commit();
}

static __device__ __forceinline__ void small_m_take(uint32_t slot, small_m_words *to) {
    const uint8_t *from = (const uint8_t *)__cvta_shared_to_generic(slot);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to->w[i / 2][i % 2] = *(const uint4 *)(from + i * (BSMM_SMALL_M_THREADS * 16));
}

static __device__ __forceinline__ uint32_t small_m_word(const uint4 *w, const int i) {
    return i == 0 ? w->x : i == 1 ? w->y : i == 2 ? w->z : w->w;
}

static __device__ __forceinline__ uint32_t small_m_shared_u8(uint32_t address) {
    return *(const uint8_t *)__cvta_shared_to_generic(address);
}

static __device__ __forceinline__ uint32_t small_m_shared_u16(uint32_t address) {
    return *(const uint16_t *)__cvta_shared_to_generic(address);
}

/* Two e4m3 scales, each twice and times 2^118; exact. */
static __device__ __forceinline__ void small_m_nv_factors(uint32_t codes, uint32_t factors[2]) {
    uint32_t halves = ptx_f16x2_of_e4m3x2(codes);
    float low = ptx_f32_of_f16(halves & 0xffff), high = ptx_f32_of_f16(halves >> 16);
    factors[0] = ptx_bf16x2_of_f32(low * 0x1p118f, low * 0x1p118f);
    factors[1] = ptx_bf16x2_of_f32(high * 0x1p118f, high * 0x1p118f);
}

/* The factors of a thread's weights in one step, [half][row][first or second 16 of a load]. */
typedef struct small_m_factors {
    uint32_t f[2][2][2];
} small_m_factors;

/* Of one half: at: shared address of its first row's scales; stride: from row to row.
 * most: bsmm_e8m0_most of all codes so far. */
static __device__ __forceinline__ void small_m_find_half(const int format, uint32_t at,
                                                         uint32_t stride, uint32_t to[2][2],
                                                         uint32_t *most) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        uint32_t *f = to[row], here = at + row * 8 * stride;
        if (format == SMALL_M_MXFP4 || format == SMALL_M_MXFP8) {
            uint32_t code = small_m_shared_u8(here);
            f[0] = f[1] = bsmm_e8m0_factor(code);
            *most = bsmm_e8m0_most(*most, code);
        } else if (format == SMALL_M_NVFP4) {
            small_m_nv_factors(small_m_shared_u16(here), f);
        } else {
            f[0] = f[1] = 0x7b807b80u; /* 2^120 */
        }
    }
}

/* Of both halves of one step; at: of its scales of the thread's first row. */
static __device__ __forceinline__ void small_m_find_factors(const int format, uint32_t at,
                                                            uint32_t stride, small_m_factors *to,
                                                            uint32_t *most) {
    small_m_find_half(format, at, stride, to->f[0], most);
    small_m_find_half(format, at + (format <= SMALL_M_NVFP4 ? 16 * stride : 2), stride, to->f[1],
                      most);
}

/* A chunk of 8 along K: pairs of bf16, scaled, of one row. */
static __device__ __forceinline__ void small_m_chunk(const int format, const uint4 *w,
                                                     const int chunk, const uint32_t factor[2],
                                                     uint32_t pairs[4], uint32_t *nans) {
    if (format <= SMALL_M_NVFP4) {
        bsmm_e2m1_pairs(small_m_word(w, chunk), pairs);
    } else {
        uint32_t first = small_m_word(w, 2 * (chunk % 2)),
                 second = small_m_word(w, 2 * (chunk % 2) + 1);
        bsmm_e4m3_pairs(first, pairs);
        bsmm_e4m3_pairs(second, pairs + 2);
        *nans |= bsmm_e4m3_nans(first) | bsmm_e4m3_nans(second);
    }
    uint32_t f = factor[format == SMALL_M_NVFP4 ? chunk / 2 : 0];
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = ptx_mul_bf16x2(pairs[i], f);
}

/* sums[tile of 16 rows][tile of 8 columns][4] += one step, of row tiles [first, end). a: the step's
 * first chunk in shared memory; columns[]: where each column's 16 bytes begin in a chunk. */
static __device__ __forceinline__ void
small_m_step(const int format, const int tiles, const int first, const int end,
             const small_m_words *words, const small_m_factors *factors, uint32_t a,
             uint32_t chunk_bytes, const uint32_t *columns, float (*sums)[4], uint32_t nans[2]) {
#pragma unroll
    for (int chunk = 0; chunk < 4; chunk++) {
        uint4 b[4];
#pragma unroll
        for (int n = 0; n < tiles; n++)
            b[n] = *(const uint4 *)__cvta_shared_to_generic(a + chunk * chunk_bytes + columns[n]);
#pragma unroll
        for (int r = first; r < end; r++) {
            const int half = format <= SMALL_M_NVFP4 ? r : chunk / 2;
            uint32_t low[4], high[4];
            small_m_chunk(format, &words->w[half][0], chunk, factors->f[half][0], low, &nans[0]);
            small_m_chunk(format, &words->w[half][1], chunk, factors->f[half][1], high, &nans[1]);
#pragma unroll
            for (int n = 0; n < tiles; n++) {
                float *sum = sums[(r - first) * tiles + n];
                ptx_mma_bf16(sum, low[0], high[0], low[1], high[1], b[n].x, b[n].y);
                ptx_mma_bf16(sum, low[2], high[2], low[3], high[3], b[n].z, b[n].w);
            }
        }
    }
}

/* sums[tile of 8 columns][4] += parts * scale of the rows * scale of the column, of step `step` of
 * the block. scale: shared address of B's. */
static __device__ __forceinline__ void small_m_add_step(const int format, const int tiles,
                                                        const bsmm_small_m_params *p, uint32_t step,
                                                        uint32_t t, uint32_t scale,
                                                        const float (*parts)[4], float (*sums)[4]) {
    const float *const columns =
        (const float *)(small_m_shared + p->a_scales_at) + step * p->scale_columns;
    const float row = format == SMALL_M_FP8_F32 ? small_m_shared_f32(scale) : 1;
#pragma unroll
    for (int n = 0; n < tiles; n++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t c = t * 2 + i % 2;
            float column = columns[tiles > 1 ? n * 8 + c : min(c, p->columns - 1)];
            sums[n][i] = fmaf(parts[n][i], row * column, sums[n][i]);
        }
}

#endif
