/* How the threads of a small-M kernel copy weights to shared memory and take them from there. Each
 * thread copies 64 bytes of a step (48 bytes of 6-bit weights) to the ring of weights. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_LANE_H
#define BSMM_CUDA_SM90A_SMALL_M_LANE_H

#include "cuda/ptx/stream.h"
#include "cuda/sm90a/small_m_stage.h"

/* The weights of one thread in one step or span, as [half][row, row + 8]. 16 bytes hold 32 elements
 * of 4 bits: the two halves are 16 rows apart, or one step apart in a span of two steps. 16 bytes
 * hold 16 elements of 8 bits: the two halves are 64 elements apart along K. The first 12 bytes hold
 * 16 elements of 6 bits: the two halves are adjacent. */
typedef struct small_m_words {
    uint4 w[2][2];
} small_m_words;

/* A warp's 6-bit weights of one step: 16 rows of 96 bytes, one after another in shared memory. Rows
 * may begin at any multiple of 8 bytes, so 8 bytes are copied at a time. */
enum {
    SMALL_M_SIX_ROW = BSMM_SMALL_M_K * 6 / 8, /* bytes of a row */
    SMALL_M_SIX_PIECES = 6,                   /* pieces of 8 bytes that a thread copies */
    SMALL_M_SIX_BYTES = 16 * SMALL_M_SIX_ROW  /* bytes of a warp */
};

/* The addresses from and to which a thread copies weights. */
typedef struct small_m_lane {
    /* The source addresses of the next copies: in 4 rows or in 2, or in the warp's first row for
     * 6-bit weights. */
    const uint8_t *weights[4];
    /* For 6-bit weights: the offsets of a thread's pieces from the warp's first row to their rows,
     * in units of 8 bytes, and the offsets along rows of the first three, in bytes. The last three
     * pieces lie 8 rows below the first three. */
    uint32_t offset[SMALL_M_SIX_PIECES], along[SMALL_M_SIX_PIECES / 2];
    int32_t left; /* the bytes from the source addresses to the end of a row */
    /* The shared memory address of this thread's bytes in the first slot: of the bytes that it
     * copies, and of those that it takes. They differ for 6-bit weights. */
    uint32_t ring, own;
} small_m_lane;

/* Prepares the copies of 6-bit weights. `first` is the warp's first row of B. */
static __device__ __forceinline__ void
small_m_find_six(const bsmm_small_m_params *p, uint32_t first, uint32_t step, small_m_lane *lane) {
    const uint32_t thread = threadIdx.x % 32, pieces = SMALL_M_SIX_ROW / 8;
    const uint32_t ring = small_m_address(small_m_shared + p->ring_at);
    const uint32_t base = min(first, p->n - 1);
    lane->weights[0] =
        p->b.data + (uint64_t)base * p->b_pitch8 * 8 + (uint64_t)step * SMALL_M_SIX_ROW;
    lane->left = (int32_t)(p->b_bytes - step * SMALL_M_SIX_ROW);
#pragma unroll
    for (int i = 0; i < SMALL_M_SIX_PIECES / 2; i++) {
        const uint32_t piece = thread + i * 32, row = first + piece / pieces;
        lane->along[i] = piece % pieces * 8;
        lane->offset[i] = (min(row, p->n - 1) - base) * p->b_pitch8;
        lane->offset[i + SMALL_M_SIX_PIECES / 2] = (min(row + 8, p->n - 1) - base) * p->b_pitch8;
    }
    lane->ring = ring + threadIdx.x / 32 * SMALL_M_SIX_BYTES + thread * 8;
    lane->own = ring + threadIdx.x / 32 * SMALL_M_SIX_BYTES + thread / 4 * SMALL_M_SIX_ROW +
                thread % 4 * (SMALL_M_SIX_ROW / 4);
}

/* Prepares the copies of 4-bit or 8-bit weights: 16 bytes in `rows` rows, 8 rows apart, from row
 * `first` of B on. */
static __device__ __forceinline__ void small_m_find_rows(const int format, const int rows,
                                                         const bsmm_small_m_params *p,
                                                         uint32_t first, uint32_t step,
                                                         small_m_lane *lane) {
    const uint32_t first_byte = step * (small_m_is_4bit(format) ? 64 : 128) + threadIdx.x % 4 * 16;
    lane->left = (int32_t)(p->b_bytes - first_byte);
    lane->ring = small_m_address(small_m_shared + p->ring_at) + threadIdx.x * 16;
    lane->own = lane->ring;
#pragma unroll
    for (int i = 0; i < rows; i++)
        lane->weights[i] =
            p->b.data + first_byte + (uint64_t)min(first + i * 8, p->n - 1) * p->b_pitch8 * 8;
}

