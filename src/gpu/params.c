/* Fills the parameter structs of GPU kernels from a product, which is the validated description of
 * a GEMM. */
#include "gpu/params.h"

#include <math.h>

void bsmm_gpu_operand_bind(const bsmm_operand *o, bsmm_gpu_operand *to) {
    to->data = o->m.data;
    to->scales = o->m.scales;
}

bsmm_gpu_operand bsmm_gpu_operand_of(const bsmm_operand *o) {
    bool by_rows = o->m.order == BSMM_ORDER_ROW;
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    bsmm_gpu_operand to = {
        .row_step = by_rows ? (uint64_t)o->m.ld : 1,
        .col_step = by_rows ? 1 : (uint64_t)o->m.ld,
        .elem = o->m.format.elem,
        .bits = bits,
        .scale = o->m.format.scale,
    };
    bsmm_gpu_operand_bind(o, &to);
    if (bits <= 8) to.codec = bsmm_narrow_codec_of(to.elem);
    if (to.scale == BSMM_SCALE_NONE) return to;
    to.row_map = bsmm_axis_map_of(&o->map, 0, o->m.format.block_rows);
    to.col_map = bsmm_axis_map_of(&o->map, 1, o->m.format.block_cols);
    return to;
}

static uint64_t row_step(const bsmm_operand *o) {
    return o->m.order == BSMM_ORDER_ROW ? (uint64_t)o->m.ld : 1;
}

static uint64_t col_step(const bsmm_operand *o) {
    return o->m.order == BSMM_ORDER_ROW ? 1 : (uint64_t)o->m.ld;
}

void bsmm_gpu_epilogue_bind(const bsmm_product *p, bsmm_gpu_epilogue *e) {
    e->d = p->d.m.data;
    e->c = p->has_c ? p->c.m.data : NULL;
    e->bias = p->bias_elem ? p->bias : NULL;
    e->globals[0] = p->a.m.global_scale;
    e->globals[1] = p->b.m.global_scale;
    e->globals[2] = p->d.m.global_scale;
}

bsmm_gpu_epilogue bsmm_gpu_epilogue_of(const bsmm_product *p) {
    uint32_t elem = p->d.m.format.elem;
    bool narrow = bsmm_elem_row(elem)->bits == 8;
    bsmm_gpu_epilogue e = {
        .d_row = row_step(&p->d),
        .d_col = col_step(&p->d),
        .alpha = p->alpha,
        .beta = p->beta,
        .divides = {p->a.m.global_kind, p->b.m.global_kind, p->d.m.global_kind},
        .d_elem = elem,
        .c_elem = p->c.m.format.elem,
        .bias_elem = p->bias_elem,
        .d_nan = bsmm_elem_encode(elem, (double)NAN, narrow),
    };
    bsmm_gpu_epilogue_bind(p, &e);
    if (p->has_c) {
        e.c_row = row_step(&p->c);
        e.c_col = col_step(&p->c);
    }
    if (narrow) e.d_codec = bsmm_narrow_codec_of(elem);
    return e;
}

const char *bsmm_gpu_refuse_elements(const bsmm_product *p, char *why, size_t size) {
    const uint32_t elems[] = {p->a.m.format.elem, p->b.m.format.elem, p->d.m.format.elem};
    for (size_t i = 0; i < BSMM_COUNT(elems); i++) {
        if (bsmm_gpu_knows_elem(elems[i])) continue;
        return bsmm_reason(why, size, "%c has %s elements, for which there is no device code",
                           "ABD"[i], bsmm_elem_row(elems[i]) -> name);
    }
    return NULL;
}
