/* Which of several kernels that are queued one after another does the work, decided on the device
 * from what packing found out about the operands. */
#ifndef BSMM_CUDA_SM80_GATE_H
#define BSMM_CUDA_SM80_GATE_H

#include "gpu/pack.h"

typedef struct bsmm_cuda_gate {
    const bsmm_pack_header *a, *b; /* NULL: an operand that is multiplied as it is stored */
    uint32_t log2_k;
    uint32_t slack;       /* of bsmm_pack_pair_plain */
    uint32_t when;        /* bsmm_cuda_when */
    const uint32_t *only; /* not NULL: closed where 0 is there */
    uint32_t *closed;     /* not NULL: 1 is written there if the gate is closed */
} bsmm_cuda_gate;

typedef enum bsmm_cuda_when {
    BSMM_WHEN_ALWAYS = 0,
    BSMM_WHEN_FITS = 1,  /* packed elements and their scales are the values */
    BSMM_WHEN_PLAIN = 2, /* and all scales are 1 */
    /* FITS does not hold, but bf16 holds the values, which the kernel before has then packed. */
    BSMM_WHEN_ELSE_PLAIN = 3
} bsmm_cuda_when;

#if defined(__CUDACC__)
#    include "cuda/ptx/grid.h"

/* Kernels may be placed while the one before them still runs (bsmm_cuda_launch_desc.overlap): what
 * that one has written, or still reads, they touch behind this. */
static __device__ __forceinline__ void bsmm_cuda_await_kernel_before(void) {
#    if __CUDA_ARCH__ >= 900
    ptx_grid_wait();
#    endif
}

/* The kernel that follows may be placed from now on. */
static __device__ __forceinline__ void bsmm_cuda_admit_next_kernel(void) {
#    if __CUDA_ARCH__ >= 900
    ptx_grid_release_next();
#    endif
}

/* As the level-2 cache has it, where the kernel that made it has told its maxima. */
static __device__ __forceinline__ bsmm_pack_header
bsmm_cuda_gate_header(const bsmm_pack_header *from) {
    uint4 seen = __ldcg((const uint4 *)from);
    bsmm_pack_header h = {seen.x, seen.y, seen.z, seen.w, {0}};
    return h;
}

/* Whether bf16 holds the values of both operands as they are. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_plain(const bsmm_cuda_gate *gate) {
    return bsmm_pack_pair_plain(gate->a, gate->b, gate->slack, gate->log2_k);
}

/* Once the headers can be seen. */
static __device__ __forceinline__ bool bsmm_cuda_gate_else_plain(const bsmm_cuda_gate *gate) {
    return !bsmm_pack_pair_fits(gate->a, gate->b, gate->log2_k) && bsmm_cuda_gate_is_plain(gate);
}

/* Before a kernel touches memory, by all of its threads. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_open(const bsmm_cuda_gate *gate) {
    bsmm_cuda_await_kernel_before();
    if (gate->only && !*gate->only) return false;
    if (gate->when == BSMM_WHEN_ALWAYS) return true;
    if (gate->when == BSMM_WHEN_ELSE_PLAIN) return bsmm_cuda_gate_else_plain(gate);
    uint32_t flags = (gate->a ? gate->a->flags : 0) | (gate->b ? gate->b->flags : 0);
    bool fits = gate->a && gate->b ? bsmm_pack_pair_fits(gate->a, gate->b, gate->log2_k)
                                   : !(flags & BSMM_PACK_WIDE);
    return fits && (gate->when == BSMM_WHEN_FITS || !(flags & BSMM_PACK_SCALED));
}

/* The same, for each thread of a kernel once; a gate that is closed by itself says so. */
static __device__ __forceinline__ bool bsmm_cuda_gate_pass(const bsmm_cuda_gate *gate) {
    bsmm_cuda_await_kernel_before();
    if (gate->only && !*gate->only) return false;
    bool open = bsmm_cuda_gate_is_open(gate);
    if (!open && gate->closed && blockIdx.x == 0 && threadIdx.x == 0) *gate->closed = 1;
    return open;
}

/* ELSE_PLAIN, first thing in a kernel: whether it has nothing to do. The headers are seen before
 * the wait: they are of a kernel before the one before, which that one waited for before it let
 * this one be placed. All blocks but the first end at once; that one waits, so that this kernel
 * does not end before the one before it, and what follows both may take their work as done. */
static __device__ __forceinline__ bool bsmm_cuda_gate_skips(const bsmm_cuda_gate *gate) {
    if (gate->when != BSMM_WHEN_ELSE_PLAIN) return false;
    const bsmm_pack_header a = bsmm_cuda_gate_header(gate->a);
    const bsmm_pack_header b = bsmm_cuda_gate_header(gate->b);
    if (!bsmm_pack_pair_fits(&a, &b, gate->log2_k)) return false;
    if (blockIdx.x == 0) bsmm_cuda_await_kernel_before();
    return true;
}

/* Behind an open gate: whether no row's scale changes along K, in either operand. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_even(const bsmm_cuda_gate *gate) {
    return gate->a && gate->b && !((gate->a->flags | gate->b->flags) & BSMM_PACK_UNEVEN);
}
#endif

#endif
