/* The three kernels of the sm_90a engine are one, with other operands: what they share. */
#ifndef BSMM_CUDA_HOST_WGMMA_KERNEL_H
#define BSMM_CUDA_HOST_WGMMA_KERNEL_H

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

/* As in bsmm_kernel, for a product that the kernel takes. */
const char *bsmm_wgmma_plan_refuse(const bsmm_product *p, const bsmm_wgmma_plan *plan, char *why,
                                   size_t size);
uint64_t bsmm_wgmma_plan_workspace_bytes(const bsmm_product *p, const bsmm_wgmma_plan *plan);
bsmm_status bsmm_wgmma_plan_prepare(const bsmm_product *p, const bsmm_wgmma_plan *plan);
bsmm_status bsmm_wgmma_plan_run(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                void *workspace);
uint64_t bsmm_wgmma_plan_packed_b_bytes(const bsmm_product *p, const bsmm_wgmma_plan *plan);
bsmm_status bsmm_wgmma_plan_pack_b(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                   void *packed);

#endif
