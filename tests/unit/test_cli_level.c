/* Tests how `bsmm matmul --check` compares the errors of a kernel with typical errors
 * (cli/level.c). Kernels must pass for any data. A kernel whose errors are 4 times as large must
 * fail. */
/* The test includes a source file of the command bsmm, because no library contains this code. */
#include "../../cli/level.c" /* NOLINT(bugprone-suspicious-include) */

#include "shaped.h"
#include "walk.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MOST_M = 17, MORE_M = 70, N = 40 };

void *cli_matrix_allocate(bsmm_matrix *matrix) {
    uint64_t bytes;
    assert_int_equal(bsmm_data_bytes(matrix, &bytes), BSMM_OK);
    matrix->data_bytes = bytes;
    return matrix->data = malloc(bytes);
}

int cli_complain(int status, const char *format, ...) {
    (void)format;
    return status;
}

int cli_fail_library(const char *what) {
    (void)what;
    return CLI_FAILED;
}

static float kept[MORE_M * N];

/* Multiplies, and keeps the results in `kept`. */
static bool multiply(const bsmm_matmul_desc *desc, void *context) {
    (void)context;
    if (test_multiply(desc) != BSMM_OK) return false;
    memcpy(kept, desc->d->data, (size_t)(desc->d->rows * desc->d->cols) * sizeof(float));
    return true;
}

typedef struct fixture {
    bsmm_format formats[2];
    test_matrix a, b;
    bsmm_matrix d;
    bsmm_matmul_desc desc;
    test_shape shape;
} fixture;

static void fixture_make(fixture *f, const char *const pair[2], int64_t m, int64_t k,
                         test_shape shape) {
    test_shaped_make(&f->a, &f->b, pair, m, N, k, shape);
    f->shape = shape;
    f->formats[0] = f->a.m.format;
    f->formats[1] = f->b.m.format;
    f->d = describe(format_named("f32"), m, N);
    f->desc = (bsmm_matmul_desc){
        .struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d, .threads = 1};
}

/* To save time, the pairs of formats from index FIRST_FEW of `pairs` on are tested with fewer
 * products. */
enum { FIRST_FEW = 14 };
static const char *const pairs[][2] = {
    {"mxfp4", "mxfp4"},
    {"nvfp4", "nvfp4"},
    {"mxfp8", "mxfp4"},
    {"bf16", "mxfp4"},
    {"bf16", "nvfp4"},
    {"mxfp8", "mxfp8"},
    {"f16", "mxfp4"},
    {"fp8_group128", "fp8_block128"},
    {"fp8_group128", "mxfp4"},
    {"fp8_rows", "fp8_rows"},
    {"fp8_rows", "mxfp8"},
    {"bf16", "fp8_block128"},
    {"f16", "fp8_block128"},
    {"mxfp6_e2m3", "fp8_block128"},
    {"f32", "f32"},
    {"mxfp6_e2m3", "mxfp6_e2m3"},
    {"f16", "f16"},
    {"f32", "nvfp4"},
    {"bf16", "f32"},
    {"f32", "fp8_block128"},
};

/* Returns true if a kernel must have a measured typical error. Every kernel of a CPU or of a
 * simulated GPU must, except the reference kernel, whose sums are in double. */
static bool must_be_measured(const fixture *f) {
    const char *device = f->desc.device;
    const bool known = !device || strncmp(device, "cpu", 3) == 0 || strncmp(device, "sim:", 4) == 0;
    return known && strcmp(f->desc.kernel, "ref") != 0;
}

/* A kernel's errors can be judged only if typical errors were measured before, on this kernel or on
 * another kernel that adds in the same order. Calls `look` for every kernel that accepts the
 * product and has such measurements, and returns the number of these kernels. */
static int visit_kernels(fixture *f, void (*look)(fixture *f, const char *what)) {
    int count = 0;
    for (test_walk w = test_walk_begin(&f->desc); test_walk_next(&w);) {
        char what[128];
        snprintf(what, sizeof what, "%s, %s x %s, %d rows, K = %d", w.e.kernel,
                 bsmm_format_name(f->a.m.format), bsmm_format_name(f->b.m.format), (int)f->d.rows,
                 (int)f->a.m.cols);
        if (!cli_level_model_of(&f->desc, w.e.kernel).own.family) {
            if (must_be_measured(f)) fail_msg("%s: its typical errors were never measured", what);
            continue;
        }
        look(f, what);
        count++;
    }
    return count;
}

