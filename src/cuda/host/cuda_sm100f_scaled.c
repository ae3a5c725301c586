/* The kernel cuda_sm100f_scaled: block-scaled products on Blackwell's tensor cores, which multiply
 * elements and block scales as they are stored (sm100f/scaled_body.h). scaled_formats.h has the
 * formats that it takes.
 *
 * The tensor cores read scales in the layout nv_128x4. If A or B has scales in another layout, each
 * run first copies them to the workspace in this layout. If the distance between rows of elements
 * is no multiple of 16 bytes, TMA cannot read the rows, and each run first copies them to the
 * workspace too. */
#include "cuda/host/scaled_formats.h"
#include "cuda/host/tma_rows.h"
#include "gpu/params.h"

/* The kernels of the kinds of formats (scaled_formats.h). */
typedef struct scaled_kernel {
    bsmm_cuda_function function;
    uint32_t threads;
} scaled_kernel;

static const scaled_kernel kernels[BSMM_SCALED_KINDS] = {
    [BSMM_SCALED_MXF4] = {{"sm100f/scaled_mxf4", "scaled_mxf4", BSMM_SCALED_SHARED(4, 2)},
                          BSMM_SCALED_THREADS},
    [BSMM_SCALED_NVF4] = {{"sm100f/scaled_nvf4", "scaled_nvf4", BSMM_SCALED_SHARED(4, 4)},
                          BSMM_SCALED_THREADS_SIGNED},
    [BSMM_SCALED_MXF8F6F4] = {{"sm100f/scaled_mxf8f6f4", "scaled_mxf8f6f4",
                               BSMM_SCALED_SHARED(5, 1)},
                              BSMM_SCALED_THREADS},
};

/* The element types with the numbers that the instruction descriptor of the kind mxf8f6f4 gives
 * them (PTX ISA, "Instruction descriptor"). The instructions of other kinds have only one element
 * type and need no number. */
static const struct {
    uint32_t elem, number;
} types[] = {{BSMM_ELEM_E4M3, 0},
             {BSMM_ELEM_E5M2, 1},
             {BSMM_ELEM_E2M3, 3},
             {BSMM_ELEM_E3M2, 4},
             {BSMM_ELEM_E2M1, 5}};
enum { PACKED_E2M1 = 1 };

static uint32_t type_of(bsmm_scaled_kind kind, const bsmm_operand *o) {
    if (bsmm_scaled_formats[kind].packed) return PACKED_E2M1;
    size_t i = 0;
    while (types[i].elem != o->m.format.elem)
        i++;
    return types[i].number;
}

typedef struct scaled_state {
    bsmm_scaled_kind kind;
    bsmm_tma_rows rows[2];
    bsmm_scaled_scales scales[2];
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
    bsmm_cuda_ready_map d;
} scaled_state;

BSMM_CHECK_STATE(scaled_state);

static int64_t tiles_m(const bsmm_product *p) {
    return bsmm_ceil_div(p->d.m.rows, BSMM_SCALED_TILE_M);
}

static int64_t tiles_n(const bsmm_product *p) {
    return bsmm_ceil_div(p->d.m.cols, BSMM_SCALED_TILE_N);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    scaled_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &kernels[0].function, why, size);
    if (!reason) reason = bsmm_cuda_refuse_product(p);
    if (!reason) reason = bsmm_scaled_refuse(p, &s->kind);
    if (reason) return reason;
    const bsmm_scaled_format *x = &bsmm_scaled_formats[s->kind];
    if (tiles_m(p) * tiles_n(p) > INT32_MAX) return "D has more than 2^31 tiles";
    for (int i = 0; i < 2; i++) {
        bsmm_tma_rows_begin(bsmm_cuda_side(p, i), x->packed, &s->rows[i]);
        /* Scales are read in place only if all scales that an instruction reads are real ones. The
         * last scales of a row may otherwise be padding that holds NaN, and all results of the row
         * would then be computed again in double. */
        if (bsmm_scaled_scales_begin(bsmm_cuda_side(p, i), x->scale_tiles, &s->scales[i]) !=
            BSMM_OK)
            return "the scales are too many for the layout nv_128x4";
    }
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const scaled_state *s = state;
    uint64_t bytes = 0;
    (void)p;
    for (int i = 0; i < 2; i++)
        bytes += s->rows[i].bytes + s->scales[i].bytes;
    return bsmm_cuda_room_bytes(bytes);
}

/* Returns the kernel's error bound, relative to the sum of the magnitudes of all products. It
 * assumes that an instruction adds the accumulator and 32 or 64 products at once, and truncates
 * each term 23 bits below the largest (docs/NUMERICS.md). */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 2.1 * ((double)p->a.m.cols + 64) * 0x1p-24;
}

