/* This is the main loop of a small-M kernel (few rows of A). The warps of a thread block divide K
 * into steps of 128 elements, and each warp multiplies its own steps. In a step, it multiplies 32
 * rows of 4-bit weights or 16 rows of other weights. Each thread prefetches up to 64 bytes of
 * weights for a step to a ring buffer in shared memory, BSMM_SMALL_M_AHEAD steps before the warp
 * multiplies them. A thread later reads only weights that it has copied itself or, if weights have
 * 6 bits, that its warp has copied. A warp therefore never waits for the copies of another warp. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_MULTIPLY_H
#define BSMM_CUDA_SM90A_SMALL_M_MULTIPLY_H

#include "cuda/ptx/bulk.h"
#include "cuda/ptx/halves.h"
#include "cuda/ptx/mma.h"
#include "cuda/sm90a/small_m_lane.h"

/* This is a ring buffer in shared memory for A. It exists if shared memory cannot hold all of A
 * that the thread block needs. A slot holds one or two steps of 128 elements along K. Warps that
 * multiply the same steps share one ring.
 *
 * Each slot has two mbarriers. "full" completes when A's bytes have arrived in the slot, and "done"
 * completes when all warps have read the slot. All mbarriers of the thread block lie in one array,
 * the first two of which belong to no slot. Mbarrier 0 counts the bytes that are loaded once
 * instead of through a ring. If there is no ring, mbarrier 1 counts the bytes of the second load of
 * A (see HEAD in small_m_body.h). */
