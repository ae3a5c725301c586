#include "cuda/host/wide_operands.h"

#include "gpu/params.h"

#include <stdio.h>

/* The functions from here on choose the formats that the tensor cores multiply. */

/* Returns true if the operand is f16 that TMA can read as it is stored. */
static bool is_stored_f16(const bsmm_operand *o) {
    return o->m.format.elem == BSMM_ELEM_F16 && o->m.format.scale == BSMM_SCALE_NONE &&
           o->m.order == BSMM_ORDER_ROW && o->m.ld % 8 == 0;
}

/* Returns true if f16 holds all values of the operand's format exactly, whatever its block scales
 * are. Every f16 number is a multiple of 2^-24 with a magnitude below 2^16. The function tests that
 * the format's values have these two properties. e4m3 scales, which lie between 2^-9 and 2^9, are
 * multiplied into the values. fp32 scales are not: the kernel multiplies sums by them, so they do
 * not matter here. */
static bool is_half(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->elem == BSMM_ELEM_F16) return is_stored_f16(o);
    if (!bsmm_elem_is_narrow(f->elem)) return false;
    if (f->scale == BSMM_SCALE_E8M0) return false;
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

/* Returns true if packing to bf16 is exact whatever the operand's values are. It may be inexact for
 * e8m0 scales and for elements of 16 and 32 bits, because their values may lie outside the range of
 * normal bf16 numbers. It may also be inexact for fp32 scales, because a scale of Inf must be
 * multiplied into the elements. */
static bool is_always_exact(const bsmm_operand *o, const bsmm_wgmma_source *source) {
    const uint32_t scale = o->m.format.scale;
    return source->stored || (bsmm_elem_is_narrow(o->m.format.elem) &&
                              (scale == BSMM_SCALE_NONE || scale == BSMM_SCALE_E4M3));
}

const char *bsmm_wide_begin(const bsmm_product *p, bsmm_wide_operands *s, char *why, size_t size) {
    s->elem = elem_of(p);
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        bsmm_wgmma_source *source = &s->sources[i];
        const bool scaled = o->m.format.scale == BSMM_SCALE_F32;
        *source = bsmm_wgmma_source_of(
            p, &(bsmm_wgmma_wish){.kind = scaled ? BSMM_WGMMA_ROW : BSMM_WGMMA_BF16,
                                  .route = route_of(o, s->elem),
                                  .elem = s->elem,
                                  .is_b = i == 1,
                                  .scaled = scaled,
                                  .settles = true});
        const char *reason =
            source->stored ? NULL : bsmm_pack_refuse(o, "AB"[i], source -> route, why, size);
        if (reason) return reason;
    }
    s->may_refuse =
        !is_always_exact(&p->a, &s->sources[0]) || !is_always_exact(&p->b, &s->sources[1]);
    /* If bf16 does not hold the values of one row of A, the generic GEMM computes all rows, and
     * adds in another order. The bits of a row's results would thus depend on the other rows. The
     * kernel therefore refuses a product that must be batch-invariant. */
    if (p->invariant && !is_always_exact(&p->a, &s->sources[0]))
        return "flags has BATCH_INVARIANT; one row of A may change the order of sums of all rows";
    return NULL;
}

int64_t bsmm_wide_pairs(const bsmm_wide_operands *s) {
    return (int64_t)s->sources[0].form.parts * s->sources[1].form.parts;
}

/* The functions from here on compute the sizes and addresses of the parts of the workspace. */

/* Describes the first bytes of the workspace, which each run sets to 0. Behind them lies the packed
 * A, and then the packed B, unless B was packed in advance. */
typedef struct head {
    bsmm_pack_header headers[2];
    uint32_t refused;
} head;

enum { HEAD_BYTES = 1024 };
_Static_assert(sizeof(head) <= HEAD_BYTES, "packed operands begin behind it");

uint64_t bsmm_wide_workspace_bytes(const bsmm_product *p, const void *state) {
    const bsmm_wide_operands *s = state;
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

/* The functions from here on choose how the kernel computes a product. They run once, before the
 * product is computed for the first time. */

uint32_t bsmm_wide_form_of(const bsmm_wide_operands *s, uint32_t rows, uint32_t cols) {
    enum { F32 = 1, F16 = 0, BF16 = 1 };
    const uint32_t elem = s->elem == BSMM_ELEM_F16 ? F16 : BF16;
    return F32 << 4 | elem << 7 | elem << 10 | cols / 8 << 17 | rows / 16 << 24;
}

static void map_rows(const bsmm_product *p, int side, uint32_t rows, bsmm_wide_operands *s) {
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
                                 .box = {BSMM_PACK_PART_COLS, BSMM_SCALED_BOX_ROWS(rows)},
                             },
                             &s->maps[side]);
}