static void visit(void (*look)(fixture *f, const char *what)) {
    static const int64_t lengths[] = {256, 768, 1024}, rows[] = {8, MOST_M};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(lengths) * BSMM_COUNT(rows); j++)
            for (test_shape how = SHAPE_MIXED; how < SHAPES; how++) {
                /* To save time, the pairs of formats from index FIRST_FEW on are tested with only
                 * one K for each number of rows. */
                if (i >= FIRST_FEW && j / 2 != j % 2) continue;
                fixture f;
                fixture_make(&f, pairs[i], rows[j % 2], lengths[j / 2], how);
                assert_true(visit_kernels(&f, look) >= test_walk_least(1));
                test_matrix_free(&f.a);
                test_matrix_free(&f.b);
            }
}

/* The level is a measure of the errors of a kernel's results. Returns the level that the results in
 * `kept` would have if their errors were multiplied by `factor`. */
static double spoil(const fixture *f, double factor) {
    const bsmm_matrix *a = &f->a.m, *b = &f->b.m;
    const cli_level_model model = cli_level_model_of(&f->desc, f->desc.kernel);
    const int64_t k = a->cols;
    const cli_level_order order =
        cli_level_order_of(model.own.family, f->formats, model.own.parts, k);
    cli_level_row values[2];
    float d[MORE_M * N];
    assert_true(cli_level_decode(a, &values[0]) && cli_level_decode(b, &values[1]));
    for (int64_t i = 0; i < a->rows * b->rows; i++) {
        const cli_level_row rows[2] = {row_at(&values[0], i / b->rows, k),
                                       row_at(&values[1], i % b->rows, k)};
        const double exact = cli_level_sum(&order, rows).exact;
        d[i] = (float)(exact + factor * ((double)kept[i] - exact));
    }
    const double level = cli_level_compare(&model, a, b, values, d);
    cli_level_free(&values[0]);
    cli_level_free(&values[1]);
    return level;
}

static int compared;

/* Fails unless the kernel passes the check, and would fail the check if its errors were 4 times as
 * large. */
static void expect_todays(fixture *f, const char *what) {
    double level;
    if (!cli_level_run(&f->desc, f->desc.kernel, multiply, NULL, &level))
        fail_msg("%s: %s", what, bsmm_error_message());
    if (isnan(level)) return; /* NaN means that too few results have an error for a comparison. */
    if (getenv("BSMM_TEST_VERBOSE")) print_message("%s: %.3f\n", what, level);
    compared++;
    if (!(level > CLI_LEVEL_MOST / 4 && level <= 1)) fail_msg("%s: %.3f", what, level);
    /* A kernel's error level (cli/level.h) is proportional to the errors of its results:
     * multiplying all errors by 4 multiplies the level by 4, for any data and any M. The check with
     * larger errors therefore runs for only one kind of data and one M. */
    if (f->shape != SHAPE_MIXED || f->d.rows == MOST_M) return;
    const double spoilt = spoil(f, 4);
    if (!(spoilt > CLI_LEVEL_MOST)) fail_msg("%s: %.3f with 4 times the errors", what, spoilt);
}

static void test_todays_kernels(void **state) {
    (void)state;
    visit(expect_todays);
    assert_true(compared >= 50 && compared >= test_walk_least(100));
}

/* Tests cuda_sm90a_mixed, the Hopper kernel for 65 and more rows of A. The library uses it for
 * small products only if the environment variable BSMM_TEST_MIXED is set. */
static void test_more_rows(void **state) {
    (void)state;
    setenv("BSMM_TEST_MIXED", "0,0,0", 1);
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        fixture f;
        fixture_make(&f, pairs[i], MORE_M, 512, SHAPE_MIXED);
        visit_kernels(&f, expect_todays);
        test_matrix_free(&f.a);
        test_matrix_free(&f.b);
    }
    unsetenv("BSMM_TEST_MIXED");
}

/* Tests special cases of cli_level_run. The level, a measure of the errors of a kernel's results,
 * is NaN if too few results have an error, or if the kernel's typical errors are not known. If no
 * errors are expected at all, any error makes the level Inf. */
