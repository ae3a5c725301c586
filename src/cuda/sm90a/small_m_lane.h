/* These functions copy the weights (matrix B) in a small-M kernel, i.e. a GEMM kernel for few rows
 * of A. A thread copies 64 bytes of weights at a time, or 48 bytes of 6-bit weights, from global
 * memory to a ring buffer of two slots in shared memory. Later the thread loads weights from the
 * ring buffer into registers and multiplies them. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_LANE_H
#define BSMM_CUDA_SM90A_SMALL_M_LANE_H

#include "cuda/ptx/stream.h"
#include "cuda/sm90a/small_m_stage.h"

/* Holds the weights that one thread multiplies in one step (128 elements along K) or, with 4-bit
 * weights and wgmma, in two steps. w[half][0] belongs to one row of B, and w[half][1] belongs to
 * the row 8 rows below. Each of the four entries has 16 bytes. The distance between the weights
 * w[0] and w[1] depends on the kind of weights:
 * - 4-bit weights with mma.sync: an entry has 32 elements, and w[1] lies 16 rows below w[0].
 * - 4-bit weights with wgmma: an entry has 32 elements, and w[1] lies one step further along K.
 * - 8-bit weights: an entry has 16 elements, and w[1] lies 64 elements further along K.
 * - 6-bit weights: an entry has 16 elements in its first 12 bytes, and w[1] directly follows w[0]
 *   along K. */
typedef struct small_m_words {
    uint4 w[2][2];
} small_m_words;

/* These are sizes of the 6-bit weights that a warp multiplies in one step (128 elements of K). They
 * are 16 rows of 96 bytes, which lie one after another in shared memory. Threads copy them from
 * global memory 8 bytes at a time and not 16, because in global memory a row of B may begin at any
 * multiple of 8 bytes. */
enum {
    SMALL_M_SIX_ROW = BSMM_SMALL_M_K * 6 / 8, /* SMALL_M_SIX_ROW is the number of bytes of a row. */
    /* A thread copies 6-bit weights 8 bytes at a time. SMALL_M_SIX_PIECES is the number of these
     * copies in one step of K. */
    SMALL_M_SIX_PIECES = 6,
    /* SMALL_M_SIX_BYTES is the number of bytes of a warp's 6-bit weights in one step of K. */
    SMALL_M_SIX_BYTES = 16 * SMALL_M_SIX_ROW
};

/* Holds the addresses from and to which a thread copies weights. */
typedef struct small_m_lane {
    /* `weights` holds the addresses from which the next copies read. There is one address for each
     * of the 2 or 4 rows that the thread copies. For 6-bit weights there is only the address in the
     * warp's first row. */
    const uint8_t *weights[4];
    /* For 6-bit weights, a thread copies six pieces of 8 bytes. offset[i] is the distance, in units
     * of 8 bytes, from the warp's first row to the row of piece i. along[i] is the offset of piece
     * i in its row, in bytes. Pieces 3 to 5 lie 8 rows below pieces 0 to 2, at the same positions.
     */
    uint32_t offset[SMALL_M_SIX_PIECES], along[SMALL_M_SIX_PIECES / 2];
    /* `left` is the number of bytes from the source addresses to the end of a row of B. */
    int32_t left;
    /* `ring` and `own` are addresses in the first slot of the ring buffer of weights in shared
     * memory. The thread copies weights to `ring`, and reads the weights that it multiplies from
     * `own`. With 4-bit and 8-bit weights, both are the same. With 6-bit weights, a thread also
     * multiplies weights that other lanes of its warp have copied, so the addresses differ. */
    uint32_t ring, own;
} small_m_lane;

/* Finds the addresses of this thread's copies of 6-bit weights. `first` is the warp's first row of
 * B, and `step` is the first step of K (128 elements). */
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

/* Finds the addresses of this thread's copies of 4-bit or 8-bit weights. The thread copies 16 bytes
 * at a time from `rows` rows of B: row `first`, the row 8 rows below, and so on. */
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

/* Copies this thread's 6-bit weights of one step (128 elements along K) to the address `to` in
 * shared memory. Writes zeros past the end of a row. */
