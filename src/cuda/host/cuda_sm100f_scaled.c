/* The kernel cuda_sm100f_scaled computes block-scaled products on Blackwell's tensor cores, which
 * multiply elements and block scales as they are stored (sm100f/scaled_body.h). scaled_formats.h
 * lists the formats that the kernel takes.
 *
 * The tensor cores read scales in the layout nv_128x4. If A or B has scales in another layout, each
 * run first copies the scales to the workspace in the layout nv_128x4. If the distance between rows
 * of elements is no multiple of 16 bytes, TMA cannot read the rows, and each run first copies the
 * rows to the workspace. */
#include "cuda/host/scaled_operands.h"
#include "gpu/params.h"

/* Lists the sizes of tiles of D. With a pair of thread blocks per tile, each block loads only half
 * of the tile's rows of B. */
static const struct {
    /* `ctas` is the number of thread blocks that compute a tile together. Each has 128 of its
     * rows. */
    uint32_t ctas;
    uint32_t cols;
    /* This is the time in cycles for 32 bytes of each row of the tile: the time of the products, or
     * the time to read these bytes from shared memory at 128 bytes a cycle, whichever is longer.
     * The rate of the products is the published peak of a B200, 8192 products of 8 bits a cycle for
     * each SM. Nothing was measured. */
    uint32_t cycles;
} tiles[] = {{2, 192, 96}, {1, 192, 96}, {1, 128, 64}, {1, 64, 48}};

/* Holds the two kernels for one kind of formats (scaled_formats.h): one for single thread blocks
 * and one for pairs of thread blocks. */
typedef struct scaled_kernel {
    bsmm_cuda_function function[2];
    uint32_t threads;
} scaled_kernel;

#define FUNCTIONS(name, scale_tiles)                                                               \
    {                                                                                              \
        {"sm100f/" name, name, BSMM_SCALED_SHARED(scale_tiles, 1)}, {                              \
            "sm100f/" name "_pair", name "_pair", BSMM_SCALED_SHARED(scale_tiles, 2)               \
        }                                                                                          \
    }
static const scaled_kernel kernels[BSMM_SCALED_KINDS] = {
    [BSMM_SCALED_MXF4] = {FUNCTIONS("scaled_mxf4", 2), BSMM_SCALED_THREADS},
    [BSMM_SCALED_NVF4] = {FUNCTIONS("scaled_nvf4", 4), BSMM_SCALED_THREADS_SIGNED},
    [BSMM_SCALED_MXF8F6F4] = {FUNCTIONS("scaled_mxf8f6f4", 1), BSMM_SCALED_THREADS},
};

typedef struct scaled_state {
    uint32_t tile; /* `tile` is the index of the chosen tile in the table `tiles`. */
    bsmm_scaled_operands operands;
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
    bsmm_cuda_ready_map d;
} scaled_state;

BSMM_CHECK_STATE(scaled_state);

static int64_t tiles_m(const bsmm_product *p, uint32_t tile) {
    return bsmm_ceil_div(p->d.m.rows, (int64_t)BSMM_SCALED_TILE_M * tiles[tile].ctas);
}

static int64_t tiles_n(const bsmm_product *p, uint32_t tile) {
    return bsmm_ceil_div(p->d.m.cols, tiles[tile].cols);
}

static int64_t groups_of(const bsmm_product *p, uint32_t tile) {
    const bsmm_cuda_device *device = p->device;
    return device->multiprocessors / (int)tiles[tile].ctas;
}

/* Returns an estimate of the cycles that all products take: the number of tiles that one group (one
 * or two thread blocks) computes, times the cycles of a tile. A factor for the length of K is left
 * out, because it is the same for all tile sizes. */
static int64_t cycles_of(const bsmm_product *p, uint32_t tile) {
    return bsmm_ceil_div(tiles_m(p, tile) * tiles_n(p, tile), groups_of(p, tile)) *
           tiles[tile].cycles;
}

/* Chooses the tile size with the fewest cycles. Among sizes with equal cycles it chooses the first
 * in the table, because it loads the fewest bytes. A pair of thread blocks needs two SMs and more
 * than 128 rows. */
