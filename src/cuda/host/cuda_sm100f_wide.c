/* The kernel cuda_sm100f_wide multiplies elements of 16 bits on Blackwell's tensor cores
 * (sm100f/wide.cu, sm100f/wide_pair.cu), by tcgen05.mma of kind f16. A and B may be any pair of
 * MXFP8, MXFP6, MXFP4, NVFP4, 8-bit floats without scales, bf16, f16 and fp32.
 *
 * The tensor cores multiply f16 if one operand is f16 that TMA can read as it is stored, and f16
 * holds every value of the other operand's format. Otherwise they multiply bf16. Operands that are
 * not stored in this format are packed to it in each run (gpu/pack.h), or once in advance. Packing
 * multiplies elements by their 8-bit scales, which is exact. For a product of bf16, an f16 element
 * becomes the sum of two bf16 parts, and an fp32 element becomes the sum of three.
 *
 * Accumulators that may be wrong are computed again in double, one by one. If packing finds a value
 * that bf16 does not hold, the generic GEMM (cuda_sm80_bf16.c) computes the product instead. */
#include "cuda/host/generic.h"
#include "cuda/host/scaled_tiles.h"
#include "cuda/host/wgmma_operands.h"
#include "gpu/params.h"

#include <stdio.h>

static const bsmm_scaled_tile tiles[] = {{2, 256}, {2, 192}, {2, 128}, {1, 256},
                                         {1, 192}, {1, 128}, {1, 64}};

static const bsmm_cuda_function functions[2] = {
    {"sm100f/wide", "wide", BSMM_SCALED_SHARED(0, 1)},
    {"sm100f/wide_pair", "wide_pair", BSMM_SCALED_SHARED(0, 2)},
};

typedef struct wide_state {
    const bsmm_scaled_tile *tile;
    uint32_t elem; /* `elem` is the element type that the tensor cores multiply, bf16 or f16. */
    bsmm_wgmma_source sources[2];
    bsmm_wgmma_packer packers[2];
    bsmm_cuda_ready_map maps[2], d;
    bsmm_scaled_params params;
    bsmm_cuda_ready ready, clear;
    /* `may_refuse` is true if packing may find values that bf16 does not hold. */
    bool may_refuse;
    bsmm_cuda_generic generic;
} wide_state;

BSMM_CHECK_STATE(wide_state);

/* ---- choosing the formats that the tensor cores multiply ---- */

/* Returns true if the operand is f16 that TMA can read as it is stored. */
static bool is_stored_f16(const bsmm_operand *o) {
    return o->m.format.elem == BSMM_ELEM_F16 && o->m.format.scale == BSMM_SCALE_NONE &&
           o->m.order == BSMM_ORDER_ROW && o->m.ld % 8 == 0;
}

/* Returns true if f16 holds all values of a format, whatever the scales are. Every f16 number is a
 * multiple of 2^-24 below 2^16. e4m3 scales are 2^-9 to 2^9. */
static bool is_half(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->elem == BSMM_ELEM_F16) return is_stored_f16(o);
    if (!bsmm_elem_is_narrow(f->elem)) return false;
    if (f->scale != BSMM_SCALE_NONE && f->scale != BSMM_SCALE_E4M3) return false;
    const bsmm_narrow_codec codec = bsmm_narrow_codec_of(f->elem);
    const int by = f->scale == BSMM_SCALE_E4M3 ? 9 : 0;
    return codec.high + by <= 16 && codec.low - by >= -24;
}

static uint32_t elem_of(const bsmm_product *p) {
    const bool any = is_stored_f16(&p->a) || is_stored_f16(&p->b);
    return any && is_half(&p->a) && is_half(&p->b) ? BSMM_ELEM_F16 : BSMM_ELEM_BF16;
}

static bsmm_pack_route route_of(const bsmm_operand *o, uint32_t elem) {
    if (elem == BSMM_ELEM_F16 || o->m.format.scale != BSMM_SCALE_NONE) return BSMM_PACK_BF16;
    return o->m.format.elem == BSMM_ELEM_F32   ? BSMM_PACK_THREE_BF16
           : o->m.format.elem == BSMM_ELEM_F16 ? BSMM_PACK_TWO_BF16
                                               : BSMM_PACK_BF16;
}

/* Returns true if packing to bf16 is exact for any values of the operand. Elements with e8m0 scales
 * may lie outside bf16's range. A bf16 part of an f16 or fp32 element may be subnormal. */
static bool is_always_exact(const bsmm_operand *o, const bsmm_wgmma_source *source) {
    return source->stored ||
           (o->m.format.scale != BSMM_SCALE_E8M0 && source->route == BSMM_PACK_BF16);
}

/* ---- refusing a product ---- */

