/* How the decode kernels take an operand. */
#include "cuda/decode_operand.h"

bool bsmm_decode_has_steady_floats(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_F32 &&
           (f->block_cols % BSMM_DECODE_K == 0 || f->block_cols >= o->m.cols);
}

bool bsmm_decode_has_row_floats(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32 && o->m.format.block_cols >= o->m.cols;
}

uint32_t bsmm_decode_count_parts(const bsmm_operand *a) {
    uint32_t elem = a->m.format.elem;
    return elem == BSMM_ELEM_F16 ? 2 : elem == BSMM_ELEM_F32 ? 3 : 1;
}

bsmm_decode_source bsmm_decode_find_source(const bsmm_operand *a) {
    const bsmm_format *f = &a->m.format;
    uint32_t bits = bsmm_elem_row(f->elem)->bits;
    if (a->m.order != BSMM_ORDER_ROW || (uint64_t)a->m.ld * bits / 8 % 16 || a->m.cols % 8)
        return BSMM_DECODE_ANY;
    if (f->elem == BSMM_ELEM_E4M3) {
        bool mx = f->scale == BSMM_SCALE_E8M0 && f->block_rows == 1 && f->block_cols == 32 &&
                  a->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR;
        bool plain = f->scale == BSMM_SCALE_NONE || bsmm_decode_has_steady_floats(a);
        return mx || plain ? BSMM_DECODE_E4M3 : BSMM_DECODE_ANY;
    }
    if (f->scale != BSMM_SCALE_NONE) return BSMM_DECODE_ANY;
    return f->elem == BSMM_ELEM_BF16  ? BSMM_DECODE_BF16
           : f->elem == BSMM_ELEM_F16 ? BSMM_DECODE_F16
                                      : BSMM_DECODE_ANY;
}
