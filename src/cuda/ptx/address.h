/* These functions wrap PTX instructions for shared-memory addresses, clusters, barriers, elections
 * and register counts. Each function is one instruction. Comments name the instruction's section of
 * PTX ISA 8.7. */
#ifndef BSMM_CUDA_PTX_ADDRESS_H
#define BSMM_CUDA_PTX_ADDRESS_H

#include <stdint.h>

/* PTX ISA "cvta": converts a generic pointer into shared memory to a 32-bit address in the shared
 * window, the address space of shared memory. */
static __device__ __forceinline__ uint32_t ptx_shared_address(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* PTX ISA "mapa": converts an address in this thread block's shared memory to the address of the
 * same offset in the shared memory of thread block `rank` of the cluster. */
static __device__ __forceinline__ uint32_t ptx_mapa(uint32_t address, uint32_t rank) {
    uint32_t mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

/* PTX ISA "barrier.cluster.arrive": arrives at the cluster's barrier. All threads of the cluster
 * must execute it. Writes before the arrival are visible to threads after they have waited at the
 * barrier. */
static __device__ __forceinline__ void ptx_cluster_arrive(void) {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/* PTX ISA "barrier.cluster.wait": waits until all threads of the cluster have arrived. */
static __device__ __forceinline__ void ptx_cluster_wait(void) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* PTX ISA 9.7.13.1 "bar.sync": waits at named barrier `id` (1 to 15) until `threads` threads have
 * arrived. */
static __device__ __forceinline__ void ptx_barrier_sync(uint32_t id, uint32_t threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* PTX ISA 9.7.13.14 "elect.sync": returns true in exactly one thread of a full warp. */
static __device__ __forceinline__ uint32_t ptx_elect(void) {
    uint32_t elected;
    asm volatile("{ .reg .pred p;\n\t"
                 "elect.sync _|p, 0xffffffff;\n\t"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(elected));
    return elected;
}

/* PTX ISA 9.7.19.5 "setmaxnreg": changes the number of registers per thread of this warpgroup to
 * `count`, a literal that is a multiple of 8. */
#define PTX_REGISTERS_MORE(count)                                                                  \
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((int)(count)))
#define PTX_REGISTERS_LESS(count)                                                                  \
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"((int)(count)))

/* PTX ISA "fence.proxy.async": makes this thread's ordinary writes to shared memory visible to TMA,
 * wgmma and tcgen05. Without the fence, TMA, wgmma and tcgen05 may read old data. */
static __device__ __forceinline__ void ptx_fence_proxy_async(void) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
