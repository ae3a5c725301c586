/* The kernel cuda_sm100f_wide_groups multiplies operands of which one or both have fp32 scales,
 * e.g. bf16 by fp8_block128, on Blackwell's tensor cores (sm100f/scaled_body.h). Each fp32 scale
 * must cover a multiple of 128 elements of K, or a whole row.
 *
 * Before the GEMM, A and B are packed to elements of 16 bits (wide_operands.h), because the kernel
 * uses tcgen05.mma of kind f16. Packing does not apply the fp32 scales. Instead, the kernel
 * multiplies the sums of each 128 elements of K by them. */
#include "cuda/host/group_sums.h"
#include "cuda/host/wide_operands.h"
#include "gpu/params.h"

static const bsmm_scaled_kernel *const kernels = bsmm_scaled_kernels[BSMM_SCALED_WIDE_GROUPS];

typedef struct groups_state {
    bsmm_wide_operands
        operands; /* BSMM_WIDE_KERNEL requires that `operands` is the first member. */
    bsmm_group_sums sums;
} groups_state;

BSMM_CHECK_STATE(groups_state);

static const char *refuse_scales(const bsmm_product *p, char *why, size_t size) {
    bool any = false;
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        if (o->m.format.scale != BSMM_SCALE_F32) continue;
        if (!bsmm_cuda_has_groups(o))
            return bsmm_gpu_refuse_format(
                o, "AB"[i], "the kernel takes f32 scales of multiples of 128 columns", why, size);
        any = true;
    }
    return any ? NULL
               : bsmm_gpu_refuse_formats(p, "the kernel takes f32 scales of A or B", why, size);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    groups_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &kernels[0].function, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = refuse_scales(p, why, size);
    if (!reason) reason = bsmm_wide_begin(p, &s->operands, why, size);
    return reason ? reason : bsmm_group_sums_begin(p, &s->sums, why, size);
}

/* The error bound assumes that one tcgen05.mma of kind f16 truncates each term at worst 23 bits
 * below the largest term, as the bound of cuda_sm100f_wide does. Instructions of 16 elements sum
 * each 128 elements of K. An fp32 FMA multiplies each of these sums by a rounded product of scales
 * and adds it to the sum over all of K. */
static double bound(const bsmm_product *p, const void *state) {
    const int64_t pairs = bsmm_wide_pairs(&((const groups_state *)state)->operands);
    return bsmm_wgmma_bound(BSMM_WGMMA_BF16, BSMM_ELEM_BF16, BSMM_SCALED_GROUP_K * pairs) +
           ((double)p->a.m.cols / BSMM_SCALED_GROUP_K + 4) * 0x1p-24;
}

static bsmm_status make_in_context(const bsmm_product *p, groups_state *s) {
    const uint32_t b_rows = bsmm_group_sums_b_rows(&s->sums);
    bsmm_scaled_params *params = &s->sums.params;
    BSMM_TRY(bsmm_group_sums_make(p, BSMM_PACK_PART_COLS, bsmm_wide_pairs(&s->operands), kernels,
                                  &s->sums));
    params->a_parts = s->operands.sources[0].form.parts;
    params->b_parts = s->operands.sources[1].form.parts;
    params->form = bsmm_wide_form_of(&s->operands, s->sums.deal.tile->ctas * BSMM_SCALED_TILE_M,
                                     s->sums.deal.tile->cols);
    return bsmm_wide_make(p, BSMM_SCALED_TILE_M, b_rows, &s->operands);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

static bsmm_status run_in_context(const bsmm_product *p, const groups_state *s, void *workspace) {
    bsmm_scaled_params params = s->sums.params;
    BSMM_TRY(bsmm_wide_bind(p, &s->operands, workspace, &params));
    BSMM_TRY(bsmm_group_sums_run(p, &s->sums, &params));
    return bsmm_wide_run_otherwise(p, &s->operands, params.refused);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

const bsmm_kernel bsmm_kernel_cuda_sm100f_wide_groups = {
    BSMM_WIDE_KERNEL,
    .name = "cuda_sm100f_wide_groups",
    .state_bytes = sizeof(groups_state),
    .refuse = refuse,
    .bound = bound,
    .make = make,
    .run = run,
};
