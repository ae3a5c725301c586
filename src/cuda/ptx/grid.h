/* The instructions for programmatic launch of dependent grids, and for the thread blocks of a
 * cluster. They require sm_90. */
#ifndef BSMM_CUDA_PTX_GRID_H
#define BSMM_CUDA_PTX_GRID_H

#include <stdint.h>

/* PTX ISA 9.7.13.13 "griddepcontrol": waits until all earlier grids have ended and their writes are
 * visible. */
static __device__ __forceinline__ void ptx_grid_wait(void) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* PTX ISA 9.7.13.13 "griddepcontrol": allows the next grid to start. */
static __device__ __forceinline__ void ptx_grid_release_next(void) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* PTX ISA 9.7.9.24 "mapa": returns the corresponding address in another block's shared memory. */
static __device__ __forceinline__ uint32_t ptx_grid_mapa(uint32_t address, uint32_t rank) {
    uint32_t d;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(address), "r"(rank));
    return d;
}

/* Maps a generic pointer like ptx_grid_mapa. Loads through it need not convert the address each
 * time. */
static __device__ __forceinline__ const void *ptx_grid_map(const void *pointer, uint32_t rank) {
    const void *d;
    asm("mapa.u64 %0, %1, %2;" : "=l"(d) : "l"(pointer), "r"(rank));
    return d;
}

/* PTX ISA 9.7.9.8 "ld": loads from the shared memory of any block of the cluster. */
static __device__ __forceinline__ uint32_t ptx_grid_load_u32(uint32_t address) {
    uint32_t d;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(d) : "r"(address));
    return d;
}

/* PTX ISA 10 "Special Registers": returns %cluster_ctarank, the block's rank in its cluster. */
static __device__ __forceinline__ uint32_t ptx_grid_cluster_rank(void) {
    uint32_t d;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(d));
    return d;
}

/* PTX ISA 9.7.13.4 "barrier.cluster": arrives with release semantics, so earlier writes become
 * visible. */
static __device__ __forceinline__ void ptx_grid_cluster_arrive(void) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}

/* PTX ISA 9.7.13.4 "barrier.cluster": arrives without making earlier writes visible. */
static __device__ __forceinline__ void ptx_grid_cluster_arrive_relaxed(void) {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/* PTX ISA 9.7.13.4 "barrier.cluster": waits with acquire semantics. */
static __device__ __forceinline__ void ptx_grid_cluster_wait(void) {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

#endif
