#include "cuda/host/group_sums.h"

#include "gpu/params.h"

/* Lists the sizes of tiles, as {thread blocks that compute a tile together, columns of D}. Two
 * warpgroups share a tile: each multiplies the sums of half of its columns by fp32 scales. If a
 * scale covers 128 columns of D (rows of B), all columns of a half must lie in the same block of
 * 128. Half of a tile's width must therefore divide 128. */
static const bsmm_scaled_tile tiles[] = {{2, 256}, {2, 128}, {1, 256}, {1, 128}, {1, 64}};

const char *bsmm_group_sums_begin(const bsmm_product *p, bsmm_group_sums *s, char *why,
                                  size_t size) {
    s->deal = bsmm_scaled_tile_choose(p, tiles, BSMM_COUNT(tiles), 0);
    return s->deal.tile ? NULL : bsmm_scaled_tile_refuse(p, why, size);
}

uint32_t bsmm_group_sums_b_rows(const bsmm_group_sums *s) {
    return s->deal.tile->cols / s->deal.tile->ctas;
}

uint32_t bsmm_group_sums_form(const bsmm_group_sums *s) {
    enum { F32 = 1 };
    return F32 << 4 | s->deal.tile->cols / 8 << 17 |
           s->deal.tile->ctas * BSMM_SCALED_TILE_M / 16 << 24;
}

static bool has_factors(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

bsmm_status bsmm_group_sums_make(const bsmm_product *p, int64_t block_k, int64_t pairs,
                                 const bsmm_scaled_kernel *kernels, bsmm_group_sums *s) {
    bsmm_scaled_params *params = &s->params;
    bsmm_scaled_tile_set(p, &s->deal, params);
    params->epilogue = bsmm_gpu_epilogue_of(p);
    params->store = bsmm_scaled_store_of(p);
    params->k = (uint32_t)p->a.m.cols;
    params->a_parts = params->b_parts = 1;
    params->k_blocks = (uint32_t)(bsmm_ceil_div(p->a.m.cols, block_k) * pairs);
    params->sum_blocks = (uint32_t)(BSMM_SCALED_GROUP_K / block_k * pairs);
    params->element_bytes =
        (BSMM_SCALED_TILE_M + bsmm_group_sums_b_rows(s)) * BSMM_SCALED_ROW_BYTES;
    params->has_factors[0] = has_factors(&p->a);
    params->has_factors[1] = has_factors(&p->b);
    params->shares_factors =
        !has_factors(&p->b) || p->b.m.format.block_rows % BSMM_SCALED_SCALE_ROWS == 0;
    bsmm_scaled_result_map(p, params->store, &s->d);
    return bsmm_scaled_tile_make(p, &s->deal, kernels, &s->ready);
}

bsmm_status bsmm_group_sums_run(const bsmm_product *p, const bsmm_group_sums *s,
                                bsmm_scaled_params *params) {
    bsmm_gpu_epilogue_bind(p, &params->epilogue);
    if (params->store != BSMM_SCALED_STORE_ANY)
        BSMM_TRY(bsmm_cuda_ready_map_at(p->device, &s->d, p->d.m.data, &params->d));
    return bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(params));
}