static void test_edges(void **state) {
    (void)state;
    double level = 0;
    fixture f;
    fixture_make(&f, pairs[0], 6, 256, SHAPE_MIXED);
    assert_true(cli_level_run(&f.desc, "cpu_f32", multiply, NULL, &level) && isnan(level));
    assert_true(cli_level_run(&f.desc, "ref", multiply, NULL, &level) && isnan(level));
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);

    /* The kernel adds 32 elements of K exactly as integers, so this product has no rounding errors
     * in its sums. */
    fixture_make(&f, pairs[0], MOST_M, 32, SHAPE_MIXED);
    cli_level_row values[2];
    float d[MOST_M * N];
    f.d.data = d;
    assert_true(cli_level_decode(&f.a.m, &values[0]) && cli_level_decode(&f.b.m, &values[1]));
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
    f.desc.device = NULL;
    const cli_level_model model = cli_level_model_of(&f.desc, "cpu_avx512_int8dot");
    assert_true(isnan(cli_level_compare(&model, &f.a.m, &f.b.m, values, d)));
    for (int i = 0; i < MOST_M * N; i++)
        d[i] = nextafterf(d[i], 1e6f);
    assert_true(isinf(cli_level_compare(&model, &f.a.m, &f.b.m, values, d)));
    cli_level_free(&values[0]);
    cli_level_free(&values[1]);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
}

/* Rows of a matrix may be farther apart in memory than their length. Decoding must then read the
 * same values and scales as from a matrix without gaps between its rows. */
static void test_strides(void **state) {
    (void)state;
    enum { K = 256, GAP = 16 };
    fixture f;
    fixture_make(&f, (const char *const[2]){"fp8_group128", "fp8_block128"}, 6, K, SHAPE_MIXED);
    uint8_t spread[6 * (K + GAP)];
    memset(spread, 0xff, sizeof spread);
    for (size_t i = 0; i < 6; i++)
        memcpy(spread + i * (K + GAP), (const uint8_t *)f.a.m.data + i * K, K);
    bsmm_matrix wide_rows = f.a.m;
    wide_rows.data = spread;
    wide_rows.data_bytes = sizeof spread;
    wide_rows.ld = K + GAP;
    cli_level_row dense, gaps;
    assert_true(cli_level_decode(&f.a.m, &dense) && cli_level_decode(&wide_rows, &gaps));
    assert_memory_equal(dense.elements, gaps.elements, 6 * K * sizeof(float));
    assert_memory_equal(dense.scales, gaps.scales, 6 * K * sizeof(float));
    cli_level_free(&dense);
    cli_level_free(&gaps);
    test_matrix_free(&f.a);
    test_matrix_free(&f.b);
}

/* Writes a code to one scale of a matrix. Row and column are those of the matrix of scales. */
static void set_scale(test_matrix *t, int64_t row, int64_t col, uint32_t code) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&t->m, "t", &o), BSMM_OK);
    if (row < o.map.rows && col < o.map.cols)
        bsmm_scale_store_code(t->m.format.scale, t->m.scales, bsmm_scale_map_at(&o.map, row, col),
                              code);
}

/* Sets some scales of a matrix to 0, or to 2^-127 if they are e8m0, and one scale to NaN if the
 * matrix has several rows of scales. In formats whose scales can be 0, all scales of one row become
 * 0. With e8m0, no row gets only scales of 2^-127, because its results would be subnormal and have
 * larger errors than usual. */
static void set_scales(test_matrix *t) {
    const uint32_t scale = t->m.format.scale;
    const uint32_t nan = scale == BSMM_SCALE_F32    ? 0x7fc00000
                         : scale == BSMM_SCALE_E8M0 ? 0xff
                                                    : 0x7f;
    if (scale == BSMM_SCALE_NONE) return;
    for (int64_t col = 0; col < t->m.cols && scale != BSMM_SCALE_E8M0; col++)
        set_scale(t, 2, col, 0);
    set_scale(t, 0, 0, 0);
    set_scale(t, 1, 1, 0);
    set_scale(t, 3, 1, nan);
}

static int compared_odd;

static void expect_level(fixture *f, const char *what) {
    double level;
    assert_true(cli_level_run(&f->desc, f->desc.kernel, multiply, NULL, &level));
    if (isnan(level)) return; /* NaN means that too few results have an error for a comparison. */
    if (getenv("BSMM_TEST_VERBOSE")) print_message("%s: %.3f\n", what, level);
    compared_odd++;
    if (!(level > CLI_LEVEL_MOST / 4 && level <= 1)) fail_msg("%s: %.3f", what, level);
    const double spoilt = spoil(f, 4);
    if (!(spoilt > CLI_LEVEL_MOST)) fail_msg("%s: %.3f with 4 times the errors", what, spoilt);
}