static const char *refuse_operands(const bsmm_product *p, wide_state *s, char *why, size_t size) {
    s->elem = elem_of(p);
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        bsmm_wgmma_source *source = &s->sources[i];
        if (o->m.format.scale == BSMM_SCALE_F32)
            return bsmm_gpu_refuse_format(o, "AB"[i], "the kernel takes no f32 scales", why, size);
        *source = bsmm_wgmma_source_of(p, &(bsmm_wgmma_wish){.kind = BSMM_WGMMA_BF16,
                                                             .route = route_of(o, s->elem),
                                                             .elem = s->elem,
                                                             .is_b = i == 1,
                                                             .settles = true});
        const char *reason =
            source->stored ? NULL : bsmm_pack_refuse(o, "AB"[i], source -> route, why, size);
        if (reason) return reason;
    }
    s->may_refuse =
        !is_always_exact(&p->a, &s->sources[0]) || !is_always_exact(&p->b, &s->sources[1]);
    /* If bf16 does not hold one row of A, the generic GEMM computes all rows. */
    if (p->invariant && !is_always_exact(&p->a, &s->sources[0]))
        return "flags has BATCH_INVARIANT; one row of A may change the order of sums of all rows";
    return NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    wide_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &functions[0], why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = refuse_operands(p, s, why, size);
    if (reason) return reason;
    s->tile = bsmm_scaled_tile_choose(p, tiles, BSMM_COUNT(tiles));
    return s->tile ? NULL : bsmm_scaled_tile_refuse(p, why, size);
}

/* The error bound assumes that one tcgen05.mma of kind f16 adds 16 exact products and the
 * accumulator, and truncates each of these terms at worst 23 bits below the largest term, as one
 * wgmma does on Hopper (docs/NUMERICS.md). */
static double bound(const bsmm_product *p, const void *state) {
    const wide_state *s = state;
    const int64_t pairs = (int64_t)s->sources[0].form.parts * s->sources[1].form.parts;
    return bsmm_wgmma_bound(BSMM_WGMMA_BF16, BSMM_ELEM_BF16, p->a.m.cols * pairs);
}

/* ---- memory ---- */

/* Describes the beginning of the workspace, which each run clears. The packed A follows, and then
 * the packed B, unless B was packed in advance. */
typedef struct head {
    bsmm_pack_header headers[2];
    uint32_t refused;
} head;

enum { HEAD_BYTES = 1024 };
_Static_assert(sizeof(head) <= HEAD_BYTES, "packed operands begin behind it");

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const wide_state *s = state;
    const uint64_t bytes = s->sources[0].bytes + (p->b_packed ? 0 : s->sources[1].bytes);
    return s->sources[0].stored && s->sources[1].stored ? 0 : 1024 + HEAD_BYTES + bytes;
}

/* Casts const away. Weights that were packed in advance are only read. */
static uint8_t *mutable(const void *pointer) {
    union {
        const void *from;
        void *to;
    } both = {.from = pointer};
    return both.to;
}

/* ---- making a plan ---- */

/* Returns the descriptor of the instruction tcgen05.mma of kind f16 (PTX ISA, "Instruction
 * descriptor"). It encodes fp32 sums, the type of elements, and the extents of the tile. */
static uint32_t form_of(const wide_state *s) {
    enum { F32 = 1, F16 = 0, BF16 = 1 };
    const uint32_t elem = s->elem == BSMM_ELEM_F16 ? F16 : BF16;
    return F32 << 4 | elem << 7 | elem << 10 | s->tile->cols / 8 << 17 |
           s->tile->ctas * BSMM_SCALED_TILE_M / 16 << 24;
}

static void map_rows(const bsmm_product *p, int side, uint32_t box_rows, wide_state *s) {
    const bsmm_operand *o = bsmm_cuda_side(p, side);
    const bsmm_wgmma_form *form = &s->sources[side].form;
    const int64_t cols =
        form->parts == 1 ? o->m.cols : form->parts * bsmm_round_up(o->m.cols, BSMM_PACK_PART_COLS);
    bsmm_cuda_ready_map_make(p->device,
                             &(bsmm_cuda_tensor_desc){
                                 .type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                 .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                                 .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 .rank = 2,
                                 .extents = {(uint64_t)cols, (uint64_t)o->m.rows},
                                 .strides = {form->pitch},
                                 .box = {BSMM_SCALED_ROW_BYTES / 2, box_rows},
                             },
                             &s->maps[side]);
}

static void set_params(const bsmm_product *p, wide_state *s) {
    const uint32_t a_rows = BSMM_SCALED_TILE_M, b_rows = s->tile->cols / s->tile->ctas;
    bsmm_scaled_params *params = &s->params;
    bsmm_scaled_tile_set(p, s->tile, params);
    params->epilogue = bsmm_gpu_epilogue_of(p);
    params->store = bsmm_scaled_store_of(p);
    params->k = (uint32_t)p->a.m.cols;
    params->a_parts = s->sources[0].form.parts;
    params->b_parts = s->sources[1].form.parts;
    params->k_blocks = (uint32_t)bsmm_ceil_div(p->a.m.cols, BSMM_PACK_PART_COLS) * params->a_parts *
                       params->b_parts;
    params->element_bytes = (a_rows + b_rows) * BSMM_SCALED_ROW_BYTES;
    params->form = form_of(s);
    map_rows(p, 0, a_rows, s);
    map_rows(p, 1, b_rows, s);
}

