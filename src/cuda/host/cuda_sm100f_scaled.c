/* The kernel cuda_sm100f_scaled computes block-scaled products on Blackwell's tensor cores, which
 * multiply elements and block scales as they are stored (sm100f/scaled_body.h). scaled_formats.h
 * lists the formats that the kernel takes.
 *
 * The tensor cores read scales in the layout nv_128x4. If A or B has scales in another layout, each
 * run first copies the scales to the workspace in the layout nv_128x4. If the distance between rows
 * of elements is no multiple of 16 bytes, TMA cannot read the rows, and each run first copies the
 * rows to the workspace. */
#include "cuda/host/scaled_kernels.h"
#include "cuda/host/scaled_operands.h"
#include "cuda/host/scaled_tiles.h"
#include "gpu/params.h"

static const bsmm_scaled_tile tiles[] = {{2, 256}, {2, 192}, {2, 128}, {2, 64},
                                         {1, 192}, {1, 128}, {1, 64}};

typedef struct scaled_state {
    bsmm_scaled_deal deal;
    bsmm_scaled_operands operands;
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
    bsmm_cuda_ready_map d;
} scaled_state;

BSMM_CHECK_STATE(scaled_state);

/* Returns the number of k blocks of a tile. A k block is the part of K that one stage holds. A
 * stage has x->scale_tiles scale tiles along K, and a scale tile has 4 scales along K. */
static int64_t k_blocks_of(const bsmm_product *p, const scaled_state *s) {
    const bsmm_scaled_format *x = &bsmm_scaled_formats[s->operands.kind];
    return bsmm_ceil_div(p->a.m.cols, (int64_t)4 * x->scale_tiles * x->block);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    scaled_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &bsmm_scaled_kernels[0][0].function, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = bsmm_scaled_operands_begin(p, &s->operands, why, size);
    if (reason) return reason;
    s->deal = bsmm_scaled_tile_choose(p, tiles, BSMM_COUNT(tiles), k_blocks_of(p, s));
    return s->deal.tile ? NULL : bsmm_scaled_tile_refuse(p, why, size);
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const scaled_state *s = state;
    (void)p;
    return bsmm_cuda_room_bytes(bsmm_scaled_operands_bytes(&s->operands));
}

static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return bsmm_scaled_bound(p);
}

static uint32_t k_parts(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const scaled_state *)state)->deal.parts;
}

static bsmm_status make_in_context(const bsmm_product *p, scaled_state *s) {
    const uint32_t a_rows = BSMM_SCALED_TILE_M, b_rows = s->deal.tile->cols / s->deal.tile->ctas;
    bsmm_scaled_tile_set(p, &s->deal, &s->params);
    bsmm_scaled_params_set(p, &s->operands, a_rows, b_rows, &s->params);
    s->params.form = bsmm_scaled_form_of(
        &s->operands, &p->a, &p->b, s->deal.tile->ctas * BSMM_SCALED_TILE_M, s->deal.tile->cols);
    bsmm_scaled_result_map(p, s->params.store, &s->d);
    BSMM_TRY(bsmm_scaled_operands_make(p, a_rows, b_rows, &s->operands));
    return bsmm_scaled_tile_make(p, &s->deal, bsmm_scaled_kernels[s->operands.kind], &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

static bsmm_status run_in_context(const bsmm_product *p, const scaled_state *s, void *workspace) {
    bsmm_scaled_params params = s->params;
    const bsmm_scaled_slot slots[2] = {{&params.sides[0], &params.a, &params.scales[0]},
                                       {&params.sides[1], &params.b, &params.scales[1]}};
    BSMM_TRY(bsmm_scaled_operands_bind(p, &s->operands, bsmm_cuda_room(workspace), slots));
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    if (params.store != BSMM_SCALED_STORE_ANY)
        BSMM_TRY(bsmm_cuda_ready_map_at(p->device, &s->d, p->d.m.data, &params.d));
    return bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

const bsmm_kernel bsmm_kernel_cuda_sm100f_scaled = {
    .name = "cuda_sm100f_scaled",
    .device = "cuda",
    .state_bytes = sizeof(scaled_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .k_parts = k_parts,
    .make = make,
    .run = run,
    /* TMA spreads elements of 4 or 6 bits to one byte each. It can do so only from addresses that
     * are multiples of 32. */
    .alignment = 32,
    /* A batch-invariant product has one accumulator for each result, which adds products in
     * ascending order of K. */
    .features = BSMM_FEATURE_INVARIANT,
};
