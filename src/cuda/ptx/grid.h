/* These functions wrap PTX instructions for programmatic dependent launch (a kernel starts while
 * the stream's previous kernel still runs), and for the thread blocks of a cluster. The
 * instructions require sm_90. */
#ifndef BSMM_CUDA_PTX_GRID_H
#define BSMM_CUDA_PTX_GRID_H

#include <stdint.h>

/* PTX ISA 9.7.13.13 "griddepcontrol": waits until all earlier kernels of the stream have ended and
 * their writes are visible. */
static __device__ __forceinline__ void ptx_grid_wait(void) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* PTX ISA 9.7.13.13 "griddepcontrol": allows the stream's next kernel to start. */
static __device__ __forceinline__ void ptx_grid_release_next(void) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* PTX ISA "mapa": converts an address in this thread block's shared memory to the address of the
 * same offset in the shared memory of thread block `rank` of the cluster. */
static __device__ __forceinline__ uint32_t ptx_grid_mapa(uint32_t address, uint32_t rank) {
    uint32_t d;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(address), "r"(rank));
    return d;
}

/* `pointer` is a generic pointer to this thread block's shared memory. Returns a generic pointer to
 * the same offset in the shared memory of thread block `rank` of the cluster. Ordinary loads can
 * use this result directly, unlike the result of ptx_grid_mapa. */
static __device__ __forceinline__ const void *ptx_grid_map(const void *pointer, uint32_t rank) {
    const void *d;
    asm("mapa.u64 %0, %1, %2;" : "=l"(d) : "l"(pointer), "r"(rank));
    return d;
}

/* PTX ISA 9.7.9.8 "ld": loads a word from the shared memory of any thread block of the cluster. */
static __device__ __forceinline__ uint32_t ptx_grid_load_u32(uint32_t address) {
    uint32_t d;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(d) : "r"(address));
    return d;
}

/* PTX ISA 9.7.9.8 "ld": loads four floats from the shared memory of any thread block of the
 * cluster.
 */
static __device__ __forceinline__ float4 ptx_grid_load_f32x4(uint32_t address) {
    float4 d;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)
                 : "r"(address));
    return d;
}

/* PTX ISA 10 "Special Registers": returns %cluster_ctarank, the thread block's rank in its
 * cluster. */
static __device__ __forceinline__ uint32_t ptx_grid_cluster_rank(void) {
    uint32_t d;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(d));
    return d;
}

/* PTX ISA "barrier.cluster": arrives at the cluster's barrier. Writes before the arrival are
 * visible to threads after they have waited at the barrier. */
static __device__ __forceinline__ void ptx_grid_cluster_arrive(void) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}

/* PTX ISA "barrier.cluster": arrives at the cluster's barrier without making earlier writes
 * visible. */
static __device__ __forceinline__ void ptx_grid_cluster_arrive_relaxed(void) {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/* PTX ISA "barrier.cluster": waits until all threads of the cluster have arrived. This thread then
 * sees what they wrote before their arrivals. */
static __device__ __forceinline__ void ptx_grid_cluster_wait(void) {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

#endif