static bsmm_scaled_store store_of(const bsmm_product *p) {
    static const struct {
        uint32_t elem, bytes;
        bsmm_scaled_store store;
    } rows[] = {{BSMM_ELEM_F32, 4, BSMM_SCALED_STORE_F32},
                {BSMM_ELEM_BF16, 2, BSMM_SCALED_STORE_BF16},
                {BSMM_ELEM_F16, 2, BSMM_SCALED_STORE_F16}};
    for (size_t i = 0; i < BSMM_COUNT(rows) && p->d.m.order == BSMM_ORDER_ROW; i++)
        if (p->d.m.format.elem == rows[i].elem && p->d.m.ld * rows[i].bytes % 16 == 0)
            return rows[i].store;
    return BSMM_SCALED_STORE_ANY;
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

/* Returns the descriptor of the instruction tcgen05.mma with block scales (PTX ISA, "Instruction
 * descriptor"). It encodes the types of elements and scales, and the extents of the tile. */
static uint32_t form_of(const bsmm_product *p, bsmm_scaled_kind kind) {
    return type_of(kind, &p->a) << 7 | type_of(kind, &p->b) << 10 | BSMM_SCALED_TILE_N / 8 << 17 |
           (bsmm_scaled_formats[kind].scale == BSMM_SCALE_E8M0 ? 1u << 23 : 0) |
           BSMM_SCALED_TILE_M / 16 << 24;
}

/* Returns the kernel parameters, except for pointers, which are set in each run. */
static bsmm_scaled_params params_of(const bsmm_product *p, const scaled_state *s) {
    const bsmm_scaled_format *x = &bsmm_scaled_formats[s->kind];
    const int64_t scales = bsmm_ceil_div(p->a.m.cols, x->block);
    enum { BAND_ROWS = 2048 };
    return (bsmm_scaled_params){
        .sides = {bsmm_gpu_operand_of(&p->a), bsmm_gpu_operand_of(&p->b)},
        .epilogue = bsmm_gpu_epilogue_of(p),
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .k = (uint32_t)p->a.m.cols,
        .k_blocks = (uint32_t)bsmm_ceil_div(scales, (int64_t)4 * x->scale_tiles),
        .element_bytes = BSMM_SCALED_TILE_M * bsmm_tma_rows_bytes(&p->a, &s->rows[0]) +
                         BSMM_SCALED_TILE_N * bsmm_tma_rows_bytes(&p->b, &s->rows[1]),
        .scale_tiles = (uint32_t)bsmm_ceil_div(scales, 4),
        .b_row_blocks = (uint32_t)bsmm_ceil_div(p->d.m.cols, BSMM_SCALED_SCALE_ROWS),
        .tiles = (uint32_t)(tiles_m(p) * tiles_n(p)),
        .tiles_m = (uint32_t)tiles_m(p),
        .tiles_n = (uint32_t)tiles_n(p),
        .group_m = BAND_ROWS / BSMM_SCALED_TILE_M,
        .form = form_of(p, s->kind),
        .store = store_of(p),
    };
}

static bsmm_status make_in_context(const bsmm_product *p, scaled_state *s) {
    const bsmm_cuda_device *device = p->device;
    const scaled_kernel *x = &kernels[s->kind];
    s->params = params_of(p, s);
    if (s->params.store != BSMM_SCALED_STORE_ANY) map_result(p, s);
    for (int i = 0; i < 2; i++) {
        BSMM_TRY(bsmm_tma_rows_make(device, bsmm_cuda_side(p, i),
                                    i ? BSMM_SCALED_TILE_N : BSMM_SCALED_TILE_M, &s->rows[i]));
        BSMM_TRY(bsmm_scaled_scales_make(device, &s->scales[i]));
    }
    const int64_t blocks = bsmm_min_i64(s->params.tiles, device->multiprocessors);
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = &x->function,
                                    .grid = {(uint32_t)blocks},
                                    .block = {x->threads},
                                    .shared_bytes = x->function.shared_bytes,
                                    .overlap = true,
                                },
                                &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_TRY(bsmm_cuda_enter(p->device));
    bsmm_status status = make_in_context(p, state);
    bsmm_cuda_leave(p->device);
    return status;
}

static bsmm_status run_in_context(const bsmm_product *p, const scaled_state *s, void *workspace) {
    bsmm_scaled_params params = s->params;
    uint8_t *room = bsmm_cuda_room(workspace);
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        bsmm_gpu_operand_bind(o, &params.sides[i]);
        BSMM_TRY(bsmm_tma_rows_bind(p, o, &s->rows[i], &room, i ? &params.b : &params.a));
        BSMM_TRY(bsmm_scaled_scales_bind(p, o, &s->scales[i], &room, &params.scales[i]));
    }
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    if (params.store != BSMM_SCALED_STORE_ANY)
        BSMM_TRY(bsmm_cuda_ready_map_at(p->device, &s->d, p->d.m.data, &params.d));
    return bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_TRY(bsmm_cuda_enter(p->device));
    bsmm_status status = run_in_context(p, state, workspace);
    bsmm_cuda_leave(p->device);
    return status;
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
    /* TMA spreads elements of 4 or 6 bits to one byte each only from addresses that are multiples
     * of 32 */
    .alignment = 32,
    /* Every tile adds products in ascending order of K, and no result depends on other rows of
     * A. */
    .features = BSMM_FEATURE_INVARIANT,
};
