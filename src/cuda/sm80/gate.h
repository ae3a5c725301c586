/* A gate is a condition that a queued kernel tests on the device before it does its work. The host
 * queues several alternative kernels without waiting for the packing kernels. Each of these kernels
 * reads the headers of the packed operands and decides from them whether it must run. If it must,
 * its gate is called open. If not, its gate is closed, and the kernel exits. */
#ifndef BSMM_CUDA_SM80_GATE_H
#define BSMM_CUDA_SM80_GATE_H

#include "gpu/pack.h"

typedef struct bsmm_cuda_gate {
    /* `a` and `b` are the headers of the packed operands. A pointer is NULL if the GEMM kernel
     * reads that operand as the caller stores it, without packing. */
    const bsmm_pack_header *a, *b;
    uint32_t log2_k;
    union {
        /* Only kernels of the kind POW2 with BSMM_WHEN_ELSE_PLAIN use `slack`. They pass it to
         * bsmm_pack_pair_plain, which tests whether bf16 can hold all values that the block scales
         * of A and B allow. The test starts from the values that A and B have. `slack` is the
         * number of binades by which a value that a block scale allows may be larger than all
         * values of its block. */
        uint32_t slack;
        /* Only kernels that run under the condition BSMM_WHEN_HALF or BSMM_WHEN_ELSE_PARTS use
         * `shift`. Packing has multiplied the values of B by 2^shift, if f16 can hold these
         * products. */
        uint32_t shift;
    };
    /* `when` is the condition under which the kernel runs (its gate is open), a value of the enum
     * bsmm_cuda_when. */
    uint32_t when;
    /* If `only` is not NULL, it points to a word in device memory, and the kernel does not run (its
     * gate is closed) while this word is 0. */
    const uint32_t *only;
    /* If `closed` is not NULL, the kernel writes 1 to this address when it finds its gate closed,
     * i.e. when it does not run. */
    uint32_t *closed;
} bsmm_cuda_gate;

typedef enum bsmm_cuda_when {
    BSMM_WHEN_ALWAYS = 0,
    /* BSMM_WHEN_FITS: the kernel runs (its gate is open) if the packed elements times their group
     * scales are exactly the values of A and B. A group is 128 elements of a row. */
    BSMM_WHEN_FITS = 1,
    BSMM_WHEN_PLAIN = 2, /* BSMM_WHEN_PLAIN: the kernel runs (its gate is open) if BSMM_WHEN_FITS
                          * holds and all group scales are 1. */
    /* BSMM_WHEN_ELSE_PLAIN: the kernel runs (its gate is open) if the packed operands do not have
     * exactly the values of A and B (BSMM_WHEN_FITS does not hold), but bf16 can hold these values.
     * The previous kernel has then packed A and B to bf16. */
    BSMM_WHEN_ELSE_PLAIN = 3,
    /* BSMM_WHEN_HALF: the kernel runs (its gate is open) if f16 holds the values of B, so that
     * packing has converted them to f16. Only kernels for f16 have this condition. */
    BSMM_WHEN_HALF = 4,
    /* BSMM_WHEN_ELSE_PARTS: the kernel runs (its gate is open) if two conditions hold. f16 does not
     * hold the values of B, so the kernel with BSMM_WHEN_HALF has not computed the product. And
     * bf16 elements without group scales do hold them (BSMM_WHEN_PLAIN). The kernel with
     * BSMM_WHEN_HALF has then split A into two bf16 parts, which this kernel multiplies by B in
     * bf16. */
    BSMM_WHEN_ELSE_PARTS = 5
} bsmm_cuda_when;

#if defined(__CUDACC__)
#    include "cuda/ptx/grid.h"

/* Waits until the stream's previous kernel has ended. With programmatic launch
 * (bsmm_cuda_launch_desc.overlap) a kernel may start while the previous kernel still runs. Such a
 * kernel must call this function before it reads memory that the previous kernel writes, and before
 * it writes memory that the previous kernel reads or writes. */
static __device__ __forceinline__ void bsmm_cuda_await_kernel_before(void) {
#    if __CUDA_ARCH__ >= 900
    ptx_grid_wait();
#    endif
}

