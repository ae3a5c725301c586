/* What the small-M kernels ask of a product's shape and of B's elements. */
#include "cpu/small_m/small_m.h"

#include <stdio.h>

const char *bsmm_small_m_refuse(const bsmm_product *p, int64_t most_rows, char *why, size_t size) {
    if (p->a.m.rows > most_rows) {
        snprintf(why, size, "A has %lld rows; above %lld packing B is faster",
                 (long long)p->a.m.rows, (long long)most_rows);
        return why;
    }
    if (p->b.m.order != BSMM_ORDER_ROW) return "B is not ORDER_ROW: its rows are read along K";
    if (p->a.m.cols == 0) return "K is 0";
    if (p->recipe) return "D is block-scaled: it stores unscaled formats only";
    return NULL;
}

int bsmm_small_m_choose_width(const bsmm_product *p, const int64_t *widths, int count) {
    int i = 0;
    while (i < count - 1 && widths[i] < p->a.m.rows)
        i++;
    return i;
}

bool bsmm_small_m_is_empty(const bsmm_operand *o, int64_t row, int64_t k0, int64_t n) {
    uint32_t elem = o->m.format.elem;
    uint32_t magnitude = (1u << (bsmm_elem_row(elem)->bits - 1)) - 1;
    uint64_t index = bsmm_operand_index(o, row, k0);
    uint32_t seen = 0;
    for (int64_t i = 0; i < bsmm_min_i64(n, o->m.cols - k0); i++)
        seen |= bsmm_elem_load(elem, o->m.data, index + (uint64_t)i);
    return !(seen & magnitude);
}
