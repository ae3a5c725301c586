/* This file has the epilogue of one row of values. The engine's accumulators are fp32. All steps of
 * the epilogue compute in double, and the last step rounds once to D's format. Contiguous rows of
 * fp32, f16 and bf16 use the vectorized loops of epilogue_loops.c. */
#include "core/epilogue.h"
#include "cpu/engine/engine_gemm.h"
#include "cpu/epilogue/epilogue_loops.h"

#include <math.h>

void bsmm_cpu_epilogue_scale(const float *acc, double row_factor, const double *factors,
                             int64_t cols, double *values) {
    bsmm_cpu_epilogue_loops_get()->scale(acc, row_factor, factors, cols, values);
}

/* Returns the size of an element in bytes. `elem` must be f32, f16 or bf16, the formats for which
 * there are vectorized loops. */
static uint64_t wide_bytes(uint32_t elem) {
    return elem == BSMM_ELEM_F32 ? 4 : 2;
}

/* Adds factor * e to values[i], where e is element number index + i * step of the array `from`,
 * decoded from the format `elem`. */
static void add_elements(uint32_t elem, const void *from, uint64_t index, uint64_t step,
                         double factor, int64_t cols, double *values) {
    bsmm_cpu_epilogue_add_loop *add = step == 1 ? bsmm_cpu_epilogue_loops_get()->add[elem] : NULL;
    if (add) {
        add((const char *)from + index * wide_bytes(elem), factor, cols, values);
        return;
    }
    for (int64_t i = 0; i < cols; i++, index += step)
        values[i] += factor * bsmm_elem_decode(elem, bsmm_elem_load(elem, from, index));
}

static uint64_t step_along_row(const bsmm_operand *o) {
    return o->m.order == BSMM_ORDER_ROW ? 1 : (uint64_t)o->m.ld;
}

void bsmm_cpu_epilogue_add(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                           double *values) {
    if (p->alpha != 1)
        for (int64_t i = 0; i < cols; i++)
            values[i] *= p->alpha;
    if (p->has_c)
        add_elements(p->c.m.format.elem, p->c.m.data, bsmm_operand_index(&p->c, row, col),
                     step_along_row(&p->c), p->beta, cols, values);
    if (p->bias_elem) add_elements(p->bias_elem, p->bias, (uint64_t)col, 1, 1, cols, values);
}

void bsmm_cpu_epilogue_gate(const bsmm_product *p, const double *gates, const double *ups,
                            int64_t step, int64_t cols, double *values) {
    for (int64_t i = 0; i < cols; i++)
        values[i] = bsmm_epilogue_activate(p->epilogue, gates[i * step], ups[i * step]);
}

void bsmm_cpu_epilogue_apply(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                             double *values) {
    const bsmm_product_epilogue *f = p->epilogue;
    const bsmm_operand *residual = &f->residual;
    if (!bsmm_is_gated(p) && f->activation != bsmm_activation_row_of(BSMM_ACTIVATION_NONE))
        for (int64_t i = 0; i < cols; i++)
            values[i] = f->activation->apply(values[i], f->slope);
    if (f->has_residual)
        add_elements(residual->m.format.elem, residual->m.data,
                     bsmm_operand_index(residual, row, col), step_along_row(residual), 1, cols,
                     values);
    if (f->scale_by & BSMM_SCALE_BY_ROW)
        for (int64_t i = 0; i < cols; i++)
            values[i] *= (double)f->row_scale[row];
    if (f->scale_by & BSMM_SCALE_BY_COL)
        for (int64_t i = 0; i < cols; i++)
            values[i] *= (double)f->col_scale[col + i];
}

void bsmm_cpu_epilogue_divide(const bsmm_product *p, int64_t cols, double *values) {
    /* `global` is the second-level scale of D (one scale for the whole matrix), by which the
     * results are divided. If D has block scales, the recipe applies it later. */
    double global = p->recipe ? 1 : bsmm_operand_global(&p->d);
    if (global != 1)
        for (int64_t i = 0; i < cols; i++)
            values[i] /= global;
}

static bsmm_cpu_epilogue_direct_loop *direct_of(const bsmm_product *p) {
    return bsmm_cpu_epilogue_loops_get()->direct[p->d.m.format.elem];
}

/* Returns true if the direct loop, which applies the whole epilogue in one pass, can add C. It
 * cannot if D is bf16 and C is in the same memory as D. The direct loop may stop in the middle of a
 * bf16 row, at a subnormal value. The slow path then computes the whole row again and needs the
 * whole row of C. But the direct loop has already overwritten a part of this row by results. */
static bool adds_directly(const bsmm_product *p) {
    if (!p->has_c) return true;
    bool anew = p->d.m.format.elem == BSMM_ELEM_BF16 && p->c.m.data == p->d.m.data;
    return !anew && bsmm_elem_is_wide(p->c.m.format.elem) && step_along_row(&p->c) == 1;
}

