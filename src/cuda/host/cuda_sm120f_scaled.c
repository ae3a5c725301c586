/* The kernel cuda_sm120f_scaled computes block-scaled products on the tensor cores of RTX 50 GPUs
 * and DGX Spark, which multiply elements and block scales as they are stored
 * (sm120f/scaled_body.h). scaled_formats.h lists the formats that the kernel takes. The kernel
 * reads scales in the layout nv_128x4. If scales have another layout, each run first copies them to
 * the workspace in this layout. */
#include "cuda/host/scaled_formats.h"
#include "cuda/sm120f/scaled_params.h"
#include "gpu/params.h"

#define COLUMNS(...)
#define TILE(name, operands, block, packed, is_signed, form)                                       \
    [operands] = {"sm120f/" #name, #name, BSMM_SM120_SHARED(block, packed)},

/* Lists the kernel for each combination of element and scale types (bsmm_scaled_kind). */
static const bsmm_cuda_function functions[BSMM_SCALED_KINDS] = {
#include "cuda/sm120f/tiles.def"
};

/* Lists the element types that take one byte of shared memory each. For each type, a mask tells
 * which bits of a word of four elements are not sign bits. */
static const struct {
    uint32_t elem;
    bsmm_sm120_type type;
    uint32_t magnitudes;
} types[] = {{BSMM_ELEM_E4M3, BSMM_SM120_E4M3, 0x7f7f7f7f},
             {BSMM_ELEM_E5M2, BSMM_SM120_E5M2, 0x7f7f7f7f},
             {BSMM_ELEM_E2M3, BSMM_SM120_E2M3, 0x1f1f1f1f},
             {BSMM_ELEM_E2M1, BSMM_SM120_E2M3, 0x1f1f1f1f},
             {BSMM_ELEM_E3M2, BSMM_SM120_E3M2, 0x1f1f1f1f}};
enum { PACKED_MAGNITUDES = 0x77777777 };

static size_t type_of(const bsmm_operand *o) {
    size_t i = 0;
    while (types[i].elem != o->m.format.elem)
        i++;
    return i;
}

/* The definitions from here on belong to the plan of a product, i.e. to the choices that are made
 * before it is computed for the first time. */

typedef struct sm120_state {
    bsmm_scaled_kind kind;
    bsmm_scaled_scales scales[2];
    bsmm_cuda_ready_relayouts copies; /* `copies` copies scales to the workspace. */
    bsmm_sm120_params params;
    bsmm_cuda_ready ready;
} sm120_state;

BSMM_CHECK_STATE(sm120_state);

static int64_t tiles_of(int64_t extent) {
    return bsmm_ceil_div(extent, BSMM_SM120_TILE);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    sm120_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &functions[0], why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = bsmm_scaled_refuse(p, &s->kind, why, size);
    if (!reason)
        reason = bsmm_gpu_refuse_tiles(p, BSMM_SM120_TILE, BSMM_SM120_TILE, INT32_MAX, why, size);
    if (reason) return reason;
    for (int i = 0; i < 2; i++)
        if (bsmm_scaled_scales_begin(bsmm_cuda_side(p, i), 1, &s->scales[i]) != BSMM_OK)
            return bsmm_scaled_refuse_scales(p, i, why, size);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const sm120_state *s = state;
    const uint64_t bytes = s->scales[0].bytes + s->scales[1].bytes;
    (void)p;
    return bsmm_cuda_room_bytes(bytes);
}

/* Returns the kernel's error bound, relative to the sum of the magnitudes of all products. The
 * bound assumes that an instruction adds the accumulator and 32 or 64 products at once and
 * truncates each term 23 bits below the largest term (docs/NUMERICS.md). */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 2.1 * ((double)p->a.m.cols + 64) * 0x1p-24;
}

/* The functions from here on choose how the kernel computes a product. They run once, before the
 * product is computed for the first time. */

static bsmm_sm120_side side_of(const bsmm_operand *o, bsmm_scaled_kind kind) {
    const bool packed = bsmm_scaled_formats[kind].packed;
    const int64_t bits = bsmm_elem_row(o->m.format.elem)->bits, unit = packed ? 16 : 2 * bits,
                  pitch = o->m.ld * bits / 8;
    return (bsmm_sm120_side){
        .o = bsmm_gpu_operand_of(o),
        .pitch = (uint64_t)pitch,
        .rows = (uint32_t)o->m.rows,
        .row_bits = (uint64_t)(o->m.cols * bits),
        .unit_bytes = (uint32_t)unit,
        .aligned = pitch % (unit == 12 ? 4 : unit) == 0,
        .magnitudes = packed ? PACKED_MAGNITUDES : types[type_of(o)].magnitudes,
    };
}

/* Fills all kernel parameters except for pointers. */
static bsmm_sm120_params params_of(const bsmm_product *p, bsmm_scaled_kind kind) {
    const bsmm_scaled_format *x = &bsmm_scaled_formats[kind];
    const int64_t scales = bsmm_ceil_div(p->a.m.cols, x->block);
    enum { BAND_ROWS = 2048 };
    return (bsmm_sm120_params){
        .sides = {side_of(&p->a, kind), side_of(&p->b, kind)},
        .epilogue = bsmm_gpu_epilogue_of(p),
        .k = (uint32_t)p->a.m.cols,
        .k_blocks = (uint32_t)bsmm_ceil_div(scales, (int64_t)4 * x->scale_tiles),
        .row_scales = (uint32_t)scales,
        .scale_tiles = (uint32_t)bsmm_ceil_div(scales, 4),
        .tiles_m = (uint32_t)tiles_of(p->d.m.rows),
        .tiles_n = (uint32_t)tiles_of(p->d.m.cols),
        .group_m = BAND_ROWS / BSMM_SM120_TILE,
        .pair = 4 * types[type_of(&p->a)].type + types[type_of(&p->b)].type,
    };
}

static bsmm_status make_in_context(const bsmm_product *p, sm120_state *s) {
    const bsmm_cuda_device *device = p->device;
    const bsmm_cuda_function *function = &functions[s->kind];
    s->params = params_of(p, s->kind);
    BSMM_TRY(bsmm_scaled_scales_make(p, s->scales, &s->copies));
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = function,
                                    .grid = {s->params.tiles_m * s->params.tiles_n},
                                    .block = {BSMM_SM120_THREADS},
                                    .shared_bytes = function->shared_bytes,
                                    .overlap = true,
                                },
                                &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

/* The functions from here on queue the kernels of a product each time it is computed. */

static bsmm_status run_in_context(const bsmm_product *p, const sm120_state *s, void *workspace) {
    bsmm_sm120_params params = s->params;
    const uint8_t *scales[2];
    BSMM_TRY(bsmm_scaled_scales_bind(p, s->scales, &s->copies, bsmm_cuda_room(workspace), scales));
    for (int i = 0; i < 2; i++) {
        bsmm_gpu_operand_bind(bsmm_cuda_side(p, i), &params.sides[i].o);
        params.sides[i].scales = scales[i];
    }
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    return bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

const bsmm_kernel bsmm_kernel_cuda_sm120f_scaled = {
    .name = "cuda_sm120f_scaled",
    .device = "cuda",
    .state_bytes = sizeof(sm120_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    .alignment = 16, /* Elements are loaded in units of up to 16 aligned bytes. */
    /* Every tile adds products in ascending order of K, and no result depends on other rows of A.
     */
    .features = BSMM_FEATURE_INVARIANT,
};
