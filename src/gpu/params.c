/* From a product to what kernels are given of it. */
#include "gpu/params.h"

#include <math.h>

bsmm_gpu_operand bsmm_gpu_operand_of(const bsmm_operand *o) {
    bool by_rows = o->m.order == BSMM_ORDER_ROW;
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    bsmm_gpu_operand to = {
        .data = o->m.data,
        .scales = o->m.scales,
        .row_step = by_rows ? (uint64_t)o->m.ld : 1,
        .col_step = by_rows ? 1 : (uint64_t)o->m.ld,
        .elem = o->m.format.elem,
        .bits = bits,
        .scale = o->m.format.scale,
    };
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

bsmm_gpu_epilogue bsmm_gpu_epilogue_of(const bsmm_product *p) {
    uint32_t elem = p->d.m.format.elem;
    bool narrow = bsmm_elem_row(elem)->bits == 8;
    bsmm_gpu_epilogue e = {
        .d = p->d.m.data,
        .c = p->has_c ? p->c.m.data : NULL,
        .bias = p->bias_elem ? p->bias : NULL,
        .d_row = row_step(&p->d),
        .d_col = col_step(&p->d),
        .alpha = p->alpha,
        .beta = p->beta,
        .globals = {p->a.m.global_scale, p->b.m.global_scale, p->d.m.global_scale},
        .divides = {p->a.m.global_kind, p->b.m.global_kind, p->d.m.global_kind},
        .d_elem = elem,
        .c_elem = p->c.m.format.elem,
        .bias_elem = p->bias_elem,
        .d_nan = bsmm_elem_encode(elem, (double)NAN, narrow),
    };
    if (p->has_c) {
        e.c_row = row_step(&p->c);
        e.c_col = col_step(&p->c);
    }
    if (narrow) e.d_codec = bsmm_narrow_codec_of(elem);
    return e;
}

bool bsmm_gpu_is_small(const bsmm_product *p) {
    return p->d.m.rows <= INT32_MAX && p->d.m.cols <= INT32_MAX && p->a.m.cols <= INT32_MAX;
}