/* Tests scales that are NaN or 0. Results that are NaN have no error, and the errors of the other
 * results must be as large as usual. On Hopper, the generic GEMM computes some of these products
 * instead of cuda_sm90a_bf16, cuda_sm90a_f16 or cuda_sm90a_fold. The level must then compare with
 * the model of the generic GEMM, and must still find errors that are 4 times as large. */
static void test_odd_scales(void **state) {
    (void)state;
    for (size_t i = 0; i < FIRST_FEW; i++) {
        fixture f;
        fixture_make(&f, pairs[i], MOST_M, 1024, SHAPE_MIXED);
        set_scales(&f.a);
        set_scales(&f.b);
        visit_kernels(&f, expect_level);
        test_matrix_free(&f.a);
        test_matrix_free(&f.b);
    }
    print_message("%d levels\n", compared_odd);
    assert_true(compared_odd >= test_walk_least(25));
}

/* On Hopper, the generic GEMM has larger errors than cuda_sm90a_bf16. It may therefore replace this
 * kernel only for unusual values. The test computes a product of usual values by the generic GEMM,
 * and claims that f->desc.kernel has computed it. The level must show the difference. */
static void expect_own_errors(fixture *f, const char *what) {
    if (strcmp(f->desc.kernel, "cuda_sm90a_bf16") != 0) return;
    bsmm_matmul_desc generic = f->desc;
    generic.kernel = "cuda_sm80_bf16";
    double level;
    assert_true(cli_level_run(&generic, generic.kernel, multiply, NULL, &level));
    const double own = spoil(f, 1);
    compared_odd++;
    if (!(level <= 1 && own > CLI_LEVEL_MOST)) fail_msg("%s: %.3f and %.3f", what, level, own);
}

static void test_generic_instead(void **state) {
    (void)state;
    compared_odd = 0;
    for (size_t i = 0; i < FIRST_FEW; i++) {
        if (strcmp(pairs[i][0], "bf16") != 0 || !strstr(pairs[i][1], "fp4")) continue;
        fixture f;
        fixture_make(&f, pairs[i], MOST_M, 1024, SHAPE_MIXED);
        visit_kernels(&f, expect_own_errors);
        test_matrix_free(&f.a);
        test_matrix_free(&f.b);
    }
    const char *device = getenv("BSMM_TEST_DEVICE");
    if (device && strcmp(device, "sim:sm_90a") == 0) assert_int_equal(compared_odd, 2);
}

/* Tests a model of kernels that keep a sum divided by the scale of the current segment of K. Such a
 * kernel must multiply the sum by (old scale / new scale) when a segment begins. If the new scale
 * is 0, the quotient is not finite, so the kernel skips the segment. The test has three segments
 * and sets the scale of each of them to 0 in turn. */
static void test_zero_segment(void **state) {
    (void)state;
    enum { SEGMENT = 128, K = 3 * SEGMENT };
    const bench_family_level family = {.unit = 16, .divides = true, .fraction = 25};
    const bsmm_format formats[2] = {format_named("bf16"), format_named("fp8_block128")};
    const cli_level_order order = cli_level_order_of(&family, formats, 1, K);
    for (int zero = 0; zero < 3; zero++) {
        float elements[K], scales[K];
        double expected = 0;
        for (int i = 0; i < K; i++) {
            elements[i] = 1;
            scales[i] = i / SEGMENT == zero ? 0 : (float)(2 << i / SEGMENT);
            expected += (double)scales[i];
        }
        const cli_sums sums =
            cli_level_sum(&order, (cli_level_row[2]){{elements, NULL}, {elements, scales}});
        assert_true(sums.rounded == expected && sums.exact == expected);
    }
}

/* If a kernel can multiply both operands in f16, it uses each f16 element as it is, i.e. as one
 * part. Otherwise it splits the element into two bf16 numbers whose sum it is. The test has cases
 * of both, with every kind of scale, and with kernels that shift e8m0 scales of B or do not. */
