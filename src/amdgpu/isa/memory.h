/* These functions wrap the instructions that load from memory directly to LDS and that wait for
 * such loads. Each function holds one instruction and the settings that the hardware requires for
 * it. The compiler does not know that these loads write LDS, so it inserts no wait. Code may read
 * the data only after bsmm_isa_wait_barrier. The simulator reports an error at a read without this
 * wait. */
#ifndef BSMM_AMDGPU_ISA_MEMORY_H
#define BSMM_AMDGPU_ISA_MEMORY_H

#include "amdgpu/cdna/kernel.h"

/* Places a variable, or the target of a pointer, in LDS. An extern array in LDS has the size that
 * the launch sets. */
#define BSMM_IN_LDS __attribute__((address_space(3)))

typedef int32_t bsmm_i32x4 __attribute__((vector_size(16)));

/* Returns a buffer descriptor for `bytes` bytes at `from`. Loads beyond the buffer return 0. */
BSMM_DEVICE bsmm_i32x4 bsmm_isa_buffer(const void *from, uint64_t bytes) {
    const uint64_t address = (uint64_t)from;
    const uint32_t most = bytes > 0xffffffffu ? 0xffffffffu : (uint32_t)bytes;
    return (bsmm_i32x4){__builtin_amdgcn_readfirstlane((int32_t)address),
                        __builtin_amdgcn_readfirstlane((int32_t)(address >> 32) & 0xffff),
                        __builtin_amdgcn_readfirstlane((int32_t)most), 0x00020000};
}

/* Loads `bytes` bytes for each lane from the buffer and writes them directly to LDS. A lane loads
 * from the offset lane_offset + offset. The bytes of lane l go to lds + l * bytes. If `bytes` is 1,
 * each byte becomes a 32-bit word instead, at lds + 4 * l. `bytes` is a compile-time constant: 1,
 * 4, or on gfx950 also 12 or 16. The register M0 holds the LDS address, and hardware requires one
 * wait state (s_nop) before the load uses it. */
BSMM_DEVICE void bsmm_isa_load_to_lds(bsmm_i32x4 buffer, uint32_t lds, uint32_t lane_offset,
                                      uint32_t offset, uint32_t bytes) {
    if (bytes == 1)
        __asm__ volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_ubyte %1, %2, %3 offen lds"
                         :
                         : "s"(lds), "v"(lane_offset), "s"(buffer), "s"(offset)
                         : "memory");
    if (bytes == 4)
        __asm__ volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dword %1, %2, %3 offen lds"
                         :
                         : "s"(lds), "v"(lane_offset), "s"(buffer), "s"(offset)
                         : "memory");
#if defined(__gfx950__)
    if (bytes == 12)
        __asm__ volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dwordx3 %1, %2, %3 offen lds"
                         :
                         : "s"(lds), "v"(lane_offset), "s"(buffer), "s"(offset)
                         : "memory");
    if (bytes == 16)
        __asm__ volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dwordx4 %1, %2, %3 offen lds"
                         :
                         : "s"(lds), "v"(lane_offset), "s"(buffer), "s"(offset)
                         : "memory");
#endif
}

#if defined(__gfx950__)
/* Loads like bsmm_isa_load_to_lds, but adds the constant `more` to the LDS address and
 * `more_offset` to the offset. Both additions are part of the inline assembly, so that the compiler
 * does not move them ahead of other code. After the first addition has written M0, one wait state
 * must pass before the load. The second addition fills it. */
BSMM_DEVICE void bsmm_isa_load_to_lds_near(bsmm_i32x4 buffer, uint32_t lds, uint32_t more,
                                           uint32_t lane_offset, uint32_t offset,
                                           uint32_t more_offset, uint32_t bytes) {
    uint32_t sum;
    if (bytes == 12)
        __asm__ volatile("s_add_u32 m0, %1, %2\n\ts_add_u32 %0, %3, %4\n\t"
                         "buffer_load_dwordx3 %5, %6, %0 offen lds"
                         : "=&s"(sum)
                         : "s"(lds), "i"(more), "s"(offset), "s"(more_offset), "v"(lane_offset),
                           "s"(buffer)
                         : "memory", "scc");
    if (bytes == 16)
        __asm__ volatile("s_add_u32 m0, %1, %2\n\ts_add_u32 %0, %3, %4\n\t"
                         "buffer_load_dwordx4 %5, %6, %0 offen lds"
                         : "=&s"(sum)
                         : "s"(lds), "i"(more), "s"(offset), "s"(more_offset), "v"(lane_offset),
                           "s"(buffer)
                         : "memory", "scc");
}
#endif

