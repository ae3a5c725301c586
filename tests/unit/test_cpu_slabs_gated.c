/* Tests products with a gated activation, f(gate) * up. B is packed in slabs, i.e. some rows of B
 * at a time. If the gates are one half of B's rows and the ups the other half, a slab has some
 * gates and the ups that belong to them. The results must be bitwise identical to those with all of
 * B in one slab. */
#include "cpu_hooks.h"
#include "slabs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    ROW = BSMM_ORDER_ROW,
    COL = BSMM_ORDER_COL,
    SPLIT = BSMM_HALVES_SPLIT,
    PAIRS = BSMM_HALVES_INTERLEAVED,
    COMPACT = BSMM_PACKED_COMPACT,
    ANY_ROWS = BSMM_MATMUL_ANY_ROWS,
    INVARIANT = BSMM_MATMUL_BATCH_INVARIANT
};

/* Describes a product with a gated activation. B has 2 * `half` rows (gates and ups), and D has
 * `half` columns. If `full` is true, the epilogue also has C, a bias, a residual and scales of rows
 * and columns. If `flags` has ANY_ROWS, the plan is made for up to m rows of A, and the run has
 * `rows` rows. */
typedef struct test_case {
    const char *a, *b, *d;
    int64_t m, half, k;
    uint32_t order, halves, threads;
    fill how;
    bool full;
    uint32_t b_packed, flags;
    int64_t rows;
} test_case;

/* The operands of a test case and the description of its product. */
typedef struct gated {
    test_matrix a, b, c, d, residual;
    float beta, *bias, *row_scale, *col_scale;
    bsmm_epilogue epilogue;
    bsmm_matmul_desc desc;
} gated;

static float *make_factors(int64_t count, rng *r) {
    float *factors = malloc((size_t)count * sizeof *factors);
    for (int64_t i = 0; i < count; i++)
        factors[i] = (float)rng_below(r, 1000) / 400 - 1.25f;
    return factors;
}

static void gated_make(gated *g, const test_case *t, rng *r) {
    const int64_t n = 2 * t->half;
    bsmm_matrix b = describe(format_named(t->b), n, t->k);
    b.order = t->order;
    *g = (gated){.beta = 0.75f};
    test_matrix_make(&g->a, describe(format_named(t->a), t->m, t->k), t->how, r);
    test_matrix_make(&g->b, b, t->how, r);
    test_matrix_make(&g->c, describe(format_named("f16"), t->m, n), FILL_ORDINARY, r);
    test_matrix_make(&g->d, describe(format_named(t->d), t->m, t->half), FILL_ORDINARY, r);
    test_matrix_make(&g->residual, describe(format_named("bf16"), t->m, t->half), FILL_ORDINARY, r);
    g->bias = make_factors(n, r);
    g->row_scale = make_factors(t->m, r);
    g->col_scale = make_factors(t->half, r);
    g->epilogue = (bsmm_epilogue){.struct_size = sizeof g->epilogue,
                                  .activation = BSMM_ACTIVATION_SWIGLU,
                                  .halves = t->halves};
    g->desc = (bsmm_matmul_desc){.struct_size = sizeof g->desc,
                                 .a = &g->a.m,
                                 .b = &g->b.m,
                                 .d = &g->d.m,
                                 .threads = t->threads,
                                 .b_packed = t->b_packed,
                                 .flags = t->flags,
                                 .epilogue = &g->epilogue};
    if (!t->full) return;
    g->epilogue.limit = 7;
    g->epilogue.up_offset = 1;
    g->epilogue.residual = &g->residual.m;
    g->epilogue.scale_by = BSMM_SCALE_BY_ROW | BSMM_SCALE_BY_COL;
    g->epilogue.row_scale = g->row_scale;
    g->epilogue.col_scale = g->col_scale;
    g->desc.c = &g->c.m;
    g->desc.beta = &g->beta;
    g->desc.bias = g->bias;
    g->desc.bias_elem = BSMM_ELEM_F32;
}

static void gated_free(gated *g) {
    test_matrix_free(&g->a);
    test_matrix_free(&g->b);
    test_matrix_free(&g->c);
    test_matrix_free(&g->d);
    test_matrix_free(&g->residual);
    free(g->bias);
    free(g->row_scale);
    free(g->col_scale);
}

