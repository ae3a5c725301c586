/* Checks whether the small-M kernels support a product's shape and the format of B. */
#include "cpu/small_m/small_m.h"

#include <stdio.h>

const char *bsmm_small_m_refuse(const bsmm_product *p, const bsmm_small_m_limit *most, char *why,
                                size_t size) {
    int64_t most_rows = p->b.m.order == BSMM_ORDER_COMPACT ? most->compact : most->stored;
    if (p->a.m.rows > most_rows) {
        return bsmm_reason(why, size,
                           "A has %lld rows; if it has more than %lld, packing B is faster",
                           (long long)p->a.m.rows, (long long)most_rows);
    }
    if (p->b.m.order == BSMM_ORDER_ROW && most->gap_first > 0 && p->a.m.rows >= most->gap_first &&
        p->a.m.rows <= most->gap_last) {
        return bsmm_reason(why, size, "A has %lld rows; from %lld to %lld, packing B is faster",
                           (long long)p->a.m.rows, (long long)most->gap_first,
                           (long long)most->gap_last);
    }
    if (p->b.m.order == BSMM_ORDER_COL) return "B is ORDER_COL; the kernel takes only ORDER_ROW";
    if (p->a.m.cols == 0) return "K is 0";
    if (p->recipe) return "D is block-scaled; the kernel stores only unscaled formats";
    return NULL;
}

int bsmm_small_m_choose_width(const bsmm_product *p, const int64_t *widths, int count,
                              int64_t decoding) {
    int64_t least = INT64_MAX;
    int best = 0;
    for (int i = 0; i < count; i++) {
        int64_t cost = bsmm_ceil_div(p->a.m.rows, widths[i]) * (widths[i] + decoding);
        if (cost > least) continue;
        least = cost;
        best = i;
    }
    return best;
}

bool bsmm_small_m_is_empty(const bsmm_operand *o, int64_t row, int64_t k0, int64_t n) {
    uint32_t elem = o->m.format.elem;
    uint32_t magnitude = (1u << (bsmm_elem_row(elem)->bits - 1)) - 1;
    int64_t end = bsmm_min_i64(k0 + n, o->m.cols);
    uint32_t seen = 0;
    for (int64_t k = k0; k < end; k++)
        seen |= bsmm_elem_load(elem, o->m.data, bsmm_operand_index(o, row, k));
    return !(seen & magnitude);
}

int64_t bsmm_small_m_scale_unit(uint32_t scale, int64_t segment) {
    if (scale == BSMM_SCALE_F32) return segment;
    return scale == BSMM_SCALE_E4M3 ? BSMM_SMALL_M_STEP / 2 : BSMM_SMALL_M_STEP;
}

static const char *refuse_element(uint32_t elem, bool (*takes)(uint32_t elem), char *why,
                                  size_t size) {
    int used =
        snprintf(why, size, "B has %s elements; the kernel takes", bsmm_elem_row(elem)->name);
    const char *comma = "";
    for (uint32_t i = 1; i < BSMM_ELEM_COUNT && used >= 0 && (size_t)used < size; i++) {
        if (!takes(i)) continue;
        used += snprintf(why + used, size - (size_t)used, "%s %s", comma, bsmm_elem_row(i)->name);
        comma = ",";
    }
    return why;
}

const char *bsmm_small_m_refuse_weights(const bsmm_operand *b, bool (*takes)(uint32_t elem),
                                        int64_t segment, char *why, size_t size) {
    const bsmm_format *f = &b->m.format;
    if (!takes(f->elem)) return refuse_element(f->elem, takes, why, size);
    if (f->scale == BSMM_SCALE_E4M3 && f->elem != BSMM_ELEM_E2M1) {
        return bsmm_reason(
            why, size,
            "B has %s elements with e4m3 scales; the kernel takes such scales only with e2m1",
            bsmm_elem_row(f->elem)->name);
    }
    int64_t multiple = bsmm_small_m_scale_unit(f->scale, segment);
    bool is_one_block = f->scale == BSMM_SCALE_F32 && f->block_cols >= b->m.cols;
    if (f->scale != BSMM_SCALE_NONE && f->block_cols % multiple != 0 && !is_one_block) {
        return bsmm_reason(
            why, size,
            "B has blocks of %u along K; with these scales the kernel takes multiples of %lld",
            f->block_cols, (long long)multiple);
    }
    return NULL;
}