static bsmm_status make_in_context(const bsmm_product *p, wide_state *s) {
    set_params(p, s);
    bsmm_scaled_result_map(p, s->params.store, &s->d);
    for (int i = 0; i < 2; i++)
        BSMM_TRY(bsmm_wgmma_packer_make(p, bsmm_cuda_side(p, i), &s->sources[i], &s->packers[i]));
    BSMM_TRY(bsmm_pack_clear_load(p->device, &s->clear));
    if (s->may_refuse) BSMM_TRY(bsmm_cuda_generic_make(p, true, &s->generic));
    return bsmm_scaled_tile_make(p, s->tile, &functions[s->tile->ctas - 1], BSMM_SCALED_THREADS,
                                 &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

/* ---- running a plan ---- */

/* Queues the kernels that pack one operand to `room`, and sets its parameters. */
static bsmm_status bind_side(const bsmm_product *p, const wide_state *s, int side, head *h,
                             uint8_t *room, bsmm_scaled_params *params) {
    const bsmm_operand *o = bsmm_cuda_side(p, side);
    const bsmm_wgmma_source *source = &s->sources[side];
    const bsmm_wgmma_packing how = {&h->headers[side], true};
    const bool packed_before = side == 1 && p->b_packed;
    if (packed_before) room = mutable(p->packed_b);
    if (!source->stored && !packed_before)
        BSMM_TRY(bsmm_wgmma_fill(p, o, source, &s->packers[side], &how, room));
    if (!source->stored)
        params->headers[side] = packed_before ? (const bsmm_pack_header *)(void *)room : how.header;
    bsmm_gpu_operand_bind(o, &params->sides[side]);
    return bsmm_cuda_ready_map_at(p->device, &s->maps[side],
                                  bsmm_wgmma_side_of(o, source, room).elements,
                                  side ? &params->b : &params->a);
}

static bsmm_status run_in_context(const bsmm_product *p, const wide_state *s, void *workspace) {
    bsmm_scaled_params params = s->params;
    head *h = (head *)(((uintptr_t)workspace + 1023) / 1024 * 1024);
    uint8_t *const room = (uint8_t *)h + HEAD_BYTES;
    if (workspace_bytes(p, s)) {
        BSMM_TRY(bsmm_pack_clear(p->device, &s->clear, h, sizeof *h, p->stream));
        params.refused = &h->refused;
    }
    BSMM_TRY(bind_side(p, s, 0, h, room, &params));
    BSMM_TRY(bind_side(p, s, 1, h, room + s->sources[0].bytes, &params));
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    if (params.store != BSMM_SCALED_STORE_ANY)
        BSMM_TRY(bsmm_cuda_ready_map_at(p->device, &s->d, p->d.m.data, &params.d));
    BSMM_TRY(bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params)));
    if (!s->may_refuse) return BSMM_OK;
    return bsmm_cuda_generic_run(p, &s->generic, &(bsmm_cuda_gate){.only = params.refused});
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

/* ---- weights that are packed in advance ---- */

static uint64_t packed_b_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const wide_state *)state)->sources[1].bytes;
}

static void name_panels(const bsmm_product *p, const void *state, char *name, size_t size) {
    const bsmm_wgmma_source *b = &((const wide_state *)state)->sources[1];
    (void)p;
    snprintf(name, size, "sm100f_%s",
             b->stored ? "stored"
             : b->half ? "f16"
                       : bsmm_pack_route_name(b->route));
}

static bsmm_status pack_b(const bsmm_product *p, const void *state, void *packed) {
    const wide_state *s = state;
    const bsmm_wgmma_packing alone = {0};
    BSMM_CUDA_RETURN_INSIDE(
        p->device, bsmm_wgmma_fill(p, &p->b, &s->sources[1], &s->packers[1], &alone, packed));
}

const bsmm_kernel bsmm_kernel_cuda_sm100f_wide = {
    .name = "cuda_sm100f_wide",
    .device = "cuda",
    .state_bytes = sizeof(wide_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    .packed_b_bytes = packed_b_bytes,
    .name_panels = name_panels,
    .pack_b = pack_b,
    .alignment = 16, /* TMA requires addresses that are multiples of 16. */
    /* Every tile adds products in ascending order of K. refuse() sees to it that no result depends
     * on other rows of A. */
    .features = BSMM_FEATURE_INVARIANT,
};