static void check(const test_case *t, rng *r) {
    gated g;
    gated_make(&g, t, r);
    if (!slabs_compare(&g.desc, t->rows)) fail_msg("%s x %s: no kernel packs B", t->a, t->b);
    gated_free(&g);
}

/* Tests B of every format in row and column order, with few rows of A. The rows of B are gates and
 * ups of a gated activation. The number of gates is odd. In a column-major B with elements of 4 or
 * 6 bits, the first up therefore begins inside a byte. */
static void test_formats(void **state) {
    (void)state;
    static const fill fills[] = {FILL_ORDINARY, FILL_EXTREME, FILL_SPECIAL};
    static const char *const results[] = {"f32", "bf16", "f16"};
    const format_list list = all_formats();
    rng r = {5};
    for (size_t i = 0; i < list.count; i++)
        for (uint32_t v = 0; v < 8; v++) {
            const test_case t = {.a = v & 4 ? list.names[i] : "bf16",
                                 .b = list.names[i],
                                 .d = results[(i + v) % 3],
                                 .m = v & 4 ? 3 : 1,
                                 .half = 151,
                                 .k = 97,
                                 .order = v & 1 ? COL : ROW,
                                 .halves = v & 2 ? SPLIT : PAIRS,
                                 .threads = (i + v) % 2 ? 1 : 3,
                                 .how = fills[(i + v / 2) % 3],
                                 .full = v < 4};
            check(&t, &r);
        }
}

/* The number M of rows of A decides how the threads of a kernel share the work: by slabs (the rows
 * of B that are packed at a time), by rows of D, or by cache blocks of D. */
static const test_case cases[] = {
    {"mxfp4", "mxfp4", "f32", 2, 1501, 97, COL, SPLIT, 1, FILL_ORDINARY, true, 0, 0, 0},
    {"mxfp4", "mxfp4", "f32", 2, 1501, 97, COL, SPLIT, 3, FILL_EXTREME, true, 0, 0, 0},
    {"bf16", "mxfp4", "f16", 3, 1500, 160, COL, PAIRS, 3, FILL_SPECIAL, false, 0, 0, 0},
    {"f32", "nvfp4", "f32", 1, 1389, 65, ROW, SPLIT, 1, FILL_EXTREME, true, 0, 0, 0},
    {"mxfp8", "mxfp8", "bf16", 35, 651, 129, ROW, SPLIT, 3, FILL_EXTREME, false, 0, 0, 0},
    {"mxfp8", "mxfp8", "bf16", 67, 651, 65, ROW, PAIRS, 3, FILL_SPECIAL, true, 0, 0, 0},
    {"mxfp4", "mxfp4", "f32", 301, 1201, 193, ROW, SPLIT, 3, FILL_ORDINARY, true, 0, 0, 0},
    {"mxfp4", "mxfp4", "f32", 260, 801, 65, ROW, SPLIT, 1, FILL_EXTREME, true, 0, 0, 0},
    {"mxfp4", "mxfp4", "bf16", 301, 801, 416, COL, SPLIT, 3, FILL_ORDINARY, false, 0, 0, 0},
    {"bf16", "e4m3", "bf16", 301, 801, 416, COL, PAIRS, 3, FILL_ORDINARY, true, 0, 0, 0},
    {"fp8_group128", "fp8_block128", "f32", 5, 601, 300, ROW, SPLIT, 3, FILL_EXTREME, true, 0, 0,
     0},
    {"nvfp4", "mxfp4", "mxfp8", 70, 1504, 64, COL, SPLIT, 3, FILL_ORDINARY, false, 0, 0, 0},
    {"nvfp4", "mxfp4", "mxfp8", 3, 1501, 64, ROW, SPLIT, 3, FILL_EXTREME, true, 0, 0, 0},
    {"mxfp8", "mxfp4", "nvfp4", 400, 1504, 64, COL, PAIRS, 3, FILL_ORDINARY, true, 0, 0, 0},
    {"mxfp8", "mxfp4", "mxfp4", 260, 801, 64, COL, SPLIT, 1, FILL_SPECIAL, true, 0, 0, 0},
    {"mxfp4", "mxfp4", "f32", 40, 1203, 0, COL, SPLIT, 3, FILL_ORDINARY, true, 0, 0, 0},
    {"mxfp4", "mxfp4", "f32", 3, 1501, 97, ROW, SPLIT, 3, FILL_EXTREME, true, COMPACT, 0, 0},
    {"bf16", "mxfp8", "f32", 20, 603, 128, ROW, SPLIT, 1, FILL_SPECIAL, true, COMPACT, 0, 0},
    {"bf16", "mxfp4", "f32", 301, 1203, 96, COL, SPLIT, 3, FILL_EXTREME, true, 0, ANY_ROWS, 3},
    {"bf16", "mxfp4", "f32", 301, 4001, 192, COL, SPLIT, 12, FILL_ORDINARY, true, 0, ANY_ROWS, 120},
    {"f16", "f16", "f32", 301, 1203, 96, COL, SPLIT, 3, FILL_ORDINARY, true, 0, INVARIANT, 0},
};