static uint32_t choose_tile(const bsmm_product *p) {
    const bsmm_cuda_device *device = p->device;
    const bool pairs = device->multiprocessors > 1 && p->d.m.rows > BSMM_SCALED_TILE_M;
    uint32_t best = pairs ? 0 : 1;
    for (uint32_t i = best + 1; i < BSMM_COUNT(tiles); i++)
        if (cycles_of(p, i) < cycles_of(p, best)) best = i;
    return best;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    scaled_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &kernels[0].function[0], why, size);
    if (!reason) reason = bsmm_cuda_refuse_product(p);
    if (!reason) reason = bsmm_scaled_operands_begin(p, &s->operands);
    if (reason) return reason;
    s->tile = choose_tile(p);
    if (tiles_m(p, s->tile) * tiles_n(p, s->tile) > INT32_MAX) return "D has more than 2^31 tiles";
    return NULL;
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

/* Makes the tensor map with which TMA stores D. A warp stores 32 rows by 32 columns at a time. */
static void map_result(const bsmm_product *p, scaled_state *s) {
    const bool wide = s->params.store == BSMM_SCALED_STORE_F32;
    bsmm_cuda_ready_map_make(
        p->device,
        &(bsmm_cuda_tensor_desc){
            .type = wide ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16,
            .swizzle = wide ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
            .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
            .rank = 2,
            .extents = {(uint64_t)p->d.m.cols, (uint64_t)p->d.m.rows},
            .strides = {(uint64_t)p->d.m.ld * (wide ? 4 : 2)},
            .box = {BSMM_SCALED_CHUNK, 32},
        },
        &s->d);
}

/* Returns the number of rows of A (side 0) or of B (side 1) that one thread block loads for a tile.
 */
static uint32_t rows_of(const scaled_state *s, int side) {
    return side ? tiles[s->tile].cols / tiles[s->tile].ctas : BSMM_SCALED_TILE_M;
}

/* Returns the kernel parameters, except for pointers, which are set in each run. */
static bsmm_scaled_params params_of(const bsmm_product *p, const scaled_state *s) {
    const int64_t down = tiles_m(p, s->tile), across = tiles_n(p, s->tile);
    enum { BAND_ROWS = 2048 };
    bsmm_scaled_params params = {
        .sides = {bsmm_gpu_operand_of(&p->a), bsmm_gpu_operand_of(&p->b)},
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .tiles = (uint32_t)(down * across),
        .tiles_m = (uint32_t)down,
        .tiles_n = (uint32_t)across,
        .tile_n = tiles[s->tile].cols,
        .group_m = BAND_ROWS / (BSMM_SCALED_TILE_M * tiles[s->tile].ctas),
        .form = bsmm_scaled_form_of(&s->operands, &p->a, &p->b,
                                    tiles[s->tile].ctas * BSMM_SCALED_TILE_M, tiles[s->tile].cols),
        .parts = 1,
    };
    bsmm_scaled_params_set(p, &s->operands, rows_of(s, 0), rows_of(s, 1), &params);
    return params;
}

static bsmm_status make_in_context(const bsmm_product *p, scaled_state *s) {
    const bsmm_cuda_device *device = p->device;
    const uint32_t ctas = tiles[s->tile].ctas;
    const bsmm_cuda_function *function = &kernels[s->operands.kind].function[ctas - 1];
    s->params = params_of(p, s);
    if (s->params.store != BSMM_SCALED_STORE_ANY) map_result(p, s);
    BSMM_TRY(bsmm_scaled_operands_make(p, rows_of(s, 0), rows_of(s, 1), &s->operands));
    const int64_t groups = bsmm_min_i64(s->params.tiles, groups_of(p, s->tile));
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = function,
                                    .grid = {(uint32_t)groups * ctas},
                                    .block = {kernels[s->operands.kind].threads},
                                    .cluster = {ctas > 1 ? ctas : 0},
                                    .shared_bytes = function->shared_bytes,
                                    .overlap = true,
                                },
                                &s->ready);
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
    .make = make,
    .run = run,
    /* TMA spreads elements of 4 or 6 bits to one byte each. It can do so only from addresses that
     * are multiples of 32. */
    .alignment = 32,
    /* Every tile adds products in ascending order of K, and no result depends on other rows of
     * A. */
    .features = BSMM_FEATURE_INVARIANT,
};
