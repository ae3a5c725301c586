/* Divides the work of a mixed-input kernel (mixed_kernels.h) among thread blocks and warps, and
 * moves A through a ring buffer in shared memory. */
#ifndef BSMM_CUDA_SM90A_MIXED_STAGE_H
#define BSMM_CUDA_SM90A_MIXED_STAGE_H

#include "cuda/ptx/bulk.h"
#include "cuda/ptx/grid.h"
#include "cuda/sm90a/mixed_shape.h"
#include "cuda/sm90a/small_m_stage.h"

/* Describes the tile of D that a thread block computes. */
typedef struct mixed_block {
    /* The thread block multiplies rows [row, row + rows) of B, which give columns of D. */
    uint32_t row, rows;
    /* The thread block multiplies rows [first, first + count) of A, which give rows of D. */
    uint32_t first, count;
    /* `rank` is the thread block's rank in its cluster. The thread blocks of a cluster compute the
     * same tile of D and split K among them. */
    uint32_t rank;
    /* `image` points to a part of A's image in global memory: to the rows of A in this thread
     * block's tile, for all steps of K from the first one on. The image is A in the order in which
     * the kernel reads it (mixed_prepare.h). */
    const uint8_t *image;
} mixed_block;

/* K has p->steps steps, which are divided into ranges of nearly equal length. Returns the first
 * step of range number `range`. This is p->steps * range / (number of ranges), rounded down. To
 * avoid a division, the function multiplies by range_inverse (2^31 / number of ranges, rounded up).
 * Although range_inverse is rounded, the result is exact, because p->steps * range is less than
 * 2^23 and the number of ranges is at most 16. */
static __device__ __forceinline__ uint32_t mixed_begin_of(const bsmm_small_m_params *p,
                                                          uint32_t range) {
    return __umulhi(2 * p->steps * range, p->range_inverse);
}

static __device__ __forceinline__ mixed_block mixed_find_block(const bsmm_small_m_params *p,
                                                               const uint32_t columns) {
    const uint32_t tile = blockIdx.x / p->splits, across = tile % p->column_tiles;
    mixed_block block;
    block.rows = BSMM_MIXED_THREADS(columns) / 2 >> p->k_warps_log2;
    block.row = p->first_row + tile / p->column_tiles * block.rows;
    block.first = across * columns;
    block.count = min(columns, p->m - block.first);
    block.rank = ptx_grid_cluster_rank();
    block.image = p->a_image + (uint64_t)across * p->steps * columns * (BSMM_SMALL_M_K * 2);
    return block;
}

/* The warps of a thread block form groups, which divide K. The warps of a group multiply different
 * rows of B in the same steps of K (128 elements each). They share a ring buffer of A in shared
 * memory, which this struct describes. A slot holds a stage, i.e. a step or, with tiles of 256
 * columns, half a step. Stage begin + i is in slot number i % (number of slots). Each slot has two
 * mbarriers. "full" completes when A's bytes have arrived, and "done" completes when all warps of
 * the group have read the slot. */
typedef struct mixed_ring {
    uint32_t slots_log2, first, slot_bytes, full, done;
    uint32_t begin, end; /* The group of warps computes stages [begin, end) of K. */
    uint32_t group_mask; /* `group_mask` is the number of warpgroups of the group, minus 1. */
} mixed_ring;

static __device__ __forceinline__ mixed_ring mixed_find_ring(const bsmm_small_m_params *p,
                                                             const uint32_t columns,
                                                             uint32_t k_group, uint32_t row_warps,
                                                             uint32_t begin, uint32_t end) {
    mixed_ring ring;
    ring.slots_log2 = BSMM_MIXED_SLOTS_LOG2 - p->k_warps_log2;
    const uint32_t before = k_group << ring.slots_log2;
    ring.slot_bytes = columns * BSMM_SMALL_M_K * 2 / BSMM_MIXED_STEP_SLOTS(columns);
    ring.first = small_m_address(small_m_shared) + before * ring.slot_bytes;
    ring.full = small_m_address(small_m_shared + p->barriers_at) + before * 8;
    ring.done = ring.full + BSMM_MIXED_SLOTS * 8;
    ring.begin = begin * BSMM_MIXED_STEP_SLOTS(columns);
    ring.end = end * BSMM_MIXED_STEP_SLOTS(columns);
    ring.group_mask = row_warps / 4 - 1;
    return ring;
}

