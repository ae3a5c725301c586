/* Tests the kernel cuda_sm90a_f16. In most tests each result is a single product, so it must be
 * exact on every code path. The scales of B decide the path: f16 tensor cores, bf16 tensor cores
 * with A split into two parts, or the generic kernel. If results are sums, their bits show the
 * path: they must equal those of a kernel that has only this path. */
#include "cuda.h"
#include "operand.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 72, COLUMNS = 200, DEPTH = 288 };
static const char half_kernel[] = "cuda_sm90a_f16", bf16_kernel[] = "cuda_sm90a_bf16",
                  generic_kernel[] = "cuda_sm80_bf16";

/* Holds the range of e8m0 codes for B's random scales. If `high` is 0, the scales are not
 * changed. */
typedef struct scales {
    uint8_t low, high;
} scales;

typedef struct operands {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
} operands;

static operands make(const char *b_format, uint32_t b_order, scales from, rng *r) {
    operands o;
    bsmm_matrix b = describe(format_named(b_format), COLUMNS, DEPTH);
    b.order = b_order;
    if (b_order == BSMM_ORDER_COL) b.ld = COLUMNS;
    test_matrix_make(&o.a, describe(format_named("f16"), ROWS, DEPTH), FILL_ORDINARY, r);
    test_matrix_make(&o.b, b, FILL_ORDINARY, r);
    test_matrix_make(&o.d, describe(format_named("f32"), ROWS, COLUMNS), FILL_ORDINARY, r);
    uint8_t *codes = o.b.m.scales;
    for (uint64_t i = 0; from.high && i < o.b.scale_bytes; i++)
        codes[i] = (uint8_t)(from.low + rng_below(r, from.high - from.low + 1u));
    return o;
}

static void describe_product(operands *o) {
    o->desc = (bsmm_matmul_desc){.struct_size = sizeof o->desc,
                                 .a = &o->a.m,
                                 .b = &o->b.m,
                                 .d = &o->d.m,
                                 .device = "cuda:0"};
}

static void free_operands(operands *o) {
    test_matrix_free(&o->a);
    test_matrix_free(&o->b);
    test_matrix_free(&o->d);
}

static float *product(operands *o, const char *kernel) {
    float *got = malloc(o->d.data_bytes);
    describe_product(o);
    o->desc.kernel = kernel;
    memset(o->d.m.data, 0xa5, o->d.data_bytes);
    if (test_multiply(&o->desc)) fail_msg("%s: %s", kernel, bsmm_error_message());
    memcpy(got, o->d.m.data, o->d.data_bytes);
    return got;
}

/* Keeps a single nonzero element in each row of A. The element is a random nonzero finite f16
 * number, which may be subnormal. */
static void leave_one_of_each_row(test_matrix *a, int64_t turn, rng *r) {
    uint16_t *codes = a->m.data;
    memset(codes, 0, a->data_bytes);
    for (int64_t i = 0; i < ROWS; i++)
        codes[i * DEPTH + (i * 37 + turn) % DEPTH] =
            (uint16_t)(rng_below(r, 0x7bff) + 1 + (rng_below(r, 2) << 15));
}

static void check_single_products(const char *b_format, uint32_t order, scales from, rng *r) {
    operands o = make(b_format, order, from, r);
    double *b = test_matrix_values(&o.b);
    for (int64_t turn = 0; turn < DEPTH; turn += 41) {
        leave_one_of_each_row(&o.a, turn, r);
        float *got = product(&o, half_kernel);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < COLUMNS; j++) {
                const int64_t k = (i * 37 + turn) % DEPTH;
                const float want = (float)(test_matrix_value(&o.a, i, k) * b[j * DEPTH + k]);
                if (got[i * COLUMNS + j] != want)
                    fail_msg("%s, scales %u to %u, (%lld, %lld): %a, must be %a", b_format,
                             from.low, from.high, (long long)i, (long long)j,
                             (double)got[i * COLUMNS + j], (double)want);
            }
        free(got);
    }
    free(b);
    free_operands(&o);
}

/* Lists the formats with e8m0 scales, and for each the smallest exponent of a scale with which f16
 * represents all values. The largest exponent with which f16 represents all values is 3 for every
 * format. */
static const struct {
    const char *format;
    int least;
} mx[] = {{"mxfp4", -33}, {"mxfp6_e2m3", -31}, {"mxfp6_e3m2", -28}, {"mxfp8", -19}};

static scales exponents(int low, int high) {
    return (scales){(uint8_t)(127 + low), (uint8_t)(127 + high)};
}

static void test_single_products(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {3};
    for (size_t i = 0; i < BSMM_COUNT(mx); i++) {
        check_single_products(mx[i].format, BSMM_ORDER_ROW, exponents(mx[i].least, 3), &r);
        check_single_products(mx[i].format, BSMM_ORDER_ROW, exponents(mx[i].least - 1, 3), &r);
        check_single_products(mx[i].format, BSMM_ORDER_ROW, exponents(mx[i].least, 4), &r);
        check_single_products(mx[i].format, BSMM_ORDER_COL, exponents(mx[i].least, 3), &r);
    }
    static const char *const others[] = {"nvfp4", "f16", "e4m3", "e5m2"};
    for (size_t i = 0; i < BSMM_COUNT(others); i++)
        check_single_products(others[i], BSMM_ORDER_ROW, (scales){0, 0}, &r);
}

static void check_path(const char *b_format, scales from, const char *same, rng *r) {
    operands o = make(b_format, BSMM_ORDER_ROW, from, r);
    float *half = product(&o, half_kernel);
    static const char *const others[] = {bf16_kernel, generic_kernel};
    for (size_t i = 0; i < BSMM_COUNT(others); i++) {
        if (same == generic_kernel && others[i] != same)
            /* If `half_kernel` must fall back to the generic kernel with these scales, the bf16
             * kernel falls back to the generic kernel too. The result of the bf16 kernel is then
             * not compared, because it would equal that of the generic kernel. */
            continue;
        float *other = product(&o, others[i]);
        const bool equal = memcmp(half, other, o.d.data_bytes) == 0;
        if (equal != (same == others[i]))
            fail_msg("%s, scales %u to %u: %s the bits of %s", b_format, from.low, from.high,
                     equal ? "has" : "has not", others[i]);
        free(other);
    }
    free(half);
    free_operands(&o);
}

/* Tests that the scales of B decide which tensor cores (f16 or bf16) the kernel uses. */
static void test_paths(void **state) {
    (void)state;
    if (test_cuda_device()->capability != 90) skip();
    rng r = {4};
    for (size_t i = 0; i < BSMM_COUNT(mx); i++) {
        const int least = mx[i].least;
        check_path(mx[i].format, exponents(least, 3), NULL, &r);
        check_path(mx[i].format, exponents(least - 1, 3), bf16_kernel, &r);
        check_path(mx[i].format, exponents(least, 4), bf16_kernel, &r);
        check_path(mx[i].format, exponents(-126, 120), generic_kernel, &r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_products),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
