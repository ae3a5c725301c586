#include "cuda/host/wgmma_operands.h"

#include "cuda/host/kernel.h"

static uint64_t pitch_of(const bsmm_operand *o) {
    return (uint64_t)o->m.ld * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns true if TMA can read the operand's elements where the caller stores them. The alignment
 * of their address need not be tested here, because bsmm_kernel.alignment has already required it.
 */
static bool are_stored(const bsmm_operand *o, const bsmm_wgmma_wish *wish) {
    uint32_t elem = o->m.format.elem;
    uint32_t wide = wish->elem == BSMM_ELEM_F16 ? BSMM_ELEM_F16 : BSMM_ELEM_BF16;
    bool eaten = bsmm_pack_is_bf16(wish->route)
                     ? elem == wide && o->m.format.scale == BSMM_SCALE_NONE
                     : bsmm_cuda_is_fp8(elem) && o->m.format.scale == BSMM_SCALE_F32;
    return eaten && o->m.order == BSMM_ORDER_ROW && pitch_of(o) % 16 == 0;
}

bool bsmm_wgmma_is_stored_fp8(const bsmm_operand *o) {
    return are_stored(o, &(bsmm_wgmma_wish){.route = BSMM_PACK_FP8});
}

static bool is_pitch(const bsmm_operand *o) {
    return o->map.digit_count == 0 && o->map.tile_rows == 1 && o->map.tile_cols == 1;
}

/* Returns true if the GEMM kernel can read the operand's fp32 scales where the caller stores them.
 * The scales must be 1 x 128 with consecutive rows in consecutive floats, or 128 x 128 at any
 * stride. */
static bool are_stored_scales(const bsmm_operand *o, bool by_row) {
    if (o->m.format.scale != BSMM_SCALE_F32 || !is_pitch(o)) return false;
    if (o->m.format.block_cols != BSMM_PACK_GROUP) return false;
    /* The GEMM kernel computes offsets of scales with 32 bits, also for up to 96 k blocks (of 128
     * elements) past the end of K. `last` is the largest of all these offsets, so it must fit in 32
     * bits. */
    uint64_t last = o->scale_bytes / sizeof(float) + 96 * o->map.tile_col_step;
    if (!by_row) return o->m.format.block_rows == 128 && last <= UINT32_MAX;
    return o->m.format.block_rows == 1 && o->map.tile_row_step == 1 &&
           o->map.tile_col_step % 4 == 0;
}

bool bsmm_wgmma_has_row_scales(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_F32 && f->block_rows == 1 && f->block_cols >= o->m.cols &&
           is_pitch(o) && o->map.tile_row_step == 1;
}

static uint64_t scale_room(const bsmm_operand *o, bool by_row) {
    uint64_t groups = (uint64_t)bsmm_ceil_div(o->m.cols, 128);
    uint64_t lines =
        (uint64_t)(by_row ? bsmm_round_up(o->m.rows, 4) : bsmm_ceil_div(o->m.rows, 128));
    return (uint64_t)bsmm_round_up((int64_t)(groups * lines * sizeof(float)), 1024);
}

static uint64_t room_of(const bsmm_operand *o, const bsmm_wgmma_source *s) {
    uint64_t bytes = 0;
    if (!s->stored) bytes = bsmm_pack_layout_of(o->m.rows, o->m.cols, s->route).bytes;
    /* The packing kernels write scales of rows (1 x 128) together with the packed elements. A
     * separate kernel copies scales of 128 x 128 blocks, and scales of an operand whose elements
     * are not packed. The copied scales need memory of their own. */
    if (s->scaled && !s->stored_scales && (s->stored || !s->by_row))
        bytes = (uint64_t)bsmm_round_up((int64_t)bytes, 1024) + scale_room(o, s->by_row);
    return (uint64_t)bsmm_round_up((int64_t)bytes, 1024);
}

static bool packs_scales(const bsmm_wgmma_source *s) {
    return s->scaled && !s->stored_scales && (s->stored || !s->by_row);
}

/* Sets the address offset of the scales that the GEMM kernel reads. The scales lie where the caller
 * stores them, or where a separate kernel copies them, or next to the packed elements, where the
 * packing kernel writes them. */
static void set_scales(const bsmm_operand *o, const bsmm_pack_layout *at, bsmm_wgmma_source *s) {
    bsmm_wgmma_form *f = &s->form;
    const bool alone = packs_scales(s);
    s->scales_at = alone ? (uint64_t)bsmm_round_up(s->stored ? 0 : (int64_t)at->bytes, 1024)
                         : at->group_scales;
    if (s->by_row) {
        f->rows_pitch = s->form.is_row_wide ? (uint64_t)bsmm_round_up(o->m.rows, 4)
                        : s->stored_scales  ? o->map.tile_col_step
                        : alone             ? (uint64_t)bsmm_round_up(o->m.rows, 4)
                                            : at->group_pitch;
        return;
    }
    f->n_step = s->stored_scales ? o->map.tile_row_step : (uint64_t)bsmm_ceil_div(o->m.cols, 128);
    f->k_step = s->stored_scales ? o->map.tile_col_step : 1;
}

static void set_form(const bsmm_operand *o, bsmm_wgmma_source *s) {
    const bsmm_pack_layout at = bsmm_pack_layout_of(o->m.rows, o->m.cols, s->route);
    s->elements_at = at.elements;
    s->form.pitch = s->stored ? pitch_of(o) : at.element_pitch;
    s->form.parts = s->stored ? 1 : bsmm_pack_parts(s->route);
    if (bsmm_pack_is_bf16(s->route))
        s->form.elem = s->half ? BSMM_ELEM_F16 : BSMM_ELEM_BF16;
    else
        s->form.elem = o->m.format.elem == BSMM_ELEM_E5M2 ? BSMM_ELEM_E5M2 : BSMM_ELEM_E4M3;
    if (s->scaled) set_scales(o, &at, s);
}

/* Returns true if a bf16 operand must be packed, although the kernel could read it where the caller
 * stores it. Packing also writes a header with the range of the operand's values, and the header is
 * needed in two cases. First, the product has a C. Without a header, the kernel finds out only at
 * the end, from its accumulators, that a value was too large or too small for the fast path. The
 * whole GEMM must then be computed again, which is impossible if D has already overwritten C.
 * Second, the GEMM kernel multiplies accumulators by scales. It can check the range of these
 * products only if it knows the range of the elements. */
static bool needs_header(const bsmm_product *p, const bsmm_wgmma_wish *wish) {
    return !wish->settles && (p->has_c || wish->kind != BSMM_WGMMA_BF16);
}

/* Decides whether the GEMM kernel reads an operand where the caller stores it, or packed. A bf16
 * operand may have to be packed only because packing writes a header, which tells whether its
 * values are too large or too small for fp32 sums of products. No f16 value is, so an f16 operand
 * needs no header. */
bsmm_wgmma_source bsmm_wgmma_source_of(const bsmm_product *p, const bsmm_wgmma_wish *wish) {
    const bsmm_operand *o = wish->is_b ? &p->b : &p->a;
    const bool half = wish->elem == BSMM_ELEM_F16, bf16 = bsmm_pack_is_bf16(wish->route) && !half;
    bsmm_wgmma_source s = {
        .route = wish->route,
        .stored = are_stored(o, wish) && !(bf16 && needs_header(p, wish)),
        .scaled = wish->scaled,
        .half = half,
        .by_row = wish->by_rows || !(wish->is_b && wish->kind == BSMM_WGMMA_BLOCK),
        .form = {.shift = wish->shift},
    };
    s.form.is_row_wide =
        wish->row_wide && s.scaled && s.stored && s.by_row && bsmm_wgmma_has_row_scales(o);
    s.stored_scales = s.form.is_row_wide || (s.scaled && are_stored_scales(o, s.by_row));
    s.bytes = room_of(o, &s);
    set_form(o, &s);
    return s;
}

/* Returns true if one launch packs the operand to f16. If B has e8m0 scales and is packed in
 * advance, it needs two launches. The first one packs it to bf16. The second one tests whether f16
 * holds all of its values. If so, it converts them to f16; otherwise the bf16 elements stay as they
 * are. */
bool bsmm_wgmma_is_f16_at_once(const bsmm_product *p, const bsmm_operand *o,
                               const bsmm_wgmma_source *s) {
    if (!s->half || s->stored || !bsmm_pack_has_f16(o)) return false;
    return o->m.format.scale != BSMM_SCALE_E8M0 || !p->b_packed;
}

bsmm_status bsmm_wgmma_packer_make(const bsmm_product *p, const bsmm_operand *o,
                                   const bsmm_wgmma_source *s, bsmm_wgmma_packer *made) {
    const bool at_once = bsmm_wgmma_is_f16_at_once(p, o, s);
    made->packs_scales = packs_scales(s);
    if (!s->stored) {
        made->elements = at_once ? bsmm_pack_f16_launch_of(o, s->scaled, s->form.shift)
                                 : bsmm_pack_launch_of(o, s->route, s->scaled, NULL);
        BSMM_TRY(bsmm_pack_load(p->device, &made->elements));
    }
    made->halves = s->half && !s->stored && !at_once;
    if (made->halves) {
        made->half = bsmm_pack_half_launch_of(o, s->form.shift);
        BSMM_TRY(bsmm_pack_half_load(p->device, &made->half));
    }
    if (!made->packs_scales) return BSMM_OK;
    made->scales = bsmm_pack_scales_launch_of(o, s->by_row, NULL);
    return bsmm_pack_scales_load(p->device, &made->scales);
}

static bsmm_status fill_elements(const bsmm_product *p, const bsmm_operand *o,
                                 const bsmm_wgmma_packer *made, const bsmm_wgmma_packing *how,
                                 void *room) {
    bsmm_pack_launch launch = made->elements;
    bsmm_pack_bind(o, room, &launch);
    if (how->header) launch.job.header = how->header;
    launch.header_is_clear = how->header != NULL;
    launch.overlaps = how->overlaps;
    launch.cleared = how->cleared;
    BSMM_TRY(bsmm_pack_run(p->device, &launch, p->stream));
    if (!made->halves) return BSMM_OK;
    bsmm_pack_half_launch half = made->half;
    half.job.words = launch.job.elements;
    half.job.header = o->m.format.scale == BSMM_SCALE_E8M0 ? launch.job.header : NULL;
    return bsmm_pack_half_run(p->device, &half, p->stream);
}

bsmm_status bsmm_wgmma_fill(const bsmm_product *p, const bsmm_operand *o,
                            const bsmm_wgmma_source *s, const bsmm_wgmma_packer *made,
                            const bsmm_wgmma_packing *how, void *room) {
    if (!s->stored) BSMM_TRY(fill_elements(p, o, made, how, room));
    if (!made->packs_scales) return BSMM_OK;
    bsmm_pack_scales_launch launch = made->scales;
    launch.job.scales = o->m.scales;
    launch.job.to = (float *)(void *)((uint8_t *)room + s->scales_at);
    return bsmm_pack_scales_run(p->device, &launch, p->stream);
}

bsmm_wgmma_side bsmm_wgmma_side_of(const bsmm_operand *o, const bsmm_wgmma_source *s,
                                   uint8_t *room) {
    bsmm_wgmma_side side = {.elements = s->stored ? o->m.data : room + s->elements_at};
    if (!s->scaled) return side;
    const float *scales =
        s->stored_scales ? o->m.scales : (const float *)(void *)(room + s->scales_at);
    if (s->by_row)
        side.rows = scales;
    else
        side.blocks = scales;
    return side;
}