/* Allows the stream's next kernel to start now, if the host launched that kernel with overlap. */
static __device__ __forceinline__ void bsmm_cuda_admit_next_kernel(void) {
#    if __CUDA_ARCH__ >= 900
    ptx_grid_release_next();
#    endif
}

/* Reads the header of a packed operand from L2, because the packing kernels update the header there
 * by atomic maxima. */
static __device__ __forceinline__ bsmm_pack_header
bsmm_cuda_gate_header(const bsmm_pack_header *from) {
    uint4 seen = __ldcg((const uint4 *)from);
    bsmm_pack_header h = {seen.x, seen.y, seen.z, seen.w, {0}};
    return h;
}

/* Returns true if bf16 holds all values of A and of B, i.e. their elements times their scales. The
 * operands can then be packed to bf16 without group scales (fp32 scales of 128 elements of a row).
 */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_plain(const bsmm_cuda_gate *gate) {
    return bsmm_pack_pair_plain(gate->a, gate->b, gate->slack, gate->log2_k);
}

/* Returns true if a kernel with the condition BSMM_WHEN_ELSE_PLAIN must run. It must run if packing
 * to 8 bits could not keep all values of A and B, but bf16 can hold them. The function reads this
 * from the headers of the packed operands, which the packing kernels must have completed. */
static __device__ __forceinline__ bool bsmm_cuda_gate_else_plain(const bsmm_cuda_gate *gate) {
    return !bsmm_pack_pair_fits(gate->a, gate->b, gate->log2_k) && bsmm_cuda_gate_is_plain(gate);
}

/* A gate is the condition under which a kernel does its work. Waits until the stream's previous
 * kernel has ended, and returns true if the gate is open, i.e. if the condition holds. All threads
 * call this function before the kernel accesses memory. */
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

/* A gate is the condition under which a kernel does its work. Waits until the stream's previous
 * kernel has ended, and returns true if the gate is open, i.e. if this kernel must do its work.
 * Each thread calls this function once. If the headers of the packed operands close the gate, one
 * thread also records that in *gate->closed. */
static __device__ __forceinline__ bool bsmm_cuda_gate_pass(const bsmm_cuda_gate *gate) {
    bsmm_cuda_await_kernel_before();
    if (gate->only && !*gate->only) return false;
    bool open = bsmm_cuda_gate_is_open(gate);
    if (!open && gate->closed && blockIdx.x == 0 && threadIdx.x == 0) *gate->closed = 1;
    return open;
}

/* Returns true if this kernel is a fallback with the condition BSMM_WHEN_ELSE_PLAIN or
 * BSMM_WHEN_ELSE_PARTS, and it has nothing to do, because an earlier kernel can multiply the packed
 * operands. A kernel calls this function first.
 *
 * The function reads the headers before it waits for the previous kernel. This is safe: the packing
 * kernels ran before the previous kernel, and the previous kernel waited for them before it allowed
 * this kernel to start. All thread blocks except the first exit at once. The first thread block
 * waits for the previous kernel. This kernel therefore never ends before the previous one, and
 * later kernels may rely on the results of both. */
static __device__ __forceinline__ bool bsmm_cuda_gate_skips(const bsmm_cuda_gate *gate) {
    if (gate->when != BSMM_WHEN_ELSE_PLAIN && gate->when != BSMM_WHEN_ELSE_PARTS) return false;
    const bsmm_pack_header b = bsmm_cuda_gate_header(gate->b);
    if (gate->when == BSMM_WHEN_ELSE_PARTS) {
        if (!bsmm_pack_is_half(&b, gate->shift)) return false;
    } else {
        const bsmm_pack_header a = bsmm_cuda_gate_header(gate->a);
        if (!bsmm_pack_pair_fits(&a, &b, gate->log2_k)) return false;
    }
    if (blockIdx.x == 0) bsmm_cuda_await_kernel_before();
    return true;
}

/* Returns true if each row of packed A and of packed B has one scale for all of K. The gate must be
 * open, i.e. this kernel must be the one that computes the product. */
static __device__ __forceinline__ bool bsmm_cuda_gate_is_even(const bsmm_cuda_gate *gate) {
    return gate->a && gate->b && !((gate->a->flags | gate->b->flags) & BSMM_PACK_UNEVEN);
}
#endif

#endif
