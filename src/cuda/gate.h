/* Which of several kernels that are queued one after another does the work, decided on the device
 * from what packing found out about the operands. */
#ifndef BSMM_CUDA_GATE_H
#define BSMM_CUDA_GATE_H

#include "cuda/pack.h"

typedef struct bsmm_cuda_gate {
    const bsmm_pack_header *a, *b; /* NULL: an operand that is multiplied as it is stored */
    uint32_t log2_k;
    uint32_t when;        /* bsmm_cuda_when */
    const uint32_t *only; /* not NULL: closed where 0 is there */
    uint32_t *closed;     /* not NULL: 1 is written there if the gate is closed */
} bsmm_cuda_gate;

typedef enum bsmm_cuda_when {
    BSMM_WHEN_ALWAYS = 0,
    BSMM_WHEN_FITS = 1, /* packed elements and their scales are the values */
    BSMM_WHEN_PLAIN = 2 /* and all scales are 1 */
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

/* Before a kernel touches memory, by all of its threads. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_open(const bsmm_cuda_gate *gate) {
    bsmm_cuda_await_kernel_before();
    if (gate->only && !*gate->only) return false;
    if (gate->when == BSMM_WHEN_ALWAYS) return true;
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

/* Behind an open gate: whether no row's scale changes along K, in either operand. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_even(const bsmm_cuda_gate *gate) {
    return gate->a && gate->b && !((gate->a->flags | gate->b->flags) & BSMM_PACK_UNEVEN);
}
#endif

#endif
