/* These functions wrap the tcgen05 instructions of the sm_100f kernels of scaled_body.h. A
 * group is one thread block (CTAS is 1) or a pair of thread blocks (CTAS is 2). scaled_body.h
 * includes this file. */
#include "cuda/ptx/tcgen05.h"
#include "cuda/ptx/tcgen05_pair.h"

enum { LEADER = 0, BOTH = 3 };

/* A group is one thread block, or a pair of thread blocks that compute a tile together. Returns
 * this thread block's rank in its group. The thread blocks of a group have consecutive ranks in the
 * cluster. The leader of a pair has an even rank, and the other thread block has the next rank. */
static __device__ __forceinline__ uint32_t group_rank(void) {
    return CTAS == 1 ? 0 : SPLITS ? ptx_grid_cluster_rank() % CTAS : ptx_grid_cluster_rank();
}

/* Returns the rank in the cluster of the leader of this thread block's pair. */
static __device__ __forceinline__ uint32_t leader_rank(void) {
    return SPLITS ? ptx_grid_cluster_rank() / CTAS * CTAS : LEADER;
}

static __device__ __forceinline__ void group_alloc(uint32_t to, uint32_t columns) {
    if (CTAS == 1) {
        ptx_tcgen05_alloc(to, columns);
        ptx_tcgen05_relinquish();
    } else {
        ptx_tcgen05_pair_alloc(to, columns);
        ptx_tcgen05_pair_relinquish();
    }
}

static __device__ __forceinline__ void group_dealloc(uint32_t address, uint32_t columns) {
    if (CTAS == 1)
        ptx_tcgen05_dealloc(address, columns);
    else
        ptx_tcgen05_pair_dealloc(address, columns);
}

/* Waits until all threads of the group (one thread block or a pair) have arrived. */
static __device__ __forceinline__ void group_sync(void) {
    ptx_tcgen05_fence_before();
    if (CTAS == 1) {
        __syncthreads();
    } else {
        ptx_cluster_arrive();
        ptx_cluster_wait();
    }
    ptx_tcgen05_fence_after();
}

/* A tile is computed by one thread block, or by a pair of thread blocks whose first block is the
 * leader. Every block has the same barriers at the same offsets of its shared memory. `barrier` is
 * a barrier of this block. Returns the address of the same barrier in the leader's shared memory.
 * If a single block computes a tile, this is the address of `barrier` itself. */
static __device__ __forceinline__ uint32_t leaders(const uint64_t *barrier) {
    const uint32_t own = ptx_shared_address(barrier);
    return CTAS == 1 ? own : ptx_mapa(own, leader_rank());
}

/* Arrives at a barrier of the leader, i.e. of the first thread block of this thread block's group.
 * A group is one thread block or a pair. Threads of the group that wait for the barrier then see
 * what this thread wrote. */
static __device__ __forceinline__ void group_arrive(const uint64_t *barrier) {
    if (CTAS == 1)
        ptx_mbarrier_arrive(ptx_shared_address(barrier));
    else
        ptx_mbarrier_arrive_release_cluster(leaders(barrier));
}

/* Loads a tile to this thread block's shared memory by TMA. The barrier at address `barrier` counts
 * the bytes. The barrier belongs to this thread block or to the first thread block of its pair. */
static __device__ __forceinline__ void group_load(uint32_t to, const void *map, uint32_t x,
                                                  uint32_t y, uint32_t barrier) {
    if (CTAS == 1)
        ptx_tma_load(to, map, (int32_t)x, (int32_t)y, barrier);
    else
        ptx_tma_load_pair(to, map, (int32_t)x, (int32_t)y, barrier);
}

/* When all earlier products and copies of this thread have completed, the barrier in each thread
 * block of the group gets one arrival. */
static __device__ __forceinline__ void group_commit(const uint64_t *barrier) {
    if (CTAS == 1)
        ptx_tcgen05_commit(ptx_shared_address(barrier));
    else
        ptx_tcgen05_pair_commit(ptx_shared_address(barrier), (uint16_t)(BOTH << leader_rank()));
}

/* Copies a scale tile (the scales of 128 rows by 4 scale blocks along K) from shared memory to four
 * columns of tensor memory, the first of which is column `to`. `from` is the matrix descriptor of
 * the scale tile in shared memory. If a pair of thread blocks computes the tile, each of them
 * copies its own scale tile. */
static __device__ __forceinline__ void group_copy_scales(uint32_t to, uint64_t from) {
    if (CTAS == 1)
        ptx_tcgen05_copy_32x128b(to, from);
    else
        ptx_tcgen05_pair_copy_32x128b(to, from);
}

/* Issues one tcgen05.mma. `a_scales` and `b_scales` are unused without block scales. */
static __device__ __forceinline__ void group_multiply(uint32_t d, uint64_t a, uint64_t b,
                                                      uint32_t form, uint32_t a_scales,
                                                      uint32_t b_scales, uint32_t adds) {
#if SCALED_BLOCK
    if (CTAS == 1)
        PTX_TCGEN05_MMA_SCALED(SCALED_KIND, d, a, b, form, a_scales, b_scales, adds);
    else
        PTX_TCGEN05_PAIR_MMA_SCALED(SCALED_KIND, d, a, b, form, a_scales, b_scales, adds);
#else
    (void)a_scales, (void)b_scales;
    if (CTAS == 1)
        PTX_TCGEN05_MMA(SCALED_KIND, d, a, b, form, adds);
    else
        PTX_TCGEN05_PAIR_MMA(SCALED_KIND, d, a, b, form, adds);
#endif
}
