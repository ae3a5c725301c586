/* This file has the scalar epilogue. It computes alpha * accumulator + beta * C + bias in double,
 * applies the activation, adds the residual, multiplies by the row and column factors, and rounds
 * once to D's format. An 8-bit D saturates, as in hardware that converts to FP8. f16 and bf16
 * overflow to Inf, as in IEEE 754. */
#include "core/epilogue.h"

static double element_at(const bsmm_operand *o, int64_t r, int64_t c) {
    uint32_t elem = o->m.format.elem;
    return bsmm_elem_decode(elem, bsmm_elem_load(elem, o->m.data, bsmm_operand_index(o, r, c)));
}

/* Returns alpha * acc + beta * C + bias in double. `acc` is the accumulator in row r and column n
 * of A x B^T. */
static double combine(const bsmm_product *p, int64_t r, int64_t n, double acc) {
    double value = p->alpha * acc;
    if (p->has_c) value += p->beta * element_at(&p->c, r, n);
    if (p->bias_elem)
        value += bsmm_elem_decode(p->bias_elem, bsmm_elem_load(p->bias_elem, p->bias, (uint64_t)n));
    return value;
}

/* A gated activation computes column c of D as f(gate) * up, where gate and up are values of two
 * columns of A x B^T. These functions return the numbers of the two columns. */
static int64_t gate_column(const bsmm_product *p, int64_t c) {
    return p->epilogue->interleaved ? 2 * c : c;
}
static int64_t up_column(const bsmm_product *p, int64_t c) {
    return p->epilogue->interleaved ? 2 * c + 1 : c + p->d.m.cols;
}

static double activate(const bsmm_product *p, int64_t r, int64_t c, const double *acc, int64_t up) {
    if (!bsmm_is_gated(p)) return bsmm_epilogue_activate(p->epilogue, combine(p, r, c, *acc), 0);
    return bsmm_epilogue_activate(p->epilogue, combine(p, r, gate_column(p, c), *acc),
                                  combine(p, r, up_column(p, c), acc[up]));
}

/* Returns D(r, c) in double, before it is rounded to D's format. With a gated activation, f(gate) *
 * up, *acc is the accumulator of the gate and acc[up] is the accumulator of the up. */
static double unrounded_result(const bsmm_product *p, int64_t r, int64_t c, const double *acc,
                               int64_t up) {
    const bsmm_product_epilogue *f = p->epilogue;
    if (!f) return combine(p, r, c, *acc);
    double value = activate(p, r, c, acc, up);
    if (f->has_residual) value += element_at(&f->residual, r, c);
    if (f->scale_by & BSMM_SCALE_BY_ROW) value *= (double)f->row_scale[r];
    if (f->scale_by & BSMM_SCALE_BY_COL) value *= (double)f->col_scale[c];
    return value;
}

void bsmm_epilogue_store(const bsmm_product *p, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const bsmm_sums *s) {
    uint32_t elem = p->d.m.format.elem;
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    double global = bsmm_operand_global(&p->d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const double *acc = s->acc + r * s->pitch + c * s->step;
            double value = unrounded_result(p, row + r, col + c, acc, s->up) / global;
            bsmm_elem_store(elem, p->d.m.data, bsmm_operand_index(&p->d, row + r, col + c),
                            bsmm_elem_encode(elem, value, saturate));
        }
}

void bsmm_epilogue_quantize(const bsmm_product *p, int64_t row, int64_t rows, const bsmm_sums *s,
                            float *values) {
    int64_t cols = p->d.m.cols;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            values[r * cols + c] =
                (float)unrounded_result(p, row + r, c, s->acc + r * s->pitch + c * s->step, s->up);
    bsmm_recipe_store(p->recipe, &p->d, row, rows, 0, cols, values, cols,
                      (float)bsmm_operand_global(&p->d));
}