static void test_f16_parts(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool takes_f16, shifts_e8m0;
        int parts;
    } cases[] = {
        {"f16", "f16", true, false, 1},          {"f16", "f16", false, false, 2},
        {"f16", "e4m3", true, false, 1},         {"e4m3", "f16", true, false, 1},
        {"f16", "nvfp4", true, false, 1},        {"f16", "nvfp4", false, false, 2},
        {"nvfp4", "f16", true, false, 1},        {"f16", "fp8_block128", true, false, 1},
        {"fp8_group128", "f16", true, false, 1}, {"f16", "mxfp4", true, true, 1},
        {"f16", "mxfp4", true, false, 2},        {"mxfp4", "f16", true, true, 2},
        {"f16", "bf16", true, true, 2},          {"f16", "f32", true, true, 2},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bench_family_level family = {.way = BENCH_IN_K_BLOCKS,
                                           .unit = 16,
                                           .takes_f16 = cases[i].takes_f16,
                                           .shifts_e8m0 = cases[i].shifts_e8m0};
        const bsmm_format formats[2] = {format_named(cases[i].a), format_named(cases[i].b)};
        const cli_level_order order = cli_level_order_of(&family, formats, 1, 1024);
        for (int k = 0; k < 2; k++)
            if (formats[k].elem == BSMM_ELEM_F16 && order.bf16_parts[k] != cases[i].parts)
                fail_msg("%s x %s: %d parts; must be %d", cases[i].a, cases[i].b,
                         order.bf16_parts[k], cases[i].parts);
    }
}

/* Values are moderate if all elements and fp32 scales are 0 or lie in a range around 1. */
static void test_moderate(void **state) {
    (void)state;
    static const struct {
        float element, scale;
        bool moderate;
    } cases[] = {
        {1, 1, true},         {0, 0, true},           {0x1p20f, 1, true},   {-0x1.1p20f, 1, false},
        {-0x1p-20f, 1, true}, {0x1.fp-21f, 1, false}, {NAN, 1, false},      {INFINITY, 1, false},
        {1, -0x1p-52f, true}, {1, 0x1.fp-53f, false}, {1, 0x1.fp31f, true}, {1, -0x1p32f, false},
        {1, NAN, false},      {0, INFINITY, false},
    };
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const float elements[2] = {1, cases[i].element}, scales[2] = {1, cases[i].scale};
        const bsmm_matrix m = {.rows = 1, .cols = 2};
        assert_int_equal(cli_level_is_moderate(&m, &(cli_level_row){elements, scales}),
                         cases[i].moderate);
        if (cases[i].scale == 1)
            assert_int_equal(cli_level_is_moderate(&m, &(cli_level_row){elements, NULL}),
                             cases[i].moderate);
    }
}

/* Tests whether f16 holds the values of weights, with scales that are NaN, small or large. */
static void test_fits_f16(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        bool fits;
    } cases[] = {{127, true}, {0xff, true}, {127 + 3, true}, {127 + 4, false}, {60, false}};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        fixture f;
        cli_level_row values;
        fixture_make(&f, (const char *const[2]){"f16", "mxfp4"}, 1, 64, SHAPE_MIXED);
        for (int64_t row = 0; row < N; row++)
            for (int64_t col = 0; col < 2; col++)
                set_scale(&f.b, row, col, 127);
        set_scale(&f.b, 7, 1, cases[i].code);
        assert_true(cli_level_decode(&f.b.m, &values));
        assert_int_equal(cli_level_fits_f16(&f.b.m, &values), cases[i].fits);
        cli_level_free(&values);
        test_matrix_free(&f.a);
        test_matrix_free(&f.b);
    }
}

static void test_passes(void **state) {
    (void)state;
    assert_true(cli_level_passes("k", (double)NAN) && cli_level_passes("k", CLI_LEVEL_MOST));
    assert_false(cli_level_passes("k", 1.01 * CLI_LEVEL_MOST));
    assert_false(cli_level_passes("k", (double)INFINITY));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_todays_kernels), cmocka_unit_test(test_more_rows),
        cmocka_unit_test(test_edges),          cmocka_unit_test(test_odd_scales),
        cmocka_unit_test(test_fits_f16),       cmocka_unit_test(test_strides),
        cmocka_unit_test(test_passes),         cmocka_unit_test(test_generic_instead),
        cmocka_unit_test(test_f16_parts),      cmocka_unit_test(test_moderate),
        cmocka_unit_test(test_zero_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
