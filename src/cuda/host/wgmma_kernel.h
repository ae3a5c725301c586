/* The kernels cuda_sm90a_fp8, cuda_sm90a_fold, cuda_sm90a_bf16 and cuda_sm90a_f16 share this host
 * code. All of them run a GEMM kernel of sm90a/gemm_body.h and differ only in how they prepare
 * operands. */
#ifndef BSMM_CUDA_HOST_WGMMA_KERNEL_H
#define BSMM_CUDA_HOST_WGMMA_KERNEL_H

#include "cuda/host/generic.h"
#include "cuda/host/wgmma_operands.h"

/* Tells how cuda_sm90a_fp8 or a related kernel computes a GEMM: the formats to which it packs A and
 * B, and its fallback. */
typedef struct bsmm_wgmma_plan bsmm_wgmma_plan;
struct bsmm_wgmma_plan {
    bsmm_wgmma_kind kind;
    /* `routes` names the formats to which A and B are packed (gpu/pack.h). */
    bsmm_pack_route routes[2];
    /* `elems` names the element types of A and B that the tensor cores multiply. */
    uint32_t elems[2];
    /* `by_rows` is true if the fp32 scales of the operands cover whole rows, and the GEMM kernel
     * multiplies the sums over all of K by them. It is used only with BSMM_WGMMA_BF16, and with
     * BSMM_WGMMA_BLOCK if both operands are e4m3. */
    bool by_rows;
    /* The GEMM kernel's result may be invalid for some values of A and B. `when` is the condition
     * on the values in the packed operands under which the result is valid (sm80/gate.h).
     * BSMM_WHEN_ALWAYS means that the result is valid for any values. */
    bsmm_cuda_when when;
    /* `otherwise` is the fallback plan, which multiplies bf16. Its GEMM kernel is queued after this
     * plan's GEMM kernel in every run, and does nothing if this plan's result is valid. The result
     * is not valid if the packed format of this plan does not hold the values of A and B. What
     * happens then depends on `when`.
     *
     * If `when` is BSMM_WHEN_HALF, this plan multiplies f16, and f16 does not hold the values of B.
     * The fallback plan then multiplies B in bf16 by two bf16 parts of A. The generic GEMM is
     * queued as the third kernel, for values that bf16 does not hold.
     *
     * Otherwise, the thread blocks of this plan's GEMM kernel pack A and B to bf16, and the
     * fallback plan's kernel multiplies the packed operands. If bf16 does not hold the values
     * either, these thread blocks run the code of the generic GEMM instead of packing.
     *
     * If `otherwise` is NULL, the generic GEMM is the only fallback. */
    const bsmm_wgmma_plan *otherwise;
    /* `slack` is for the test whether bf16 holds the values of A and B (bsmm_pack_pair_plain). If
     * packing to 8 bits rounds, the header of a packed operand states only how large its values
     * are, and not how large its block scales are. The largest element of a block may then lie up
     * to `slack` binades below the largest value that the block's scale allows. If packing is
     * exact, `slack` is 0. It matters only if `otherwise` is not NULL. */
    uint32_t slack;
    /* `shift` is the exponent of the power of two by which packing multiplies the values of B. It
     * is used only if the GEMM kernel multiplies f16. */
    uint32_t shift;
};

/* bsmm_wgmma_plan_bf16 is the plan for operands whose values bf16 holds exactly. Its fallback is
 * the generic GEMM. */
extern const bsmm_wgmma_plan bsmm_wgmma_plan_bf16;

/* Describes one attempt to compute the GEMM, i.e. one launch of a GEMM kernel and of the packing
 * kernels before it. The struct has the tile shape, the sources of A and B, and the size of the
 * attempt's memory. */
typedef struct bsmm_wgmma_attempt {
    const bsmm_wgmma_tile *tile;
    bsmm_wgmma_source a, b;
    bsmm_wgmma_engine engine;
    /* `bytes` is the size of the workspace for A, for B (unless it was packed in advance) and for
     * the GEMM kernel. */
    uint64_t bytes;
} bsmm_wgmma_attempt;

/* Holds the state of a plan for one of the kernels that run the wgmma GEMM: cuda_sm90a_fp8,
 * cuda_sm90a_fold, cuda_sm90a_bf16 and cuda_sm90a_f16. */
typedef struct bsmm_wgmma_state {
    bsmm_wgmma_plan plan;
    /* `first` runs the plan. `second` runs the fallback plan.otherwise and is unused if
     * plan.otherwise is NULL. */
    bsmm_wgmma_attempt first, second;
    bsmm_wgmma_packer a, b; /* `a` and `b` are the packing kernels of A and B in `first`. */
    bsmm_cuda_ready clear;
    /* `generic` is the generic GEMM, the last fallback. It is queued after the other GEMM kernels,
     * and computes D if they have found on the device that their result would not be exact enough.
     * In two cases it is not queued: if the result of `first` is always exact enough, or if the
     * GEMM kernel of `first` runs the code of the generic GEMM itself. */
    bsmm_cuda_generic generic;
    uint32_t log2_k;
} bsmm_wgmma_state;

/* These functions implement the members of bsmm_kernel for cuda_sm90a_fp8 and the related kernels.
 * Each of these kernels has its own `refuse`, which ends with a call of bsmm_wgmma_refuse and
 * passes the kernel's plan. */
const char *bsmm_wgmma_refuse(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                              bsmm_wgmma_state *state, char *why, size_t size);
uint64_t bsmm_wgmma_workspace_bytes(const bsmm_product *p, const void *state);
uint32_t bsmm_wgmma_k_parts(const bsmm_product *p, const void *state);
bsmm_status bsmm_wgmma_make_state(const bsmm_product *p, void *state);
bsmm_status bsmm_wgmma_run_state(const bsmm_product *p, const void *state, void *workspace);
uint64_t bsmm_wgmma_packed_b_bytes(const bsmm_product *p, const void *state);
void bsmm_wgmma_name_panels(const bsmm_product *p, const void *state, char *name, size_t size);
bsmm_status bsmm_wgmma_pack_b(const bsmm_product *p, const void *state, void *packed);

/* BSMM_WGMMA_KERNEL sets the members of bsmm_kernel that cuda_sm90a_fp8 and the related kernels
 * have in common. */
#define BSMM_WGMMA_KERNEL                                                                          \
    .device = "cuda", .state_bytes = sizeof(bsmm_wgmma_state),                                     \
    .workspace_bytes = bsmm_wgmma_workspace_bytes, .k_parts = bsmm_wgmma_k_parts,                  \
    .make = bsmm_wgmma_make_state, .run = bsmm_wgmma_run_state,                                    \
    .packed_b_bytes = bsmm_wgmma_packed_b_bytes, .name_panels = bsmm_wgmma_name_panels,            \
    .pack_b = bsmm_wgmma_pack_b, .alignment = 16

#endif
