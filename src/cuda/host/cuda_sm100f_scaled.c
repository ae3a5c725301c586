/* The kernel cuda_sm100f_scaled: block-scaled products on Blackwell's tensor cores, which multiply
 * elements and block scales as they are stored (sm100f/scaled_body.h). It takes
 *
 *     any pair of e4m3, e5m2, e2m3, e3m2 and e2m1 with e8m0 scales of 1 x 32 on both sides
 *     e2m1 with e4m3 scales of 1 x 16 on both sides (nvfp4)
 *
 * The tensor cores read scales in the layout nv_128x4. Each run moves scales of other layouts to
 * the workspace. Rows that TMA cannot read, because their distance is no multiple of 16 bytes, are
 * copied to the workspace too. */
#include "cuda/host/kernel.h"
#include "cuda/host/recode_calls.h"
#include "cuda/sm100f/scaled_params.h"
#include "gpu/params.h"

/* ---- formats ---- */

/* A kernel and the block scales that it takes. */
typedef struct scaled_kernel {
    bsmm_cuda_function function;
    uint32_t threads;
    uint32_t scale, block; /* the type of the scales, and the elements of K with the same scale */
    uint32_t scale_tiles;  /* tiles of 4 scales along K in a stage */
    bool packed;           /* elements are e2m1, and shared memory holds them without gaps */
} scaled_kernel;

static const scaled_kernel mixed = {
    .function = {"sm100f/scaled_mxf8f6f4", "scaled_mxf8f6f4", BSMM_SCALED_SHARED(5, 1)},
    .threads = BSMM_SCALED_THREADS,
    .scale = BSMM_SCALE_E8M0,
    .block = 32,
    .scale_tiles = 1,
};
static const scaled_kernel mxfp4 = {
    .function = {"sm100f/scaled_mxf4", "scaled_mxf4", BSMM_SCALED_SHARED(4, 2)},
    .threads = BSMM_SCALED_THREADS,
    .scale = BSMM_SCALE_E8M0,
    .block = 32,
    .scale_tiles = 2,
    .packed = true,
};
static const scaled_kernel nvfp4 = {
    .function = {"sm100f/scaled_nvf4", "scaled_nvf4", BSMM_SCALED_SHARED(4, 4)},
    .threads = BSMM_SCALED_THREADS_SIGNED,
    .scale = BSMM_SCALE_E4M3,
    .block = 16,
    .scale_tiles = 4,
    .packed = true,
};
/* The kernels in order of preference. */
static const scaled_kernel *const kernels[] = {&mxfp4, &nvfp4, &mixed};

/* The element types with the numbers that the instruction descriptor of the kind mxf8f6f4 gives
 * them (PTX ISA, "Instruction descriptor"). The other kinds know one type. */
static const struct {
    uint32_t elem, number;
} types[] = {{BSMM_ELEM_E4M3, 0},
             {BSMM_ELEM_E5M2, 1},
             {BSMM_ELEM_E2M3, 3},
             {BSMM_ELEM_E3M2, 4},
             {BSMM_ELEM_E2M1, 5}};
enum { PACKED_E2M1 = 1, NO_TYPE = 8 };

static uint32_t type_of(const scaled_kernel *x, const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->scale != x->scale || f->block_rows != 1 || f->block_cols != x->block) return NO_TYPE;
    if (x->packed) return f->elem == BSMM_ELEM_E2M1 ? PACKED_E2M1 : NO_TYPE;
    for (size_t i = 0; i < BSMM_COUNT(types); i++)
        if (types[i].elem == f->elem) return types[i].number;
    return NO_TYPE;
}

static const scaled_kernel *choose(const bsmm_product *p) {
    for (size_t i = 0; i < BSMM_COUNT(kernels); i++)
        if (type_of(kernels[i], &p->a) != NO_TYPE && type_of(kernels[i], &p->b) != NO_TYPE)
            return kernels[i];
    return NULL;
}

static uint32_t bits_of(const bsmm_operand *o) {
    return bsmm_elem_row(o->m.format.elem)->bits;
}

/* Returns true if TMA spreads elements of 4 or 6 bits so that each takes a byte. */
static bool is_spread(const scaled_kernel *x, const bsmm_operand *o) {
    return !x->packed && bits_of(o) < 8;
}

