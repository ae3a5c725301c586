/* These functions wrap PTX instructions for TMA (the Tensor Memory Accelerator, which copies tiles
 * between global and shared memory; PTX ISA 8.7, section 9.7.9.27). Each function is one
 * instruction. Coordinates are in elements, and the first one is along the contiguous dimension.
 * TMA reads elements outside the tensor as 0 and does not write them. */
#ifndef BSMM_CUDA_PTX_TMA_H
#define BSMM_CUDA_PTX_TMA_H

#include <stdint.h>

/* PTX ISA 9.7.9.28.2 "prefetch.tensormap": prefetches a tensor map, the 128-byte descriptor of a
 * tensor. */
static __device__ __forceinline__ void ptx_tma_prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* PTX ISA 9.7.9.27.1.2 "cp.async.bulk.tensor": loads a tile from global to shared memory. The
 * mbarrier counts the tile's bytes. */
static __device__ __forceinline__ void ptx_tma_load(uint32_t to, const void *map, int32_t x,
                                                    int32_t y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

/* PTX ISA 9.7.9.27.1.2 "cp.async.bulk.tensor" with multicast: loads a tile to the same address in
 * the shared memory of every thread block of the cluster whose bit in `mask` is set. The mbarrier
 * at the same address in each of these blocks counts the bytes that arrive there. */
static __device__ __forceinline__ void ptx_tma_load_multicast(uint32_t to, const void *map,
                                                              int32_t x, int32_t y,
                                                              uint32_t barrier, uint16_t mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
                 : "memory");
}

/* PTX ISA 9.7.9.27.1.2 "cp.async.bulk.tensor": stores a tile from shared to global memory. The
 * store belongs to this thread's open bulk group, which ptx_tma_commit closes. */
static __device__ __forceinline__ void ptx_tma_store(const void *map, uint32_t from, int32_t x,
                                                     int32_t y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(x), "r"(y), "r"(from)
        : "memory");
}

/* PTX ISA 9.7.9.25.4.1 "cp.async.bulk.commit_group": closes this thread's open bulk group of
 * stores. */
static __device__ __forceinline__ void ptx_tma_commit(void) {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* PTX ISA 9.7.9.25.4.2 "cp.async.bulk.wait_group.read": waits until TMA has read the shared memory
 * of all but the `pending` most recent bulk groups. This shared memory may then be overwritten.
 * `pending` is a literal. */
#define PTX_TMA_WAIT_READ(pending)                                                                 \
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory")

/* PTX ISA 9.7.9.25.4.2 "cp.async.bulk.wait_group": waits until all but the `pending` most recent
 * bulk groups have completed and their writes are visible to this thread. */
#define PTX_TMA_WAIT(pending) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory")

#endif
