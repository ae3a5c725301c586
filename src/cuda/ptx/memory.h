/* These functions wrap PTX instructions for loads and stores with a memory order or a shape that C
 * cannot express (PTX ISA 8.7). */
#ifndef BSMM_CUDA_PTX_MEMORY_H
#define BSMM_CUDA_PTX_MEMORY_H

#include <stdint.h>

/* PTX ISA 9.7.9.8 "ld.acquire.gpu": loads with acquire semantics. If the value was stored by
 * ptx_store_release, this thread then also sees the writes before that store. */
static __device__ __forceinline__ uint64_t ptx_load_acquire(const uint64_t *from) {
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

/* PTX ISA 9.7.9.11 "st.release.gpu": stores with release semantics. A thread that loads the value
 * by ptx_load_acquire then also sees this thread's earlier writes. */
static __device__ __forceinline__ void ptx_store_release(uint64_t *to, uint64_t value) {
    asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/* PTX ISA 9.7.14.5.16 "stmatrix": stores four 8 x 8 matrices of 16-bit elements. Lane 8 i + r
 * provides the address of row r of matrix i. */
static __device__ __forceinline__ void ptx_stmatrix_x4(uint32_t to, uint32_t a, uint32_t b,
                                                       uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/* PTX ISA 9.7.9.8 "ld.shared": loads a float from shared memory at a 32-bit address. */
static __device__ __forceinline__ float ptx_load_shared_f32(uint32_t from) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
    return value;
}

/* PTX ISA 9.7.9.8 "ld.shared": loads two floats from an address that is aligned to 8 bytes. The
 * compiler may move the load across other memory accesses, because the assembly does not declare
 * that it reads memory. No thread may therefore write the two floats meanwhile. */
static __device__ __forceinline__ void ptx_load_shared_f32x2(uint32_t from, float to[2]) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from));
}

/* PTX ISA 9.7.9.11 "st.shared": stores a float in shared memory at a 32-bit address. */
static __device__ __forceinline__ void ptx_store_shared_f32(uint32_t to, float value) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

/* PTX ISA 9.7.9.11 "st.shared": stores the low 16 bits of a word in shared memory. */
static __device__ __forceinline__ void ptx_store_shared_b16(uint32_t to, uint32_t value) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"((uint16_t)value) : "memory");
}

/* PTX ISA 9.7.9.12 "st.async": stores a float in the shared memory of any thread block of the
 * cluster. The mbarrier at address `barrier` in that thread block counts the 4 bytes. */
static __device__ __forceinline__ void ptx_store_async_f32(uint32_t to, float value,
                                                           uint32_t barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(to),
        "f"(value), "r"(barrier)
        : "memory");
}

#endif