/* ---- the state of a plan ---- */

/* One operand. The elements and the scales are read where they are stored, or from the
 * workspace. */
typedef struct side {
    bool stored, stored_scales;
    uint64_t bytes, scale_bytes; /* the workspace for elements and for scales; 0 if stored */
    uint64_t pitch;              /* the distance of the rows that TMA reads, in bytes */
    bsmm_scale_map map;          /* the scales in the layout nv_128x4 */
    bsmm_cuda_ready pad;
    bsmm_cuda_ready_map rows;
} side;

typedef struct scaled_state {
    const scaled_kernel *kernel;
    side sides[2];
    bsmm_scaled_params params;
    bsmm_cuda_ready ready;
    bsmm_cuda_ready_map d;
} scaled_state;

BSMM_CHECK_STATE(scaled_state);

static const bsmm_operand *operand_of(const bsmm_product *p, int i) {
    return i ? &p->b : &p->a;
}

/* TMA reads rows whose distance is a multiple of 16 bytes, or of 32 bytes and with 128 n elements
 * if it spreads them. The bits after a row's last element must not be read as an element. */
static bool is_readable(const scaled_kernel *x, const bsmm_operand *o) {
    const int64_t bits = bits_of(o), pitch = o->m.ld * bits / 8;
    if (o->m.order != BSMM_ORDER_ROW) return false;
    return is_spread(x, o) ? pitch % 32 == 0 && o->m.cols % 128 == 0
                           : pitch % 16 == 0 && o->m.cols * bits % 8 == 0;
}

/* An instruction reads several scales of a row, of which the last ones may be padding. Padding may
 * hold anything, such as NaN. */
static bool are_scales_readable(const scaled_kernel *x, const bsmm_operand *o) {
    return o->m.scale_layout == BSMM_LAYOUT_NV_128X4 && o->map.cols % x->scale_tiles == 0;
}

static bsmm_status begin_side(const scaled_kernel *x, const bsmm_operand *o, side *s) {
    const int64_t bits = bits_of(o);
    bsmm_matrix laid = o->m;
    laid.scale_layout = BSMM_LAYOUT_NV_128X4;
    laid.scale_ld = 0;
    laid.scale_tile_rows = laid.scale_tile_cols = 0;
    BSMM_TRY(bsmm_scale_map_make(&laid, "scales", &s->map));
    s->stored = is_readable(x, o);
    s->stored_scales = are_scales_readable(x, o);
    s->pitch =
        (uint64_t)(s->stored         ? o->m.ld * bits / 8
                   : is_spread(x, o) ? bsmm_round_up(o->m.cols, 128) * bits / 8
                                     : bsmm_round_up(bsmm_ceil_div(o->m.cols * bits, 8), 16));
    s->bytes = s->stored ? 0 : (uint64_t)bsmm_round_up(o->m.rows * (int64_t)s->pitch, 256);
    s->scale_bytes = s->stored_scales ? 0 : (uint64_t)bsmm_round_up((int64_t)s->map.count, 256);
    return BSMM_OK;
}

static int64_t tiles_m(const bsmm_product *p) {
    return bsmm_ceil_div(p->d.m.rows, BSMM_SCALED_TILE_M);
}

static int64_t tiles_n(const bsmm_product *p) {
    return bsmm_ceil_div(p->d.m.cols, BSMM_SCALED_TILE_N);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    scaled_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &mixed.function, why, size);
    if (!reason) reason = bsmm_cuda_refuse_product(p);
    if (reason) return reason;
    s->kernel = choose(p);
    if (!s->kernel)
        return "takes 4-, 6- and 8-bit floats with e8m0 scales of 1 x 32 on both sides, or e2m1 "
               "with e4m3 scales of 1 x 16";
    if (p->a.m.order != BSMM_ORDER_ROW || p->b.m.order != BSMM_ORDER_ROW)
        return "takes row-major operands";
    if (tiles_m(p) * tiles_n(p) > INT32_MAX) return "D has more than 2^31 tiles";
    for (int i = 0; i < 2; i++)
        if (begin_side(s->kernel, operand_of(p, i), &s->sides[i]) != BSMM_OK)
            return "the scales are too many for the layout nv_128x4";
    return NULL;
}