typedef struct small_m_ring {
    /* `slots` is the number of slots of the ring buffer. A slot holds A for one or two steps of K.
     * The warp next reads slot number `slot`, and `parity` is the phase parity of that slot's
     * mbarriers. */
    uint32_t slots, slot, parity;
    /* These are the shared memory addresses of the "full" and "done" mbarriers of the ring buffer's
     * first slot. */
    uint32_t full, done;
    /* `first` is the shared memory address of the first slot. `step_bytes` is the number of bytes
     * of A for one step of K (128 elements). `span` is the number of steps in a slot. */
    uint32_t first, step_bytes, span;
    /* `stride` is the number of steps of K from a slot that this warp reads to the slot that it
     * reads next. */
    uint32_t stride;
    /* A slot may be refilled only when all warps that share it have read it. If `lag` is 0, the
     * warp that refills slots does so directly after it has read a slot itself, and waits for the
     * other warps. If `lag` is 1, it refills a slot only after it has read the following slot too.
     * The other warps have usually read the older slot by then. */
    uint32_t lag;
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

/* Initializes all mbarriers that count copies to shared memory. Mbarrier 0 counts data that is
 * loaded once. If A has ring buffers, each slot has one mbarrier that counts the bytes of a copy,
 * and one that counts the `row_warps` warps that have read the slot. */
static __device__ __forceinline__ void small_m_make_barriers(const bsmm_small_m_params *p,
                                                             uint32_t row_warps) {
    uint32_t barriers = small_m_address(small_m_shared + p->barriers_at);
    uint32_t slots = p->a_slots << p->k_warps_log2, last = slots ? 2 * slots : 1;
    for (uint32_t i = threadIdx.x; i <= last; i += BSMM_SMALL_M_THREADS)
        ptx_bulk_init(barriers + i * 8, slots && i > slots ? row_warps : 1);
    if (threadIdx.x <= last) ptx_bulk_fence_init();
}

/* Starts the copy of a part of A from global memory to a slot of the ring buffer. Global memory
 * holds A converted to bf16, in the order in which the main loop reads it. A slot has room for one
 * or two steps of K (128 elements each). The copied part begins with step number `step` and ends
 * with the slot's last step, or before step number `end`, the end of the warp's range of steps. One
 * thread calls this function for all warps that share the slot. */
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

/* A warp calls this function when it has read a slot of the ring buffer of A. The slot holds one or
 * two steps along K, beginning with step number `step`. The warp multiplies steps [begin, end). If
 * there is a later step for which a slot is needed, the warp arrives at the mbarrier of its slot.
 *
 * Several warps share the ring buffer. One of them, which has `fills` set, also refills a slot with
 * a later step: it waits at the slot's mbarrier until all of these warps have read the slot. If
 * ring.lag is 0, the slot is the one that it has just read. If ring.lag is 1, the slot is the one
 * that it read before that. By then the other warps have usually read the older slot too, so the
 * wait ends at once. */
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

/* Starts the copy of A for the steps [first, end) of K from global to shared memory. It is for
 * thread blocks whose shared memory has room for all of A that they need. A step is 128 elements.
 * `barrier` is the address of the mbarrier that counts the bytes. */
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

/* A range is the part of K that some warps of the thread block multiply. Its first `head` steps
 * (128 elements of K each) of A are loaded separately, so that the warps can begin before the rest
 * has arrived. Returns the end of these steps of range number `range`. */
static __device__ __forceinline__ uint32_t small_m_head_end(const bsmm_small_m_params *p,
                                                            uint32_t range, uint32_t head) {
    return min(small_m_begin(p, range) + head, small_m_begin(p, range + 1));
}

/* Starts the copies to shared memory of the data that is loaded only once: the fp32 scales of A, if
 * it has any, and, if there is no ring buffer for A, all of A that the thread block needs. Mbarrier
 * 0 counts the bytes of the scales. If `head` is 0, it also counts all bytes of A. Otherwise it
 * counts the bytes of A for the first `head` steps of each range, and mbarrier 1 counts the rest of
 * A. A range is the part of K that some warps of the thread block multiply, and a step is 128
 * elements of K. One thread calls this function. */
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

static __device__ __forceinline__ uint32_t small_m_word(const uint4 *w, const int i) {
    return i == 0 ? w->x : i == 1 ? w->y : i == 2 ? w->z : w->w;
}

static __device__ __forceinline__ uint32_t small_m_shared_u8(uint32_t address) {
    return *(const uint8_t *)__cvta_shared_to_generic(address);
}

static __device__ __forceinline__ uint32_t small_m_shared_u16(uint32_t address) {
    return *(const uint16_t *)__cvta_shared_to_generic(address);
}

/* Decodes two e4m3 scales of nvfp4 weights to bf16 and multiplies them by 2^118, without rounding.
 * factors[i] holds scale i in both 16-bit halves. */
static __device__ __forceinline__ void small_m_nv_factors(uint32_t codes, uint32_t factors[2]) {
    uint32_t halves = ptx_f16x2_of_e4m3x2(codes);
    float low = ptx_f32_of_f16(halves & 0xffff), high = ptx_f32_of_f16(halves >> 16);
    factors[0] = ptx_bf16x2_of_f32(low * 0x1p118f, low * 0x1p118f);
    factors[1] = ptx_bf16x2_of_f32(high * 0x1p118f, high * 0x1p118f);
}

/* Holds the bf16 factors by which a thread multiplies its decoded weights, as [half][row][part]. A
 * thread's weights come in two halves (small_m_words), and each half has 16 bytes of each of two
 * rows. A part is the first or the last 16 of 32 elements. In nvfp4 each part has its own scale. In
 * other formats both parts have the same factor. */
typedef struct small_m_factors {
    uint32_t f[2][2][2];
} small_m_factors;

/* Computes the bf16 factors by which one half of a thread's decoded weights is multiplied. The half
 * is 16 bytes of each of two rows of B, which are 8 rows apart. `at` is the shared memory address
 * of the scales of the first row, and those of the second row begin 8 * stride bytes later. *most
 * is the running maximum of the scales, as bsmm_e8m0_most returns it. */
static __device__ __forceinline__ void small_m_find_half(const int format, uint32_t at,
                                                         uint32_t stride, uint32_t to[2][2],
                                                         uint32_t *most) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        uint32_t *f = to[row], here = at + row * 8 * stride;
        if (small_m_has_e8m0(format)) {
            uint32_t code = small_m_shared_u8(here);
            f[0] = f[1] = bsmm_e8m0_factor(code);
            *most = bsmm_e8m0_most(*most, code);
        } else if (format == SMALL_M_NVFP4) {
            small_m_nv_factors(small_m_shared_u16(here), f);
        } else {
            /* The constant is 2^120 in both bf16 halves. It corrects the exponent bias of decoded
             * e4m3. */
            f[0] = f[1] = 0x7b807b80u;
        }
    }
}

/* Computes the bf16 factors, i.e. block scales, by which a thread multiplies its decoded weights.
 * The weights come in two halves, and each half is 16 bytes of each of two rows of B. With 6-bit
 * weights both halves lie in one scale block, so only the factors of the first half are computed.
 * `at` is the shared memory address of the scales that the thread's first row has in the current
 * step. */
static __device__ __forceinline__ void small_m_find_factors(const int format, uint32_t at,
                                                            uint32_t stride, small_m_factors *to,
                                                            uint32_t *most) {
    small_m_find_half(format, at, stride, to->f[0], most);
    if (small_m_is_6bit(format)) return;
    small_m_find_half(format, at + (small_m_is_4bit(format) ? 16 * stride : 2), stride, to->f[1],
                      most);
}

