/* Loads from memory to LDS past the registers, and waits: one instruction per function, with what
 * the hardware asks for around it. The compiler does not see these loads: bsmm_isa_wait_barrier
 * alone makes their bytes visible, and without it the simulator stops at the first read. */
#ifndef BSMM_AMDGPU_ISA_MEMORY_H
#define BSMM_AMDGPU_ISA_MEMORY_H

#include "amdgpu/cdna/kernel.h"

/* The address space of pointers into LDS, and of an extern array whose size the launch gives. */
#define BSMM_IN_LDS __attribute__((address_space(3)))

typedef int32_t bsmm_i32x4 __attribute__((vector_size(16)));

/* Bytes [from, from + bytes) as a raw buffer: what is loaded from beyond it is 0. */
BSMM_DEVICE bsmm_i32x4 bsmm_isa_buffer(const void *from, uint64_t bytes) {
    const uint64_t address = (uint64_t)from;
    const uint32_t most = bytes > 0xffffffffu ? 0xffffffffu : (uint32_t)bytes;
    return (bsmm_i32x4){__builtin_amdgcn_readfirstlane((int32_t)address),
                        __builtin_amdgcn_readfirstlane((int32_t)(address >> 32) & 0xffff),
                        __builtin_amdgcn_readfirstlane((int32_t)most), 0x00020000};
}

/* Lane l copies its bytes at `lane_offset + offset` of the buffer to lds + l * bytes. M0 names the
 * place in LDS and needs a wait state before it is used. `bytes` is a constant: 4; on gfx950 also
 * 12 and 16. */
BSMM_DEVICE void bsmm_isa_load_to_lds(bsmm_i32x4 buffer, uint32_t lds, uint32_t lane_offset,
                                      uint32_t offset, uint32_t bytes) {
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

/* All that this wave has loaded and stored is there, then all waves of the group are here. */
BSMM_DEVICE void bsmm_isa_wait_barrier(void) {
    __asm__ volatile("s_waitcnt vmcnt(0) lgkmcnt(0)\n\ts_barrier" : : : "memory");
}

/* The next `count` instructions of a kind go here, in the order of the calls: constants. */
#define BSMM_ISA_SCHEDULE(kind, count) __builtin_amdgcn_sched_group_barrier(kind, count, 0)
enum { BSMM_SCHEDULE_MFMA = 8, BSMM_SCHEDULE_LDS_READ = 0x100 };

#endif
