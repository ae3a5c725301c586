/* The three kernels of the sm_90a engine are one, with other operands: what they share. */
#ifndef BSMM_CUDA_HOST_WGMMA_KERNEL_H
#define BSMM_CUDA_HOST_WGMMA_KERNEL_H

#include "cuda/host/generic.h"
#include "cuda/host/wgmma_operands.h"

/* What a kernel does with a product that it takes. */
typedef struct bsmm_wgmma_plan bsmm_wgmma_plan;
struct bsmm_wgmma_plan {
    bsmm_wgmma_kind kind;
    bsmm_pack_route routes[2]; /* of A and B */
    uint32_t elems[2];         /* that the tensor cores see */
    bsmm_cuda_when when;       /* the engine works; ALWAYS: whatever the packed operands are */
    /* Where FITS does not hold but bf16 the values: the engine's blocks pack what this one, queued
     * behind it, multiplies; or they make the product by the generic kernel's code. NULL: the
     * generic kernel is queued behind it. */
    const bsmm_wgmma_plan *otherwise;
    uint32_t slack; /* with otherwise: of bsmm_pack_pair_plain */
};

/* Exact in bf16, or else the generic kernel. */
extern const bsmm_wgmma_plan bsmm_wgmma_plan_bf16;

/* One queue of packing and engine. */
typedef struct bsmm_wgmma_attempt {
    const bsmm_wgmma_tile *tile;
    bsmm_wgmma_source a, b;
    bsmm_wgmma_engine engine;
    uint64_t bytes; /* of workspace: A, B (unless it is packed ahead), the engine's own */
} bsmm_wgmma_attempt;

/* The state of these kernels. */
typedef struct bsmm_wgmma_state {
    bsmm_wgmma_plan plan;
    bsmm_wgmma_attempt first, second; /* second: of plan.otherwise, where there is one */
    bsmm_wgmma_packer a, b;           /* of the first */
    bsmm_cuda_ready clear;
    bsmm_cuda_generic generic; /* where it is queued behind the first */
    uint32_t log2_k;
} bsmm_wgmma_state;

/* As in bsmm_kernel; a kernel's refuse ends in the first, with its plan. */
const char *bsmm_wgmma_refuse(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                              bsmm_wgmma_state *state, char *why, size_t size);
uint64_t bsmm_wgmma_workspace_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_wgmma_make_state(const bsmm_product *p, void *state);
bsmm_status bsmm_wgmma_run_state(const bsmm_product *p, const void *state, void *workspace);
uint64_t bsmm_wgmma_packed_b_bytes(const bsmm_product *p, const void *state);
bsmm_status bsmm_wgmma_pack_b(const bsmm_product *p, const void *state, void *packed);

/* The members of a bsmm_kernel that they have in common. */
#define BSMM_WGMMA_KERNEL                                                                          \
    .device = "cuda", .state_bytes = sizeof(bsmm_wgmma_state),                                     \
    .workspace_bytes = bsmm_wgmma_workspace_bytes, .make = bsmm_wgmma_make_state,                  \
    .run = bsmm_wgmma_run_state, .packed_b_bytes = bsmm_wgmma_packed_b_bytes,                      \
    .pack_b = bsmm_wgmma_pack_b, .alignment = 16

#endif