/* Copies a step of 6-bit weights. Writes zeros past the end of a row. */
static __device__ __forceinline__ void small_m_fetch_six(const small_m_lane *lane, uint32_t to) {
#pragma unroll
    for (int i = 0; i < SMALL_M_SIX_PIECES; i++) {
        const uint32_t along = lane->along[i % (SMALL_M_SIX_PIECES / 2)];
        ptx_copy8_once(to + i * 256, lane->weights[0] + (uint64_t)lane->offset[i] * 8 + along,
                       lane->left > (int32_t)along ? 8 : 0);
    }
}

/* Copies 64 bytes of weights: 16 bytes from each of 4 rows, or twice 16 bytes from each of 2 rows.
 * Writes zeros past the end of a row. */
static __device__ __forceinline__ void small_m_fetch_rows(const int rows, const small_m_lane *lane,
                                                          uint32_t to) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = i % rows, along = i / rows * 64;
        ptx_copy16_once(to + i * (BSMM_SMALL_M_THREADS * 16), lane->weights[row] + along,
                        lane->left > along ? 16 : 0);
    }
}

/* Copies the thread's weights of one step, or of one span, to a slot of the ring. */
static __device__ __forceinline__ void small_m_fetch(const int format, const int rows,
                                                     const small_m_lane *lane, uint32_t slot) {
    if (small_m_is_6bit(format))
        small_m_fetch_six(lane, lane->ring + slot * BSMM_SMALL_M_SLOT_BYTES);
    else
        small_m_fetch_rows(rows, lane, lane->ring + slot * BSMM_SMALL_M_SLOT_BYTES);
}

static __device__ __forceinline__ void small_m_go_on(const int format, const int rows,
                                                     small_m_lane *lane) {
    /* 128 bytes are two steps of 4-bit weights, or one step of 8-bit weights. */
    const int bytes = small_m_is_6bit(format) ? SMALL_M_SIX_ROW : 128;
#pragma unroll
    for (int i = 0; i < (small_m_is_6bit(format) ? 1 : rows); i++)
        lane->weights[i] += bytes;
    lane->left -= bytes;
}

/* Copies the second step's weights. The ring of weights has two slots. */
static __device__ __forceinline__ void small_m_fetch_ahead(const int format, const int rows,
                                                           small_m_lane *lane, uint32_t step,
                                                           uint32_t walkers, uint32_t end) {
    if (step + walkers < end) small_m_fetch(format, rows, lane, 1);
    small_m_go_on(format, rows, lane);
    ptx_copy_commit();
}

/* Takes 6-bit weights: 24 bytes from each of two rows. The lanes of a warp have copied them for
 * each other, so the warp waits before it takes them, and again before it refills the slot. */
static __device__ __forceinline__ void small_m_take_six(uint32_t slot, small_m_words *to) {
    __syncwarp();
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const uint2 *from =
            (const uint2 *)__cvta_shared_to_generic(slot + row * 8 * SMALL_M_SIX_ROW);
        const uint2 a = from[0], b = from[1], c = from[2];
        to->w[0][row] = make_uint4(a.x, a.y, b.x, 0);
        to->w[1][row] = make_uint4(b.y, c.x, c.y, 0);
    }
    __syncwarp();
}

/* Takes one step of a span of two steps of 4-bit weights. */
static __device__ __forceinline__ void small_m_take_half(const small_m_lane *lane, uint32_t slot,
                                                         const int half, small_m_words *to) {
    const uint8_t *from = (const uint8_t *)__cvta_shared_to_generic(
        lane->own + slot * BSMM_SMALL_M_SLOT_BYTES + 2 * half * (BSMM_SMALL_M_THREADS * 16));
    to->w[half][0] = *(const uint4 *)from;
    to->w[half][1] = *(const uint4 *)(from + BSMM_SMALL_M_THREADS * 16);
}

/* Takes the thread's weights from a slot of the ring. */
static __device__ __forceinline__ void small_m_take(const int format, const small_m_lane *lane,
                                                    uint32_t slot, small_m_words *to) {
    const uint32_t at = lane->own + slot * BSMM_SMALL_M_SLOT_BYTES;
    if (small_m_is_6bit(format)) {
        small_m_take_six(at, to);
        return;
    }
    const uint8_t *from = (const uint8_t *)__cvta_shared_to_generic(at);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to->w[i / 2][i % 2] = *(const uint4 *)(from + i * (BSMM_SMALL_M_THREADS * 16));
}

#endif
