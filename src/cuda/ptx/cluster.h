/* These functions wrap PTX instructions for clusters of thread blocks (PTX ISA, "Special Registers"
 * and "Parallel Synchronization and Communication"). */
#ifndef BSMM_CUDA_PTX_CLUSTER_H
#define BSMM_CUDA_PTX_CLUSTER_H

#include <stdint.h>

/* Returns the thread block's rank in its cluster: %cluster_ctarank (PTX ISA, "Special
 * Registers"). */
static __device__ __forceinline__ uint32_t ptx_cluster_rank(void) {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Returns the number of this thread block's cluster in the grid: %clusterid. In a grid without
 * clusters, each thread block is a cluster. */
static __device__ __forceinline__ uint32_t ptx_cluster_id(void) {
    uint32_t id;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
    return id;
}

/* Returns the number of clusters of the grid: %nclusterid. */
static __device__ __forceinline__ uint32_t ptx_cluster_count(void) {
    uint32_t count;
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
    return count;
}

#endif
