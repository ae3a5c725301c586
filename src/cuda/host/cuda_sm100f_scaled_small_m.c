/* The kernel cuda_sm100f_scaled_small_m computes block-scaled products with few rows of A on
 * Blackwell's tensor cores. It swaps the operands of cuda_sm100f_scaled: the instruction's 128 rows
 * are rows of B, i.e. of the weights, and the rows of A are the instruction's columns
 * (sm100f/scaled_small_m.h). Such a product takes as long as reading the weights, so all SMs must
 * read at the same time. */
#include "cuda/host/scaled_kernels.h"
#include "cuda/host/scaled_operands.h"

typedef struct small_m_state {
    bsmm_scaled_operands operands;
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
} small_m_state;

BSMM_CHECK_STATE(small_m_state);

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    small_m_state *s = state;
    const char *reason =
        bsmm_cuda_refuse(p, &bsmm_scaled_kernels[0][BSMM_SCALED_FEW_ROWS].function, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = bsmm_gpu_refuse_rows(p, BSMM_SCALED_SMALL_M, why, size);
    return reason ? reason : bsmm_scaled_operands_begin(p, &s->operands, why, size);
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const small_m_state *s = state;
    (void)p;
    return bsmm_cuda_room_bytes(bsmm_scaled_operands_bytes(&s->operands));
}

static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return bsmm_scaled_bound(p);
}

/* Returns the number of columns of one tcgen05.mma: 16, 32 or 64. Each row of A is one column. */
static uint32_t columns_of(const bsmm_product *p) {
    uint32_t columns = 16;
    while (columns < p->d.m.rows)
        columns *= 2;
    return columns;
}

/* Returns the number of thread blocks that split the K of a tile among them (split-K). The number
 * is as large as possible while each SM gets at most one thread block. It is 1 for a
 * batch-invariant product. */
static uint32_t parts_of(const bsmm_product *p, uint32_t tiles, uint32_t k_blocks) {
    const bsmm_cuda_device *device = p->device;
    int64_t parts = device->multiprocessors / (int64_t)tiles;
    if (p->invariant || parts < 1) return 1;
    parts = bsmm_min_i64(parts, BSMM_SCALED_SMALL_M_PARTS);
    return (uint32_t)bsmm_min_i64(parts, k_blocks);
}

/* Returns the kernel parameters, except for pointers, which are set in each run. */
static bsmm_scaled_params params_of(const bsmm_product *p, const small_m_state *s) {
    const uint32_t columns = columns_of(p),
                   tiles = (uint32_t)bsmm_ceil_div(p->d.m.cols, BSMM_SCALED_TILE_M);
    bsmm_scaled_params params = {
        .sides = {bsmm_gpu_operand_of(&p->b), bsmm_gpu_operand_of(&p->a)},
        .m = (uint32_t)p->d.m.cols,
        .n = (uint32_t)p->d.m.rows,
        .tiles = tiles,
        .tiles_m = tiles,
        .tiles_n = 1,
        .tile_n = columns,
        .group_m = 1,
        .form = bsmm_scaled_form_of(&s->operands, &p->b, &p->a, BSMM_SCALED_TILE_M, columns),
    };
    bsmm_scaled_params_set(p, &s->operands, columns, BSMM_SCALED_TILE_M, &params);
    params.parts = parts_of(p, tiles, params.k_blocks);
    return params;
}

static uint32_t k_parts(const bsmm_product *p, const void *state) {
    return params_of(p, state).parts;
}

static bsmm_status make_in_context(const bsmm_product *p, small_m_state *s) {
    const bsmm_cuda_device *device = p->device;
    const bsmm_scaled_kernel *kernel = &bsmm_scaled_kernels[s->operands.kind][BSMM_SCALED_FEW_ROWS];
    s->params = params_of(p, s);
    BSMM_TRY(bsmm_scaled_operands_make(p, s->params.tile_n, BSMM_SCALED_TILE_M, &s->operands));
    const uint32_t parts = s->params.parts,
                   blocks = parts > 1
                                ? s->params.tiles * parts
                                : (uint32_t)bsmm_min_i64(s->params.tiles, device->multiprocessors);
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = &kernel->function,
                                    .grid = {blocks},
                                    .block = {kernel->threads},
                                    .cluster = {parts > 1 ? parts : 0},
                                    .shared_bytes = kernel->function.shared_bytes,
                                    .overlap = true,
                                },
                                &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

static bsmm_status run_in_context(const bsmm_product *p, const small_m_state *s, void *workspace) {
    bsmm_scaled_params params = s->params;
    const bsmm_scaled_slot slots[2] = {{&params.sides[1], &params.b, &params.scales[1]},
                                       {&params.sides[0], &params.a, &params.scales[0]}};
    BSMM_TRY(bsmm_scaled_operands_bind(p, &s->operands, bsmm_cuda_room(workspace), slots));
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    return bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

const bsmm_kernel bsmm_kernel_cuda_sm100f_scaled_small_m = {
    .name = "cuda_sm100f_scaled_small_m",
    .device = "cuda",
    .state_bytes = sizeof(small_m_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .k_parts = k_parts,
    .make = make,
    .run = run,
    .alignment = 32, /* TMA spreads elements of 4 or 6 bits to bytes only from multiples of 32. */
    /* A batch-invariant product has one accumulator for each result, which adds products in
     * ascending order of K. */
    .features = BSMM_FEATURE_INVARIANT,
};
