#include "packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void packing_describe(packing *w, const test_matrix *t, const char *other, bool is_b) {
    bsmm_matrix with = describe(format_named(other), 4, t->m.cols);
    bsmm_matrix d = describe(format_named("f32"), is_b ? 4 : t->m.rows, is_b ? t->m.rows : 4);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = is_b ? &with : &t->m, .b = is_b ? &t->m : &with, .d = &d};
    w->is_b = is_b;
    assert_int_equal(bsmm_describe(&desc, &w->request), BSMM_OK);
}

static packed allocate(const packing *w, int64_t panels) {
    int64_t units = bsmm_ceil_div(w->request.product.a.m.cols, w->unit);
    packed to = {.bytes = (uint64_t)(panels * units * w->unit_bytes)};
    to.units = guarded_alloc(to.bytes);
    if (to.bytes) memset(to.units, 0xff, to.bytes);
    for (int64_t i = 0; i < PACKING_MOST_ROWS; i++)
        to.factors[i] = 1;
    return to;
}

packed packing_pack(const bsmm_pack_isa *isa, const packing *w, int64_t row, int64_t rows) {
    packed to = allocate(w, 1);
    w->pack(isa, w, row, rows, &(bsmm_panel){to.units, to.factors, to.wide});
    return to;
}

void packing_check_panel(const packing *w, const test_matrix *t, int64_t row,
                         void (*check_values)(const packing *w, const packed *p,
                                              const test_matrix *t, int64_t row, int64_t rows),
                         void (*check_units)(const packed *plain, const packed *other)) {
    const bsmm_pack_isa *const isas[] = {&bsmm_pack_portable, bsmm_pack_avx2(), bsmm_pack_avx512()};
    int64_t rows = bsmm_min_i64(w->width, t->m.rows - row);
    packed plain = packing_pack(isas[0], w, row, rows);
    check_values(w, &plain, t, row, rows);
    for (size_t i = 1; i < BSMM_COUNT(isas); i++) {
        if (!isas[i]) continue;
        packed other = packing_pack(isas[i], w, row, rows);
        check_units(&plain, &other);
        assert_memory_equal(plain.factors, other.factors, sizeof plain.factors);
        assert_memory_equal(plain.wide, other.wide, sizeof plain.wide);
        guarded_free(other.units, other.bytes);
    }
    guarded_free(plain.units, plain.bytes);
}

void packing_check_at_once(const packing *w, const test_matrix *t) {
    const bsmm_pack_isa *isa = bsmm_pack_best();
    int64_t panels = bsmm_ceil_div(t->m.rows, w->width);
    packed all = allocate(w, panels);
    w->pack(isa, w, 0, t->m.rows, &(bsmm_panel){all.units, all.factors, all.wide});
    for (int64_t row = 0; row < t->m.rows; row += w->width) {
        int64_t rows = bsmm_min_i64(w->width, t->m.rows - row);
        packed one = packing_pack(isa, w, row, rows);
        const uint8_t *part =
            all.units + (uint64_t)(row / w->width) * (all.bytes / (uint64_t)panels);
        if (one.bytes) assert_memory_equal(one.units, part, one.bytes);
        assert_memory_equal(one.factors, all.factors + row, sizeof(double) * (size_t)rows);
        assert_memory_equal(one.wide, all.wide + row, (size_t)rows);
        guarded_free(one.units, one.bytes);
    }
    guarded_free(all.units, all.bytes);
}