static __device__ __forceinline__ void small_m_fetch_six(const small_m_lane *lane, uint32_t to) {
#pragma unroll
    for (int i = 0; i < SMALL_M_SIX_PIECES; i++) {
        const uint32_t along = lane->along[i % (SMALL_M_SIX_PIECES / 2)];
        ptx_copy8_once(to + i * 256, lane->weights[0] + (uint64_t)lane->offset[i] * 8 + along,
                       lane->left > (int32_t)along ? 8 : 0);
    }
}

/* Copies 64 bytes of weights to shared memory: 16 bytes from each of 4 rows of B, or two times 16
 * bytes from each of 2 rows. Writes zeros past the end of a row. */
static __device__ __forceinline__ void small_m_fetch_rows(const int rows, const small_m_lane *lane,
                                                          uint32_t to) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = i % rows, along = i / rows * 64;
        ptx_copy16_once(to + i * (BSMM_SMALL_M_THREADS * 16), lane->weights[row] + along,
                        lane->left > along ? 16 : 0);
    }
}

/* Copies the thread's weights of one step (or of two steps with 4-bit weights and wgmma) from
 * global memory to a slot of the ring buffer in shared memory. */
static __device__ __forceinline__ void small_m_fetch(const int format, const int rows,
                                                     const small_m_lane *lane, uint32_t slot) {
    if (small_m_is_6bit(format))
        small_m_fetch_six(lane, lane->ring + slot * BSMM_SMALL_M_SLOT_BYTES);
    else
        small_m_fetch_rows(rows, lane, lane->ring + slot * BSMM_SMALL_M_SLOT_BYTES);
}

static __device__ __forceinline__ void small_m_go_on(const int format, const int rows,
                                                     small_m_lane *lane) {
    /* 128 bytes of a row of B are two steps of 4-bit weights or one step of 8-bit weights. One step
     * of 6-bit weights has 96 bytes. A step is 128 elements along K. */
    const int bytes = small_m_is_6bit(format) ? SMALL_M_SIX_ROW : 128;
#pragma unroll
    for (int i = 0; i < (small_m_is_6bit(format) ? 1 : rows); i++)
        lane->weights[i] += bytes;
    lane->left -= bytes;
}

/* Starts the copy of the weights for the second step of a warp to slot 1 of the ring buffer. Slot 0
 * gets those of the first step. `walkers` warps take turns along K: a step is 128 elements of K,
 * and a warp that begins with step `step` goes on with step + walkers. If that is not below `end`,
 * the warp has no second step, and nothing is copied. */
static __device__ __forceinline__ void small_m_fetch_ahead(const int format, const int rows,
                                                           small_m_lane *lane, uint32_t step,
                                                           uint32_t walkers, uint32_t end) {
    if (step + walkers < end) small_m_fetch(format, rows, lane, 1);
    small_m_go_on(format, rows, lane);
    ptx_copy_commit();
}

/* Loads a thread's 6-bit weights of one step from shared memory: 24 bytes of each of two rows.
 * Other lanes of the warp have copied these bytes. The warp therefore synchronizes before the
 * loads, so that all copies are visible. It synchronizes again after the loads, before a lane may
 * overwrite the bytes by the weights of a later step. */
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

/* Loads the thread's 4-bit weights of one step from a slot of the ring buffer that holds two steps.
 * `half` (0 or 1) selects the step. */
static __device__ __forceinline__ void small_m_take_half(const small_m_lane *lane, uint32_t slot,
                                                         const int half, small_m_words *to) {
    const uint8_t *from = (const uint8_t *)__cvta_shared_to_generic(
        lane->own + slot * BSMM_SMALL_M_SLOT_BYTES + 2 * half * (BSMM_SMALL_M_THREADS * 16));
    to->w[half][0] = *(const uint4 *)from;
    to->w[half][1] = *(const uint4 *)(from + BSMM_SMALL_M_THREADS * 16);
}

/* Loads the thread's weights from a slot of the ring buffer in shared memory into registers. */
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