/* Returns the 8 weights of 6 bits that belong to chunk number `chunk`, in the two words from which
 * bsmm_e2m3_pairs and bsmm_e3m2_pairs decode them. The weights are the first or the last 6 of the
 * 12 bytes in *w. */
static __device__ __forceinline__ uint2 small_m_six(const uint4 *w, const int chunk) {
    const uint32_t low = chunk % 2 ? w->y : w->x, high = chunk % 2 ? w->z : w->y;
    return make_uint2(__byte_perm(low, high, chunk % 2 ? 0x6532 : 0x4310),
                      __byte_perm(low, high, chunk % 2 ? 0x7643 : 0x5421));
}

/* Decodes 8 weights of one row of B to bf16, multiplies them by their scales, and stores them in
 * `pairs`, two in each word. The 8 weights are this thread's elements of chunk number `chunk`. A
 * chunk is 32 elements along K, and four threads have 8 elements each of it. If the format is e4m3,
 * the function also sets bit 7 of a byte of *nans if a weight is NaN. */
static __device__ __forceinline__ void small_m_chunk(const int format, const uint4 *w,
                                                     const int chunk, const uint32_t factor[2],
                                                     uint32_t pairs[4], uint32_t *nans) {
    if (small_m_is_4bit(format)) {
        bsmm_e2m1_pairs(small_m_word(w, chunk), pairs);
    } else if (small_m_is_6bit(format)) {
        const uint2 six = small_m_six(w, chunk);
        if (format == SMALL_M_MXFP6_E2M3)
            bsmm_e2m3_pairs(six.x, six.y, pairs);
        else
            bsmm_e3m2_pairs(six.x, six.y, pairs);
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

/* Multiplies one step (128 elements of K) by mma.sync and adds the products to `sums`. The rows of
 * the tile are rows of B. They are divided into row tiles of 16 rows, and the function multiplies
 * the row tiles `first` to `end` - 1. The columns are rows of A or bf16 parts of them. They are
 * divided into `tiles` column tiles of 8 columns. sums[(r - first) * tiles + n] has the thread's
 * four accumulators of row tile r and column tile n. A step of A in shared memory consists of 4
 * chunks. `a` is the address of the first one. columns[n] is the offset in bytes, in a chunk, of
 * the 16 bytes that the thread needs of its column in column tile n. */
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
            const int half = small_m_is_4bit(format) ? r : chunk / 2;
            const int block = small_m_is_6bit(format) ? 0 : half;
            uint32_t low[4], high[4];
            small_m_chunk(format, &words->w[half][0], chunk, factors->f[block][0], low, &nans[0]);
            small_m_chunk(format, &words->w[half][1], chunk, factors->f[block][1], high, &nans[1]);
#pragma unroll
            for (int n = 0; n < tiles; n++) {
                float *sum = sums[(r - first) * tiles + n];
                ptx_mma_bf16(sum, low[0], high[0], low[1], high[1], b[n].x, b[n].y);
                ptx_mma_bf16(sum, low[2], high[2], low[3], high[3], b[n].z, b[n].w);
            }
        }
    }
}

/* `parts` has the sums of products of one step of K (128 elements), for 8 columns (rows of A) per
 * tile and two rows of B. Multiplies each sum by the fp32 scale of its row of B and that of its row
 * of A, and adds it to the accumulators `sums`. `step` counts from the thread block's first step.
 * `scale` is the shared memory address of B's scale for the thread's first row. */
static __device__ __forceinline__ void small_m_add_step(const int format, const int tiles,
                                                        const bsmm_small_m_params *p, uint32_t step,
                                                        uint32_t t, uint32_t scale,
                                                        const float (*parts)[4], float (*sums)[4]) {
    const float *const columns =
        (const float *)(small_m_shared + p->a_scales_at) + step * p->scale_columns;
    const bool floats = small_m_has_floats(format);
    const float low = floats ? small_m_shared_f32(scale) : 1;
    const float high =
        format == SMALL_M_FP8_ROWS ? small_m_shared_f32(scale + 8 * p->scale_stride) : low;
#pragma unroll
    for (int n = 0; n < tiles; n++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t c = t * 2 + i % 2;
            float column = columns[tiles > 1 ? n * 8 + c : min(c, p->columns - 1)];
            sums[n][i] = fmaf(parts[n][i], (i < 2 ? low : high) * column, sums[n][i]);
        }
}

#endif