#if defined(__gfx950__)
/* Loads 16 bytes per lane like bsmm_isa_load_to_lds if `skip` is 0. Otherwise no lane loads. The
 * function has no branch: it makes no lane active during the load. All lanes must be active before
 * the call. */
BSMM_DEVICE void bsmm_isa_load_to_lds_unless(uint32_t skip, bsmm_i32x4 buffer, uint32_t lds,
                                             uint32_t lane_offset, uint32_t offset) {
    __asm__ volatile("s_cmp_eq_u32 %4, 0\n\ts_mov_b32 m0, %0\n\ts_cselect_b64 exec, -1, 0\n\t"
                     "buffer_load_dwordx4 %1, %2, %3 offen lds\n\ts_mov_b64 exec, -1"
                     :
                     : "s"(lds), "v"(lane_offset), "s"(buffer), "s"(offset), "s"(skip)
                     : "memory", "scc");
}
#endif

#if defined(__gfx950__)
/* Each lane stores 16 bytes `x` at `to`, and 16 bytes `y` after them, unless `any` is 0. The
 * function has no branch: if `any` is 0, it makes no lane active during the stores. All lanes must
 * be active before the call. After a store, two wait states must pass before an instruction may
 * overwrite the stored registers. */
BSMM_DEVICE void bsmm_isa_store_if(uint32_t any, uint64_t to, bsmm_i32x4 x, bsmm_i32x4 y) {
    __asm__ volatile("s_cmp_lg_u32 %0, 0\n\ts_cselect_b64 exec, -1, 0\n\t"
                     "global_store_dwordx4 %1, %2, off\n\t"
                     "global_store_dwordx4 %1, %3, off offset:16\n\ts_mov_b64 exec, -1\n\ts_nop 0"
                     :
                     : "s"(any), "v"(to), "v"(x), "v"(y)
                     : "memory", "scc");
}
#endif

/* Prefetches cache lines to L2. Each lane loads one 32-bit word of a cache line to the register
 * v254 or, if `odd` is true, v255, and nothing uses the word. The load may overwrite the register
 * long after this function has returned, which the compiler does not know. A kernel that calls this
 * function must therefore have the attribute amdgpu_num_vgpr(126), which keeps the compiler from
 * using more than 252 vector registers of its own. `word` makes the compiler count all 256
 * registers in the kernel's descriptor, so that the GPU allocates v254 and v255.
 * tools/check-amdgpu-loops.py checks both. The next prefetch to the same register may start only
 * when this load has finished. The simulator reports every other use of a register while a load to
 * it is pending. */
BSMM_DEVICE void bsmm_isa_touch(bsmm_i32x4 buffer, uint32_t lane_offset, uint32_t offset,
                                bool odd) {
    if (odd) {
        register uint32_t word __asm__("v255");
        __asm__ volatile("buffer_load_dword %0, %1, %2, %3 offen"
                         : "=v"(word)
                         : "v"(lane_offset), "s"(buffer), "s"(offset));
    } else {
        register uint32_t word __asm__("v254");
        __asm__ volatile("buffer_load_dword %0, %1, %2, %3 offen"
                         : "=v"(word)
                         : "v"(lane_offset), "s"(buffer), "s"(offset));
    }
}

/* Forces the compiler to compute `value` at this place in the code, although the value is used only
 * later. Without this macro, the compiler may compute it later. The compiler does not move this
 * macro past loads to LDS or past waits. */
#define bsmm_isa_stay(value) __asm__ volatile("" : "+v"(value))

/* Waits until at most `pending` of this wave's loads and stores of memory are unfinished. `pending`
 * is a compile-time constant. */
BSMM_DEVICE void bsmm_isa_wait_loads(uint32_t pending) {
    __asm__ volatile("s_waitcnt vmcnt(%0)" : : "i"(pending) : "memory");
}

/* Waits until this wave's accesses to LDS have finished, and then until all waves of the workgroup
 * have reached this point. The function does not wait for loads from memory to LDS. */
BSMM_DEVICE void bsmm_isa_barrier(void) {
    __asm__ volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" : : : "memory");
}

/* Waits until all loads and stores of this wave have finished, and then until all waves of the
 * workgroup have reached this point. */
BSMM_DEVICE void bsmm_isa_wait_barrier(void) {
    __asm__ volatile("s_waitcnt vmcnt(0) lgkmcnt(0)\n\ts_barrier" : : : "memory");
}

#endif
