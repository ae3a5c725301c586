/* TMA, the Tensor Memory Accelerator, one instruction per function (PTX ISA 8.7, section 9.7.9.27).
 * Coordinates are in elements, the contiguous one first. Elements outside the tensor are read as 0
 * and are not written. */
#ifndef BSMM_CUDA_PTX_TMA_H
#define BSMM_CUDA_PTX_TMA_H

#include <stdint.h>

/* PTX ISA 9.7.9.28.2 prefetch.tensormap: prefetches a tensor map. */
static __device__ __forceinline__ void ptx_tma_prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* 9.7.9.27.1.2 cp.async.bulk.tensor, global to shared: loads a tile. `barrier` counts its bytes. */
static __device__ __forceinline__ void ptx_tma_load(uint32_t to, const void *map, int32_t x,
                                                    int32_t y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

/* 9.7.9.27.1.2 cp.async.bulk.tensor, multicast: loads a tile to the same address in every block of
 * the cluster whose bit of `mask` is set. The barrier at the same address in each of these blocks
 * counts its bytes. */
static __device__ __forceinline__ void ptx_tma_load_multicast(uint32_t to, const void *map,
                                                              int32_t x, int32_t y,
                                                              uint32_t barrier, uint16_t mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask)
                 : "memory");
}

/* 9.7.9.27.1.2 cp.async.bulk.tensor, shared to global: stores a tile, as part of this thread's open
 * bulk group. */
static __device__ __forceinline__ void ptx_tma_store(const void *map, uint32_t from, int32_t x,
                                                     int32_t y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(x), "r"(y), "r"(from)
        : "memory");
}

/* 9.7.9.25.4.1 cp.async.bulk.commit_group: closes the open bulk group. */
static __device__ __forceinline__ void ptx_tma_commit(void) {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* 9.7.9.25.4.2 cp.async.bulk.wait_group.read: waits until all but the `pending` most recent groups
 * have read their shared memory. `pending` is a literal. */
#define PTX_TMA_WAIT_READ(pending)                                                                 \
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory")

/* 9.7.9.25.4.2 cp.async.bulk.wait_group: waits until all but the `pending` most recent groups have
 * completed and their writes are visible to this thread. */
#define PTX_TMA_WAIT(pending) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory")

#endif