/* Initializes the mbarriers of all slots of the ring buffer of A. `row_warps` is the number of
 * warps that read a slot. */
static __device__ __forceinline__ void mixed_make_barriers(const bsmm_small_m_params *p,
                                                           uint32_t row_warps) {
    if (threadIdx.x >= 2 * BSMM_MIXED_SLOTS) return;
    ptx_bulk_init(small_m_address(small_m_shared + p->barriers_at) + threadIdx.x * 8,
                  threadIdx.x < BSMM_MIXED_SLOTS ? 1 : row_warps);
    ptx_bulk_fence_init();
}

/* Returns the offset of stage number i in an array with one element of `bytes` bytes per slot of
 * A's ring buffer. Stages use the slots in turn. */
static __device__ __forceinline__ uint32_t mixed_slot_offset(const mixed_ring *ring, uint32_t i,
                                                             uint32_t bytes) {
    return (i & ((1u << ring->slots_log2) - 1)) * bytes;
}

static __device__ __forceinline__ uint32_t mixed_slot(const mixed_ring *ring, uint32_t i) {
    return ring->first + mixed_slot_offset(ring, i, ring->slot_bytes);
}

/* Starts the copy of A's tile for stage number i of the group, if there is such a stage. A group is
 * the warpgroups that multiply the same part of K. */
static __device__ __forceinline__ void mixed_fill(const mixed_ring *ring, const uint8_t *image,
                                                  uint32_t i) {
    if (ring->begin + i >= ring->end) return;
    const uint32_t full = ring->full + mixed_slot_offset(ring, i, 8);
    ptx_bulk_expect(full, ring->slot_bytes);
    ptx_bulk_copy(mixed_slot(ring, i), image + (uint64_t)(ring->begin + i) * ring->slot_bytes,
                  ring->slot_bytes, full);
}

/* The warps of a group (the warpgroups that multiply the same part of K) share a ring buffer of A.
 * Starts the copies that fill all slots of the ring buffer. One thread of the group calls this
 * function. */
static __device__ __forceinline__ void mixed_fill_first(const mixed_ring *ring,
                                                        const uint8_t *image) {
    for (uint32_t i = 0; i < 1u << ring->slots_log2; i++)
        mixed_fill(ring, image, i);
}

/* Waits until A's tile for stage number i of the group is in shared memory. A group is the
 * warpgroups that multiply the same part of K. */
static __device__ __forceinline__ void mixed_wait_slot(const mixed_ring *ring, uint32_t i) {
    const uint32_t full = ring->full + mixed_slot_offset(ring, i, 8);
    while (!ptx_bulk_try_wait(full, i >> ring->slots_log2 & 1)) {
    }
}

/* Records that this warp has read the slot of the ring buffer that holds A's tile for stage
 * number i. */
static __device__ __forceinline__ void mixed_leave_slot(const mixed_ring *ring, uint32_t i) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx_bulk_arrive(ring->done + mixed_slot_offset(ring, i, 8));
}

/* Refills the slot of the ring buffer that held stage number i, after all warps of the group have
 * read it. A group is the warpgroups that multiply the same part of K. The first warps of these
 * warpgroups take turns to refill slots. The caller has already started to multiply the next
 * stage, so that the slower warps have usually read the slot. */
static __device__ __forceinline__ void mixed_refill(const mixed_ring *ring, const uint8_t *image,
                                                    uint32_t i, uint32_t row_warp) {
    const uint32_t next = i + (1u << ring->slots_log2);
    if (row_warp != (i & ring->group_mask) * 4 || ring->begin + next >= ring->end) return;
    const uint32_t done = ring->done + mixed_slot_offset(ring, i, 8);
    while (!ptx_bulk_try_wait(done, i >> ring->slots_log2 & 1)) {
    }
    if (threadIdx.x % 32 == 0) mixed_fill(ring, image, next);
    __syncwarp();
}

#endif