static void test_bits(void **state) {
    (void)state;
    rng r = {22};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        check(&cases[i], &r);
}

/* Sets all scales of one row of B. The scales are e8m0 and row-major. */
static void set_scales(test_matrix *b, int64_t row, uint8_t code) {
    const int64_t blocks = b->m.cols / 32;
    memset((uint8_t *)b->m.scales + row * blocks, code, (size_t)blocks);
}

/* Tests rows of B whose results a kernel sums in double, because their scales are NaN or extreme. B
 * is packed in several parts (slabs), and each such row is in another slab. Only the results of the
 * row with NaN scales may be NaN. */
static void test_single_wide_rows(void **state) {
    (void)state;
    enum { GATE = 700, UP = 200, LARGE = 400, SMALL = 1000 };
    static const test_case one = {"mxfp4", "mxfp4", "f32", 5, 1201, 128, ROW,
                                  SPLIT,   3,       0,     0, 0,    0,   0};
    rng r = {23};
    for (int is_gate = 0; is_gate < 2; is_gate++) {
        gated g;
        gated_make(&g, &one, &r);
        const int64_t column = is_gate ? GATE : UP;
        set_scales(&g.b, is_gate ? GATE : one.half + UP, 0xff);
        set_scales(&g.b, LARGE, 254);
        set_scales(&g.b, one.half + SMALL, 0);
        assert_true(slabs_compare(&g.desc, 0) > 0);
        const float *d = g.d.m.data;
        for (int64_t i = 0; i < one.m * one.half; i++)
            assert_int_equal(isnan(d[i]) != 0, i % one.half == column);
        gated_free(&g);
    }
}

static uint64_t workspace_of(int64_t m, int64_t half, int64_t k, uint32_t threads) {
    const bsmm_epilogue e = {.struct_size = sizeof e, .activation = BSMM_ACTIVATION_SWIGLU};
    bsmm_matrix a = describe(format_named("mxfp4"), m, k);
    bsmm_matrix b = describe(format_named("mxfp4"), 2 * half, k);
    bsmm_matrix d = describe(format_named("f32"), m, half);
    b.order = COL;
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a, .b = &b, .d = &d, .threads = threads, .epilogue = &e};
    bsmm_plan *plan;
    if (bsmm_plan_create(&desc, &plan)) fail_msg("%s", bsmm_error_message());
    const uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_plan_destroy(plan);
    return bytes;
}

/* Tests that a product with a smaller M, N or K, or with fewer threads, never needs a larger
 * workspace. A plan uses its workspace for all numbers of rows up to its maximum. */
static void test_monotone(void **state) {
    (void)state;
    bsmm_cpu_pretend_l2_bytes(256);
    uint64_t before[4] = {0};
    for (int64_t step = 1; step < 300; step++) {
        const uint64_t bytes[4] = {
            workspace_of(2 * step, 3000, 700, 60), workspace_of(3, 19 * step, 700, 3),
            workspace_of(299, 3000, 37 * step, 3), workspace_of(200, 6000, 700, (uint32_t)step)};
        for (int i = 0; i < 4; i++) {
            assert_true(bytes[i] >= before[i]);
            before[i] = bytes[i];
        }
    }
    bsmm_cpu_pretend_l2_bytes(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_single_wide_rows),
        cmocka_unit_test(test_monotone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
