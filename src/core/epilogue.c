/* alpha * acc + beta * C + bias, rounded once into D. Eight-bit results saturate, as the units that
 * produce them do; f16 and bf16 overflow to Inf, as IEEE 754 says. */
#include "core/epilogue.h"

/* Everything but the last rounding; exact sums stay in double. */
static double finish(const bsmm_product *p, int64_t r, int64_t c, double acc) {
    double value = p->alpha * acc;
    if (p->has_c) {
        const bsmm_matrix *m = &p->c.m;
        uint32_t code = bsmm_elem_load(m->format.elem, m->data, bsmm_operand_index(&p->c, r, c));
        value += p->beta * bsmm_elem_decode(m->format.elem, code);
    }
    if (p->bias_elem)
        value += bsmm_elem_decode(p->bias_elem, bsmm_elem_load(p->bias_elem, p->bias, (uint64_t)c));
    return value;
}

void bsmm_epilogue_store(const bsmm_product *p, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const double *acc, int64_t pitch) {
    uint32_t elem = p->d.m.format.elem;
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    double global = bsmm_operand_global(&p->d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            double value = finish(p, row + r, col + c, acc[r * pitch + c]) / global;
            bsmm_elem_store(elem, p->d.m.data, bsmm_operand_index(&p->d, row + r, col + c),
                            bsmm_elem_encode(elem, value, saturate));
        }
}

void bsmm_epilogue_quantize(const bsmm_product *p, int64_t row, int64_t rows, const double *acc,
                            float *values) {
    int64_t cols = p->d.m.cols;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            values[r * cols + c] = (float)finish(p, row + r, c, acc[r * cols + c]);
    bsmm_recipe_store(p->recipe, &p->d, row, rows, 0, cols, values, cols,
                      (float)bsmm_operand_global(&p->d));
}
