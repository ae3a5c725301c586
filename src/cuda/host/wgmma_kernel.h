/* The common part of the three kernels that run the sm_90a GEMM. They differ only in how they
 * prepare operands. */
#ifndef BSMM_CUDA_HOST_WGMMA_KERNEL_H
#define BSMM_CUDA_HOST_WGMMA_KERNEL_H

#include "cuda/host/generic.h"
#include "cuda/host/wgmma_operands.h"

/* Says how one of the sm_90a kernels computes a GEMM: the formats it packs to, and its fallback. */
typedef struct bsmm_wgmma_plan bsmm_wgmma_plan;
struct bsmm_wgmma_plan {
    bsmm_wgmma_kind kind;
    bsmm_pack_route routes[2]; /* the formats that A and B are packed to */
    uint32_t elems[2];         /* the element types that the tensor cores multiply, for A and B */
    /* The condition under which the kernel's result is valid. BSMM_WHEN_ALWAYS: it is valid for any
     * values. */
    bsmm_cuda_when when;
    /* The fallback plan if FITS does not hold, but bf16 holds the values. The GEMM kernel's thread
     * blocks then pack both operands to bf16, and this plan's GEMM kernel, which is queued next,
     * multiplies them. If bf16 does not hold the values either, the blocks run the generic GEMM's
     * code. NULL: the generic GEMM is queued next instead. */
    const bsmm_wgmma_plan *otherwise;
    /* The slack that bsmm_pack_pair_plain allows when it tests whether bf16 holds the values. It is
     * used with `otherwise` only. */
    uint32_t slack;
};

/* The plan for operands that are exact in bf16. Its fallback is the generic GEMM. */
extern const bsmm_wgmma_plan bsmm_wgmma_plan_bf16;

/* The choices and sizes of one packing and one launch of the GEMM kernel. */
typedef struct bsmm_wgmma_attempt {
    const bsmm_wgmma_tile *tile;
    bsmm_wgmma_source a, b;
    bsmm_wgmma_engine engine;
    /* the bytes of workspace for A, for B (unless it was packed in advance) and for the kernel */
    uint64_t bytes;
} bsmm_wgmma_attempt;

/* The state of the kernels that run the sm_90a GEMM. */
typedef struct bsmm_wgmma_state {
    bsmm_wgmma_plan plan;
    /* The attempt `second` runs plan.otherwise. It is unused if that is NULL. */
    bsmm_wgmma_attempt first, second;
    bsmm_wgmma_packer a, b; /* the packing kernels of A and B in the first attempt */
    bsmm_cuda_ready clear;
    /* The generic GEMM, if it is queued after the first attempt as the fallback. */
    bsmm_cuda_generic generic;
    uint32_t log2_k;
} bsmm_wgmma_state;

/* These functions implement the members of bsmm_kernel. A kernel's own refuse calls
 * bsmm_wgmma_refuse last, with its plan. */
const char *bsmm_wgmma_refuse(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                              bsmm_wgmma_state *state, char *why, size_t size);
uint64_t bsmm_wgmma_workspace_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_wgmma_make_state(const bsmm_product *p, void *state);
bsmm_status bsmm_wgmma_run_state(const bsmm_product *p, const void *state, void *workspace);
uint64_t bsmm_wgmma_packed_b_bytes(const bsmm_product *p, const void *state);
void bsmm_wgmma_name_panels(const bsmm_product *p, const void *state, char *name, size_t size);
bsmm_status bsmm_wgmma_pack_b(const bsmm_product *p, const void *state, void *packed);

/* The members of bsmm_kernel that these kernels have in common. */
#define BSMM_WGMMA_KERNEL                                                                          \
    .device = "cuda", .state_bytes = sizeof(bsmm_wgmma_state),                                     \
    .workspace_bytes = bsmm_wgmma_workspace_bytes, .make = bsmm_wgmma_make_state,                  \
    .run = bsmm_wgmma_run_state, .packed_b_bytes = bsmm_wgmma_packed_b_bytes,                      \
    .name_panels = bsmm_wgmma_name_panels, .pack_b = bsmm_wgmma_pack_b, .alignment = 16

#endif