bsmm_status bsmm_wide_make(const bsmm_product *p, uint32_t a_rows, uint32_t b_rows,
                           bsmm_wide_operands *s) {
    for (int i = 0; i < 2; i++) {
        map_rows(p, i, i ? b_rows : a_rows, s);
        BSMM_TRY(bsmm_wgmma_packer_make(p, bsmm_cuda_side(p, i), &s->sources[i], &s->packers[i]));
    }
    BSMM_TRY(bsmm_pack_clear_load(p->device, &s->clear));
    return s->may_refuse ? bsmm_cuda_generic_make(p, true, &s->generic) : BSMM_OK;
}

/* The functions from here on queue the kernels of a product each time it is computed. */

/* Queues the kernels that pack one operand to the memory `room`, and sets the operand's kernel
 * parameters. */
static bsmm_status bind_side(const bsmm_product *p, const bsmm_wide_operands *s, int side, head *h,
                             uint8_t *room, bsmm_scaled_params *params) {
    const bsmm_operand *o = bsmm_cuda_side(p, side);
    const bsmm_wgmma_source *source = &s->sources[side];
    const bsmm_wgmma_packing how = {&h->headers[side], true, NULL};
    const bool packed_before = side == 1 && p->b_packed;
    if (packed_before) room = mutable(p->packed_b);
    if (!source->stored && !packed_before)
        BSMM_TRY(bsmm_wgmma_fill(p, o, source, &s->packers[side], &how, room));
    if (!is_always_exact(o, source))
        params->headers[side] = packed_before ? (const bsmm_pack_header *)(void *)room : how.header;
    bsmm_gpu_operand_bind(o, &params->sides[side]);
    return bsmm_cuda_ready_map_at(p->device, &s->maps[side],
                                  bsmm_wgmma_side_of(o, source, room).elements,
                                  side ? &params->b : &params->a);
}

bsmm_status bsmm_wide_bind(const bsmm_product *p, const bsmm_wide_operands *s, void *workspace,
                           bsmm_scaled_params *params) {
    head *h = (head *)(((uintptr_t)workspace + 1023) / 1024 * 1024);
    uint8_t *const room = (uint8_t *)h + HEAD_BYTES;
    if (bsmm_wide_workspace_bytes(p, s)) {
        BSMM_TRY(bsmm_pack_clear(p->device, &s->clear, h, sizeof *h, p->stream));
        params->refused = &h->refused;
    }
    BSMM_TRY(bind_side(p, s, 0, h, room, params));
    return bind_side(p, s, 1, h, room + s->sources[0].bytes, params);
}

bsmm_status bsmm_wide_run_otherwise(const bsmm_product *p, const bsmm_wide_operands *s,
                                    const uint32_t *refused) {
    if (!s->may_refuse) return BSMM_OK;
    return bsmm_cuda_generic_run(p, &s->generic, &(bsmm_cuda_gate){.only = refused});
}

/* The functions from here on handle weights that are packed in advance. */

uint64_t bsmm_wide_packed_b_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const bsmm_wide_operands *)state)->sources[1].bytes;
}

void bsmm_wide_name_panels(const bsmm_product *p, const void *state, char *name, size_t size) {
    const bsmm_wgmma_source *b = &((const bsmm_wide_operands *)state)->sources[1];
    (void)p;
    snprintf(name, size, "sm100f_%s",
             b->stored ? "stored"
             : b->half ? "f16"
                       : bsmm_pack_route_name(b->route));
}

bsmm_status bsmm_wide_pack_b(const bsmm_product *p, const void *state, void *packed) {
    const bsmm_wide_operands *s = state;
    const bsmm_wgmma_packing alone = {0};
    BSMM_CUDA_RETURN_INSIDE(
        p->device, bsmm_wgmma_fill(p, &p->b, &s->sources[1], &s->packers[1], &alone, packed));
}