enum { ALIGN = 256 };

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const scaled_state *s = state;
    uint64_t bytes = 0;
    (void)p;
    for (int i = 0; i < 2; i++)
        bytes += s->sides[i].bytes + s->sides[i].scale_bytes;
    return bytes ? bytes + ALIGN : 0;
}

/* The error bound, relative to the sum of magnitudes. It assumes that an instruction adds the
 * accumulator and 32 or 64 products at once and truncates each term 23 bits below the largest
 * (docs/NUMERICS.md). */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 2.1 * ((double)p->a.m.cols + 64) * 0x1p-24;
}

/* ---- making a plan ---- */

static void map_rows(const bsmm_product *p, int i, scaled_state *s) {
    const bsmm_operand *o = operand_of(p, i);
    const bool spread = is_spread(s->kernel, o);
    const int64_t bits = bits_of(o);
    bsmm_cuda_ready_map_make(
        p->device,
        &(bsmm_cuda_tensor_desc){
            .type = !spread     ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                    : bits == 4 ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
                                : CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
            .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
            .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            .rank = 2,
            .extents = {(uint64_t)(spread ? bsmm_round_up(o->m.cols, 128)
                                          : bsmm_ceil_div(o->m.cols * bits, 8)),
                        (uint64_t)o->m.rows},
            .strides = {s->sides[i].pitch},
            .box = {BSMM_SCALED_ROW_BYTES, i ? BSMM_SCALED_TILE_N : BSMM_SCALED_TILE_M},
        },
        &s->sides[i].rows);
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

/* Makes D's tensor map. A warp stores 32 rows by 32 columns at a time. */
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

/* Returns the bytes of a row of a stage that TMA counts. It counts the bytes of spread elements
 * before they are spread. */
static uint32_t row_bytes(const scaled_kernel *x, const bsmm_operand *o) {
    return is_spread(x, o) ? BSMM_SCALED_ROW_BYTES * bits_of(o) / 8 : BSMM_SCALED_ROW_BYTES;
}

/* Returns the instruction descriptor of tcgen05.mma with block scales (PTX ISA, "Instruction
 * descriptor"): the types of elements and scales, and the extents. */
static uint32_t form_of(const bsmm_product *p, const scaled_kernel *x) {
    return type_of(x, &p->a) << 7 | type_of(x, &p->b) << 10 | BSMM_SCALED_TILE_N / 8 << 17 |
           (x->scale == BSMM_SCALE_E8M0 ? 1u << 23 : 0) | BSMM_SCALED_TILE_M / 16 << 24;
}

/* Fills all kernel parameters except for pointers. */
static bsmm_scaled_params params_of(const bsmm_product *p, const scaled_state *s) {
    const scaled_kernel *x = s->kernel;
    const int64_t scales = bsmm_ceil_div(p->a.m.cols, x->block);
    enum { BAND_ROWS = 2048 };
    return (bsmm_scaled_params){
        .sides = {bsmm_gpu_operand_of(&p->a), bsmm_gpu_operand_of(&p->b)},
        .epilogue = bsmm_gpu_epilogue_of(p),
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .k = (uint32_t)p->a.m.cols,
        .k_blocks = (uint32_t)bsmm_ceil_div(scales, (int64_t)4 * x->scale_tiles),
        .element_bytes =
            BSMM_SCALED_TILE_M * row_bytes(x, &p->a) + BSMM_SCALED_TILE_N * row_bytes(x, &p->b),
        .scale_tiles = (uint32_t)bsmm_ceil_div(scales, 4),
        .b_row_blocks = (uint32_t)bsmm_ceil_div(p->d.m.cols, BSMM_SCALED_SCALE_ROWS),
        .tiles = (uint32_t)(tiles_m(p) * tiles_n(p)),
        .tiles_m = (uint32_t)tiles_m(p),
        .tiles_n = (uint32_t)tiles_n(p),
        .group_m = BAND_ROWS / BSMM_SCALED_TILE_M,
        .form = form_of(p, x),
        .store = store_of(p),
    };
}

static bsmm_status make_side(const bsmm_product *p, int i, scaled_state *s) {
    static const bsmm_cuda_function pad_rows = {"sm100f/pad_rows", "pad_rows", 0};
    enum { PAD_THREADS = 256, PAD_BYTES = 16 * PAD_THREADS, MOST_DOWN = 65535 };
    side *x = &s->sides[i];
    map_rows(p, i, s);
    if (!x->stored_scales) BSMM_TRY(bsmm_cuda_relayout_load(p->device));
    if (x->stored) return BSMM_OK;
    return bsmm_cuda_ready_make(
        p->device,
        &(bsmm_cuda_launch_desc){
            .function = &pad_rows,
            .grid = {(uint32_t)bsmm_ceil_div((int64_t)x->pitch, PAD_BYTES),
                     (uint32_t)bsmm_min_i64(operand_of(p, i)->m.rows, MOST_DOWN)},
            .block = {PAD_THREADS},
        },
        &x->pad);
}

static bsmm_status make_in_context(const bsmm_product *p, scaled_state *s) {
    const bsmm_cuda_device *device = p->device;
    s->params = params_of(p, s);
    if (s->params.store != BSMM_SCALED_STORE_ANY) map_result(p, s);
    for (int i = 0; i < 2; i++)
        BSMM_TRY(make_side(p, i, s));
    const int64_t blocks = bsmm_min_i64(s->params.tiles, device->multiprocessors);
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = &s->kernel->function,
                                    .grid = {(uint32_t)blocks},
                                    .block = {s->kernel->threads},
                                    .shared_bytes = s->kernel->function.shared_bytes,
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

/* ---- running it ---- */

static bsmm_status move_scales(const bsmm_product *p, const bsmm_operand *o, const side *s,
                               uint8_t *to) {
    bsmm_recode job = {.device = p->device, .stream = p->stream, .src = *o, .dst = *o};
    job.dst.map = s->map;
    job.dst.m.scale_layout = BSMM_LAYOUT_NV_128X4;
    job.dst.m.scales = to;
    job.dst.scale_bytes = s->map.count;
    return bsmm_cuda_relayout(&job);
}

static bsmm_status pad(const bsmm_product *p, const bsmm_operand *o, const side *s, uint8_t *to) {
    const uint64_t bits = bits_of(o);
    bsmm_scaled_pad job = {.from = o->m.data,
                           .to = to,
                           .from_pitch = (uint64_t)o->m.ld * bits / 8,
                           .to_pitch = s->pitch,
                           .rows = (uint32_t)o->m.rows,
                           .row_bits = (uint64_t)o->m.cols * bits};
    return bsmm_cuda_ready_launch(p->device, &s->pad, p->stream, BSMM_CUDA_ARGUMENTS(&job));
}

/* Queues the kernels that move an operand to the workspace, and sets the operand's pointers.
 * Returns the workspace that is left in *room. */
static bsmm_status bind_side(const bsmm_product *p, const scaled_state *s, int i, uint8_t **room,
                             bsmm_scaled_params *params) {
    const bsmm_operand *o = operand_of(p, i);
    const side *x = &s->sides[i];
    uint8_t *const scales = *room, *const rows = scales + x->scale_bytes;
    *room = rows + x->bytes;
    params->scales[i] = x->stored_scales ? o->m.scales : scales;
    bsmm_gpu_operand_bind(o, &params->sides[i]);
    if (!x->stored_scales) BSMM_TRY(move_scales(p, o, x, scales));
    if (!x->stored) BSMM_TRY(pad(p, o, x, rows));
    return bsmm_cuda_ready_map_at(p->device, &x->rows, x->stored ? o->m.data : rows,
                                  i ? &params->b : &params->a);
}

static bsmm_status run_in_context(const bsmm_product *p, const scaled_state *s, void *workspace) {
    bsmm_scaled_params params = s->params;
    uint8_t *room = workspace;
    if (room) room += (ALIGN - (uintptr_t)room % ALIGN) % ALIGN;
    for (int i = 0; i < 2; i++)
        BSMM_TRY(bind_side(p, s, i, &room, &params));
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
    .alignment = 32, /* TMA reads spread elements from addresses that are multiples of 32 */
    /* K is summed in ascending order in every tile, and no result depends on the other rows. */
    .features = BSMM_FEATURE_INVARIANT,
};
