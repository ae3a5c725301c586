/* Tests the kernel for block-scaled products on Blackwell (cuda_sm100f_scaled) with the sizes at
 * which its code differs: several tiles, more k blocks than stages, short last blocks, and rows and
 * scales that TMA and the tensor cores cannot read as they are stored. Every result is compared
 * with a sum in double. The test is skipped unless the device is such a GPU or its simulator. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char kernel[] = "cuda_sm100f_scaled";

typedef struct scaled_case {
    const char *a, *b, *d;
    int64_t m, n, k;
    fill how;
    uint32_t layout;   /* of A's and B's scales */
    int64_t more_cols; /* the columns by which each row of A and B is longer in memory */
} scaled_case;

/* The tiles have 128 x 192 results. A k block has 128 elements, or 256 of mxfp4 and nvfp4, and
 * there are 4 or 5 stages. */
static const scaled_case cases[] = {
    {"mxfp8", "mxfp8", "f32", 3, 4, 64, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8", "f32", 128, 192, 128, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp8_e5m2", "bf16", 300, 600, 1040, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8_e5m2", "mxfp8_e5m2", "f16", 129, 200, 1504, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp8", "mxfp8", "f32", 130, 193, 333, FILL_ORDINARY, BSMM_LAYOUT_COL_MAJOR, 3},
    {"mxfp8", "mxfp8", "e4m3", 33, 47, 160, FILL_ORDINARY, BSMM_LAYOUT_NV_8X4, 16},
    {"mxfp8", "mxfp8_e5m2", "f32", 40, 200, 288, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8_e5m2", "mxfp8", "bf16", 40, 200, 160, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f32", 128, 192, 256, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "bf16", 300, 600, 1344, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f32", 130, 70, 1569, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp4", "f16", 17, 260, 96, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 32},
    {"mxfp4", "mxfp4", "f32", 17, 260, 224, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f32", 128, 192, 256, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "bf16", 300, 600, 1344, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"nvfp4", "nvfp4", "f16", 130, 70, 1569, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"nvfp4", "nvfp4", "f32", 17, 260, 80, FILL_EXTREME, BSMM_LAYOUT_NV_128X4, 16},
    {"nvfp4", "nvfp4", "f32", 17, 260, 224, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp8", "mxfp4", "bf16", 130, 260, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp4", "mxfp8_e5m2", "f32", 70, 300, 353, FILL_ORDINARY, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp6_e2m3", "mxfp6_e3m2", "f32", 130, 260, 768, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 0},
    {"mxfp6_e3m2", "mxfp8", "bf16", 70, 300, 354, FILL_ORDINARY, BSMM_LAYOUT_NV_128X4, 4},
    {"mxfp4", "mxfp6_e2m3", "f32", 70, 100, 256, FILL_EXTREME, BSMM_LAYOUT_ROW_MAJOR, 0},
    {"mxfp6_e3m2", "mxfp4", "f32", 20, 100, 100, FILL_SPECIAL, BSMM_LAYOUT_NV_128X4, 0},
};

/* Skips the test unless the kernel's device is there. */
static void need_device(void) {
    const int capability = test_cuda_device()->capability;
    if (capability / 10 != 10) skip();
}

typedef struct operands {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
} operands;

static bsmm_matrix shape_of(const scaled_case *c, const char *format, int64_t rows) {
    bsmm_matrix m = describe(format_named(format), rows, c->k);
    const int64_t group = bsmm_elem_group(m.format.elem);
    m.scale_layout = c->layout;
    m.ld = bsmm_round_up(c->k + c->more_cols, group);
    return m;
}

static void make(operands *o, const scaled_case *c, rng *r) {
    test_matrix_make(&o->a, shape_of(c, c->a, c->m), c->how, r);
    test_matrix_make(&o->b, shape_of(c, c->b, c->n), c->how, r);
    test_matrix_make(&o->d, describe(format_named(c->d), c->m, c->n), FILL_ORDINARY, r);
    o->desc = (bsmm_matmul_desc){.struct_size = sizeof o->desc,
                                 .a = &o->a.m,
                                 .b = &o->b.m,
                                 .d = &o->d.m,
                                 .device = "cuda:0",
                                 .kernel = kernel};
}

static void release(operands *o) {
    test_matrix_free(&o->a);
    test_matrix_free(&o->b);
    test_matrix_free(&o->d);
}

static void multiply(operands *o) {
    memset(o->d.m.data, 0xa5, o->d.data_bytes);
    if (test_multiply(&o->desc)) fail_msg("%s", bsmm_error_message());
}

/* Returns the kernel's documented error bound, relative to the sum of magnitudes. */
static double bound_of(const operands *o) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(&o->desc, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, kernel) == 0) {
            if (!e.accepts) fail_msg("%s refuses: %s", kernel, e.reason);
            return e.bound;
        }
    fail_msg("there is no kernel %s", kernel);
    return 0;
}

/* Rounds a value to D's format. 8-bit formats saturate. */
static double rounded(uint32_t elem, double value) {
    return bsmm_elem_decode(elem, bsmm_elem_encode(elem, value, bsmm_elem_row(elem)->bits == 8));
}

static void check_result(const scaled_case *c, const operands *o, int64_t i, double sum,
                         double error) {
    const uint32_t elem = o->d.m.format.elem, code = bsmm_elem_load(elem, o->d.m.data, (uint64_t)i);
    const double got = bsmm_elem_decode(elem, code), low = rounded(elem, sum - error),
                 high = rounded(elem, sum + error);
    if (isnan(sum) ? isnan(got) : got >= low && got <= high) return;
    fail_msg("%s x %s, %lld x %lld x %lld: D(%lld, %lld) is %a, must be %a to %a", c->a, c->b,
             (long long)c->m, (long long)c->n, (long long)c->k, (long long)(i / c->n),
             (long long)(i % c->n), got, low, high);
}

static void check_results(const scaled_case *c, const operands *o) {
    const double bound = bound_of(o);
    double *a = test_matrix_values(&o->a), *b = test_matrix_values(&o->b);
    for (int64_t i = 0; i < c->m * c->n; i++) {
        const double *row = a + i / c->n * c->k, *col = b + i % c->n * c->k;
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < c->k; k++) {
            sum += row[k] * col[k];
            magnitude += fabs(row[k] * col[k]);
        }
        check_result(c, o, i, sum, isinf(magnitude) ? 0 : bound * magnitude);
    }
    free(a);
    free(b);
}

static void test_cases(void **state) {
    (void)state;
    need_device();
    rng r = {5};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        operands o;
        make(&o, &cases[i], &r);
        multiply(&o);
        check_results(&cases[i], &o);
        release(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