bool bsmm_cpu_epilogue_is_direct(const bsmm_product *p) {
    return !p->recipe && !p->epilogue && adds_directly(p) && step_along_row(&p->d) == 1 &&
           bsmm_operand_global(&p->d) == 1 && direct_of(p);
}

/* Adds an input to the list of a tile. The direct loop, which applies the whole epilogue in one
 * pass, adds the inputs of this list. `from` is C or the bias, and `index` is the number of its
 * first element. `pitch` is the distance of its rows in elements, which is 0 for the bias. */
static void add_to_tile(bsmm_cpu_epilogue_tile *tile, uint32_t elem, const void *from,
                        uint64_t index, int64_t pitch, double factor) {
    int64_t bytes = (int64_t)wide_bytes(elem);
    tile->added[tile->added_count++] = (bsmm_cpu_epilogue_added){
        (const uint8_t *)from + index * (uint64_t)bytes, pitch * bytes, elem, factor};
}

int64_t bsmm_cpu_epilogue_direct(const bsmm_product *p, int64_t row, int64_t col,
                                 bsmm_cpu_epilogue_tile tile) {
    uint64_t bytes = wide_bytes(p->d.m.format.elem);
    tile.alpha = p->alpha;
    tile.to = (uint8_t *)p->d.m.data + bsmm_operand_index(&p->d, row, col) * bytes;
    tile.to_pitch = p->d.m.ld * (int64_t)bytes;
    tile.added_count = 0;
    if (p->has_c)
        add_to_tile(&tile, p->c.m.format.elem, p->c.m.data, bsmm_operand_index(&p->c, row, col),
                    p->c.m.ld, p->beta);
    if (p->bias_elem) add_to_tile(&tile, p->bias_elem, p->bias, (uint64_t)col, 0, 1);
    return direct_of(p)(&tile);
}

/* Prefetches the cache lines of a rectangle of an operand, for writing if `writes` is true, else
 * for reading. Callers pass a constant `writes`, so that the compiler keeps only one of the two
 * prefetch instructions. */
static inline void expect_part(const bsmm_operand *o, int64_t row, int64_t rows, int64_t col,
                               int64_t cols, const bool writes) {
    enum { LINE = 64 };
    int64_t bytes = (int64_t)wide_bytes(o->m.format.elem);
    const char *at = (const char *)o->m.data + (int64_t)bsmm_operand_index(o, row, col) * bytes;
    int64_t into_line = (int64_t)((uintptr_t)at % LINE);
    for (int64_t r = 0; r < rows; r++, at += o->m.ld * bytes)
        for (int64_t i = -into_line; i < cols * bytes; i += LINE)
            if (writes)
                __builtin_prefetch(at + i, 1, 2);
            else
                __builtin_prefetch(at + i, 0, 2);
}

void bsmm_cpu_epilogue_expect(const bsmm_product *p, int64_t row, int64_t rows, int64_t col,
                              int64_t cols) {
    expect_part(&p->d, row, rows, col, cols, true);
    if (p->has_c && p->c.m.data != p->d.m.data) expect_part(&p->c, row, rows, col, cols, false);
}

static bsmm_cpu_epilogue_narrow narrow_of(uint32_t elem) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    return (bsmm_cpu_epilogue_narrow){.mantissa_bits = info->mantissa_bits,
                                      .max_code = bsmm_elem_encode(elem, info->max, true),
                                      .nan_code = bsmm_elem_encode(elem, (double)NAN, true),
                                      .lowest = 1 - info->bias};
}

void bsmm_cpu_epilogue_store(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                             const double *values) {
    const bsmm_operand *d = &p->d;
    uint32_t elem = d->m.format.elem;
    uint64_t index = bsmm_operand_index(d, row, col), step = step_along_row(d);
    bsmm_cpu_epilogue_store_loop *store = elem < BSMM_CPU_EPILOGUE_ELEMS && step == 1
                                              ? bsmm_cpu_epilogue_loops_get()->store[elem]
                                              : NULL;
    if (store) {
        store(values, cols, (char *)d->m.data + index * wide_bytes(elem));
        return;
    }
    bool saturate = bsmm_elem_row(elem)->bits == 8;
    if (saturate && step == 1) {
        bsmm_cpu_epilogue_narrow narrow = narrow_of(elem);
        bsmm_cpu_epilogue_loops_get()->store_narrow(&narrow, values, cols,
                                                    (uint8_t *)d->m.data + index);
        return;
    }
    for (int64_t i = 0; i < cols; i++, index += step)
        bsmm_elem_store(elem, d->m.data, index, bsmm_elem_encode(elem, values[i], saturate));
}
