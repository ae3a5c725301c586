/* The kernel cuda_sm100f_wide multiplies elements of 16 bits on Blackwell's tensor cores
 * (sm100f/scaled_body.h), by tcgen05.mma of kind f16. A and B may be any pair of MXFP8, MXFP6,
 * MXFP4, NVFP4, 8-bit floats without scales, bf16, f16 and fp32. wide_operands.h says how they
 * become elements of 16 bits.
 *
 * Accumulators that may be wrong are computed again in double, one by one. */
#include "cuda/host/scaled_tiles.h"
#include "cuda/host/wide_operands.h"
#include "gpu/params.h"

static const bsmm_scaled_kernel *const kernels = bsmm_scaled_kernels[BSMM_SCALED_WIDE];

static const bsmm_scaled_tile tiles[] = {{2, 256}, {2, 192}, {2, 128}, {1, 256},
                                         {1, 192}, {1, 128}, {1, 64}};

typedef struct wide_state {
    bsmm_wide_operands
        operands; /* BSMM_WIDE_KERNEL requires that `operands` is the first member. */
    bsmm_scaled_deal deal;
    bsmm_cuda_ready_map d;
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
} wide_state;

BSMM_CHECK_STATE(wide_state);

static const char *refuse_scales(const bsmm_product *p, char *why, size_t size) {
    for (int i = 0; i < 2; i++)
        if (bsmm_cuda_side(p, i)->m.format.scale == BSMM_SCALE_F32)
            return bsmm_gpu_refuse_format(bsmm_cuda_side(p, i), "AB"[i],
                                          "the kernel takes no f32 scales", why, size);
    return NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    wide_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &kernels[0].function, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = refuse_scales(p, why, size);
    if (!reason) reason = bsmm_wide_begin(p, &s->operands, why, size);
    if (reason) return reason;
    s->deal = bsmm_scaled_tile_choose(p, tiles, BSMM_COUNT(tiles), 0);
    return s->deal.tile ? NULL : bsmm_scaled_tile_refuse(p, why, size);
}

/* The error bound assumes that one tcgen05.mma of kind f16 adds as one wgmma does on Hopper
 * (docs/NUMERICS.md). It adds 16 exact products and the accumulator, and truncates each of these 17
 * terms at worst 23 bits below the largest one. */
static double bound(const bsmm_product *p, const void *state) {
    const int64_t pairs = bsmm_wide_pairs(&((const wide_state *)state)->operands);
    return bsmm_wgmma_bound(BSMM_WGMMA_BF16, BSMM_ELEM_BF16, p->a.m.cols * pairs);
}

static void set_params(const bsmm_product *p, wide_state *s) {
    const uint32_t a_rows = BSMM_SCALED_TILE_M, b_rows = s->deal.tile->cols / s->deal.tile->ctas;
    bsmm_scaled_params *params = &s->params;
    bsmm_scaled_tile_set(p, &s->deal, params);
    params->epilogue = bsmm_gpu_epilogue_of(p);
    params->store = bsmm_scaled_store_of(p);
    params->k = (uint32_t)p->a.m.cols;
    params->a_parts = s->operands.sources[0].form.parts;
    params->b_parts = s->operands.sources[1].form.parts;
    params->k_blocks =
        (uint32_t)(bsmm_ceil_div(p->a.m.cols, BSMM_PACK_PART_COLS) * bsmm_wide_pairs(&s->operands));
    params->element_bytes = (a_rows + b_rows) * BSMM_SCALED_ROW_BYTES;
    params->form = bsmm_wide_form_of(&s->operands, s->deal.tile->ctas * BSMM_SCALED_TILE_M,
                                     s->deal.tile->cols);
}

static bsmm_status make_in_context(const bsmm_product *p, wide_state *s) {
    set_params(p, s);
    bsmm_scaled_result_map(p, s->params.store, &s->d);
    BSMM_TRY(bsmm_wide_make(p, BSMM_SCALED_TILE_M, s->deal.tile->cols / s->deal.tile->ctas,
                            &s->operands));
    return bsmm_scaled_tile_make(p, &s->deal, kernels, &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

static bsmm_status run_in_context(const bsmm_product *p, const wide_state *s, void *workspace) {
    bsmm_scaled_params params = s->params;
    BSMM_TRY(bsmm_wide_bind(p, &s->operands, workspace, &params));
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    if (params.store != BSMM_SCALED_STORE_ANY)
        BSMM_TRY(bsmm_cuda_ready_map_at(p->device, &s->d, p->d.m.data, &params.d));
    BSMM_TRY(bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params)));
    return bsmm_wide_run_otherwise(p, &s->operands, params.refused);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

const bsmm_kernel bsmm_kernel_cuda_sm100f_wide = {
    BSMM_WIDE_KERNEL,
    .name = "cuda_sm100f_wide",
    .state_bytes = sizeof(wide_state),
    .refuse = refuse,
    .bound = bound,
    .make = make,
    .run = run,
};
