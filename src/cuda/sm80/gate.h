/* A gate decides on the device if a queued kernel does its work. The host queues several
 * alternative kernels without waiting for the packing kernels. Each of them reads from the headers
 * of the packed operands whether it is the one that must run, and exits if it is not. */
#ifndef BSMM_CUDA_SM80_GATE_H
#define BSMM_CUDA_SM80_GATE_H

#include "gpu/pack.h"

typedef struct bsmm_cuda_gate {
    /* The headers of the packed operands. One is NULL if that operand is multiplied as it is
     * stored. */
    const bsmm_pack_header *a, *b;
    uint32_t log2_k;
    /* The slack that bsmm_pack_pair_plain allows when it tests whether bf16 holds the values. */
    uint32_t slack;
    /* The condition under which the kernel runs, a value of the enum bsmm_cuda_when. */
    uint32_t when;
    const uint32_t *only; /* If `only` is not NULL, the gate is closed while it points to 0. */
    /* If `closed` is not NULL, the kernel writes 1 there when its gate is closed. */
    uint32_t *closed;
} bsmm_cuda_gate;

typedef enum bsmm_cuda_when {
    BSMM_WHEN_ALWAYS = 0,
    /* The gate is open if packed elements times group scales are exactly the values. */
    BSMM_WHEN_FITS = 1,
    BSMM_WHEN_PLAIN = 2, /* The gate is open if BSMM_WHEN_FITS holds and all group scales are 1. */
    /* The gate is open if BSMM_WHEN_FITS does not hold, but bf16 holds the values. The previous
     * kernel has then packed them to bf16. */
    BSMM_WHEN_ELSE_PLAIN = 3
} bsmm_cuda_when;

#if defined(__CUDACC__)
#    include "cuda/ptx/grid.h"

/* Waits for the previous kernel. With programmatic launch (bsmm_cuda_launch_desc.overlap) a kernel
 * may start while the previous one still runs. It must call this before it accesses memory that the
 * previous kernel writes or still reads. */
static __device__ __forceinline__ void bsmm_cuda_await_kernel_before(void) {
#    if __CUDA_ARCH__ >= 900
    ptx_grid_wait();
#    endif
}

/* Allows the next kernel to start, if it was launched with overlap. */
static __device__ __forceinline__ void bsmm_cuda_admit_next_kernel(void) {
#    if __CUDA_ARCH__ >= 900
    ptx_grid_release_next();
#    endif
}

/* Reads a header through L2, where the packing kernel's atomic maxima are. */
static __device__ __forceinline__ bsmm_pack_header
bsmm_cuda_gate_header(const bsmm_pack_header *from) {
    uint4 seen = __ldcg((const uint4 *)from);
    bsmm_pack_header h = {seen.x, seen.y, seen.z, seen.w, {0}};
    return h;
}

/* Returns true if bf16 holds the values of both operands without group scales. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_plain(const bsmm_cuda_gate *gate) {
    return bsmm_pack_pair_plain(gate->a, gate->b, gate->slack, gate->log2_k);
}

/* Returns true if the gate BSMM_WHEN_ELSE_PLAIN is open. The headers must be complete. */
static __device__ __forceinline__ bool bsmm_cuda_gate_else_plain(const bsmm_cuda_gate *gate) {
    return !bsmm_pack_pair_fits(gate->a, gate->b, gate->log2_k) && bsmm_cuda_gate_is_plain(gate);
}

/* Waits for the previous kernel and returns true if the gate is open. All threads call it before
 * the kernel accesses memory. */
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

/* Waits for the previous kernel and returns true if the gate is open. Each thread calls it once. If
 * the headers close the gate, it also records that in gate->closed. */
static __device__ __forceinline__ bool bsmm_cuda_gate_pass(const bsmm_cuda_gate *gate) {
    bsmm_cuda_await_kernel_before();
    if (gate->only && !*gate->only) return false;
    bool open = bsmm_cuda_gate_is_open(gate);
    if (!open && gate->closed && blockIdx.x == 0 && threadIdx.x == 0) *gate->closed = 1;
    return open;
}

/* Returns true if a kernel with the gate BSMM_WHEN_ELSE_PLAIN has nothing to do. It is the first
 * statement of the kernel.
 *
 * It reads the headers before it waits for the previous kernel. That is safe: the packing kernels
 * ran before the previous kernel, which waited for them before it allowed this kernel to start. All
 * blocks except the first exit at once. The first block waits, so that this kernel does not end
 * before the previous one, and kernels that follow may rely on the results of both. */
static __device__ __forceinline__ bool bsmm_cuda_gate_skips(const bsmm_cuda_gate *gate) {
    if (gate->when != BSMM_WHEN_ELSE_PLAIN) return false;
    const bsmm_pack_header a = bsmm_cuda_gate_header(gate->a);
    const bsmm_pack_header b = bsmm_cuda_gate_header(gate->b);
    if (!bsmm_pack_pair_fits(&a, &b, gate->log2_k)) return false;
    if (blockIdx.x == 0) bsmm_cuda_await_kernel_before();
    return true;
}

/* Returns true if each row of both operands has one scale for all of K. The gate must be open. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_even(const bsmm_cuda_gate *gate) {
    return gate->a && gate->b && !((gate->a->flags | gate->b->flags) & BSMM_PACK_UNEVEN);
}
#endif

#endif
