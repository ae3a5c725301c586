/* These functions wrap asynchronous copies from device memory to shared memory that bypass the
 * registers (PTX ISA 9.7.9 "Data Movement and Conversion Instructions"). */
#ifndef BSMM_CUDA_PTX_STREAM_H
#define BSMM_CUDA_PTX_STREAM_H

#include <stdint.h>

/* PTX ISA 9.7.9.25.3.1 "cp.async": copies 16 bytes from global to shared memory through L1. It is
 * for warps whose threads write to scattered destinations. */
static __device__ __forceinline__ void ptx_copy16_any(uint32_t to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* PTX ISA 9.7.9.25.3.1 "cp.async": copies 16 bytes, which are needed only once, from global to
 * shared memory, and prefetches 128 bytes into L2. The copy reads only the first `bytes` of the 16
 * bytes, and writes zeros in place of the others. */
static __device__ __forceinline__ void ptx_copy16_once(uint32_t to, const void *from,
                                                       uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
}

/* Copies 8 bytes as ptx_copy16_once copies 16 bytes, but through L1, because cp.async can bypass L1
 * only with 16 bytes. */
static __device__ __forceinline__ void ptx_copy8_once(uint32_t to, const void *from,
                                                      uint32_t bytes) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(to), "l"(from),
                 "r"(bytes)
                 : "memory");
}

/* PTX ISA 9.7.9.25.3.2 "cp.async.commit_group": makes a group of all cp.async copies that this
 * thread has started since its last call of this function. */
static __device__ __forceinline__ void ptx_copy_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* PTX ISA 9.7.9.25.3.3 "cp.async.wait_group": waits until all but the `groups` most recent groups
 * of this thread's copies have completed. */
#define ptx_copy_wait(groups)                                                                      \
    asm volatile("cp.async.wait_group %0;" ::"n"((int)(groups)) : "memory")

#endif
