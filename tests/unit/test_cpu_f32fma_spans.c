/* Tests the f32 kernels with rows of very large and very small values. The span of a row is the
 * number of binades between its largest and its smallest value. For every span, the error must stay
 * below the bound, even if the processor flushes subnormals to 0. */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_f32fma.h"
#include "operand.h"
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Lists which subnormal numbers the processor flushes to 0 in a test: none, those in operands and
 * results, or only those in operands. */
typedef enum flushed { FLUSH_NONE, FLUSH_ALL, FLUSH_OPERANDS, FLUSHES } flushed;

#if defined(__x86_64__)
#    include <immintrin.h>
static void flush_subnormals(flushed which) {
    static const uint32_t bits[FLUSHES] = {0, 0x8040, 0x40};
    _mm_setcsr((_mm_getcsr() & ~0x8040u) | bits[which]);
}
#else
static void flush_subnormals(flushed which) {
    (void)which;
}
#endif

enum { K = 300, BIG_IN_A = 0, BIG_IN_B = 1 };

/* Fills a row of A or of B with K values of about 2^-50, except for two elements. Element `big` is
 * 2^(span - 50), so the row's values span `span` binades. Element `hole` is 0. It is at the index
 * of the other operand's element `big`, so the product of the two is 0. */
static void fill_row(float *row, int span, int big, int hole, rng *r) {
    for (int i = 0; i < K; i++)
        row[i] = (1 + (float)rng_below(r, 1 << 23) * 0x1p-23f) * (i % 3 ? 0x1p-50f : -0x1p-50f);
    row[big] = ldexpf(1, span - 50);
    row[hole] = 0;
}

static void expect_within(const bsmm_explanation *e, float got, double want, double magnitude) {
    /* The result may differ from the expected one by the error bound plus the rounding of D. */
    double slack = e->bound * magnitude + fabs(want) * 0x1p-24;
    if (!(fabs((double)got - want) <= slack))
        fail_msg("%s: got %a, want %a, slack %a", e->kernel, (double)got, want, slack);
}

/* Checks one result of every kernel that accepts the product, with and without flushing of
 * subnormals. */
static void check_result(bsmm_matmul_desc *desc, const float *d, double want, double magnitude) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts) continue;
        desc->kernel = e.kernel;
        for (flushed flush = FLUSH_NONE; flush < FLUSHES; flush++) {
            flush_subnormals(flush);
            bsmm_status status = bsmm_matmul(desc);
            flush_subnormals(FLUSH_NONE);
            assert_int_equal(status, BSMM_OK);
            expect_within(&e, *d, want, magnitude);
        }
    }
    desc->kernel = NULL;
}

static void check_spans(int a_span, int b_span, rng *r) {
    float a[K], b[K], d;
    double want = 0, magnitude = 0;
    fill_row(a, a_span, BIG_IN_A, BIG_IN_B, r);
    fill_row(b, b_span, BIG_IN_B, BIG_IN_A, r);
    for (int i = 0; i < K; i++) {
        want += (double)a[i] * (double)b[i];
        magnitude += fabs((double)a[i] * (double)b[i]);
    }
    bsmm_matrix am = describe(format_named("f32"), 1, K), bm = am;
    bsmm_matrix dm = describe(format_named("f32"), 1, 1);
    am.data = a;
    bm.data = b;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm, .threads = 1};
    check_result(&desc, &d, want, magnitude);
}

static void test_elements(void **state) {
    (void)state;
    static const int sums[] = {150, 201, 202, 203, 210, 250, 300};
    rng r = {1};
    for (size_t i = 0; i < BSMM_COUNT(sums); i++)
        for (int a_span = 0; a_span <= 177; a_span += 59)
            if (sums[i] - a_span <= 177) check_spans(a_span, sums[i] - a_span, &r);
}

/* Tests a dot product in which two small terms almost cancel, so that the result may be subnormal
 * in fp32. Each row also has a large value, which meets only a zero in the other row. The large
 * value increases the span of the row, i.e. the number of binades from its smallest to its largest
 * value. A kernel divides a row by a power of two that follows from its largest value, so the small
 * terms become even smaller. For spans with which fp32 sums would be too inaccurate, kernels must
 * sum in double. */
static void check_cancelled(int a_span, int b_span) {
    float a[] = {0x1p-50f, 0, -0x1p-50f, 0x1p-50f}, b[] = {0, 0x1p-50f, 0x1p-50f, 0x1p-50f}, d;
    a[0] = ldexpf(a[0], a_span);
    b[1] = ldexpf(b[1], b_span);
    b[3] += ldexpf(15, a_span + b_span - 232 - 50);
    double want = (double)a[3] * ((double)b[3] - (double)b[2]);
    bsmm_matrix am = describe(format_named("f32"), 1, BSMM_COUNT(a)), bm = am;
    bsmm_matrix dm = describe(format_named("f32"), 1, 1);
    am.data = a;
    bm.data = b;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm, .threads = 1};
    check_result(&desc, &d, want, 0x1p-99);
}

static void test_cancelled_products(void **state) {
    (void)state;
    for (int span = 200; span < 229; span++)
        for (int a_span = 60; a_span <= 170; a_span += 55)
            check_cancelled(a_span, span - a_span);
}

/* Tests the dot product of a row of A and a row of B. Each row has three blocks of 128 elements
 * with one fp32 scale each. In A's row, the scale of block 0 is about `a_span` binades larger than
 * the other two. In B's row, the scale of block 1 is about `b_span` binades larger than the other
 * two, which are about 2^b_base. Block 0 of B and block 1 of A are zeros, so only block 2, whose
 * scales are small, contributes to the result. */
static void check_scale_spans(int a_span, int b_base, int b_span, rng *r) {
    enum { BLOCKS = 3, LENGTH = 128 * BLOCKS };
    uint8_t a[LENGTH], b[LENGTH];
    float a_scales[BLOCKS], b_scales[BLOCKS], d;
    double want = 0, magnitude = 0;
    for (int i = 0; i < BLOCKS; i++)
        a_scales[i] = (1 + (float)rng_below(r, 1 << 23) * 0x1p-23f) * 0x1p-20f,
        b_scales[i] = ldexpf(a_scales[i], b_base + 20);
    a_scales[0] = ldexpf(1, a_span - 20);
    b_scales[1] = ldexpf(1, b_base + b_span);
    for (int i = 0; i < LENGTH; i++) {
        /* The elements are random finite codes of e4m3. One block of 128 elements is zero. */
        a[i] = i / 128 == 1 ? 0 : (uint8_t)(rng_below(r, 126) + 1);
        b[i] = i / 128 == 0 ? 0x80 : (uint8_t)(rng_below(r, 126) + 1);
        double term = bsmm_elem_decode(BSMM_ELEM_E4M3, a[i]) * (double)a_scales[i / 128] *
                      bsmm_elem_decode(BSMM_ELEM_E4M3, b[i]) * (double)b_scales[i / 128];
        want += term;
        magnitude += fabs(term);
    }
    bsmm_matrix am = describe(format_named("fp8_group128"), 1, LENGTH), bm = am;
    bsmm_matrix dm = describe(format_named("f32"), 1, 1);
    am.data = a;
    am.scales = a_scales;
    bm.data = b;
    bm.scales = b_scales;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm, .threads = 1};
    check_result(&desc, &d, want, magnitude);
}

static void test_scales(void **state) {
    (void)state;
    rng r = {2};
    for (int a_span = 0; a_span <= 140; a_span += 20)
        for (int b_span = 0; b_span <= 140; b_span += 20)
            check_scale_spans(a_span, -20, b_span, &r);
    /* b_span is the number of binades from the smallest to the largest scale of B's row. With these
     * values of b_span, the quotient of the two scales is subnormal in fp32, or even 0. */
    for (int b_span = 145; b_span <= 185; b_span += 5)
        check_scale_spans(0, -90, b_span, &r);
}

/* Tests kernels that read B without packing it. The dot product has three terms. The first is a
 * very large element of A times a zero of B. The two others almost cancel: each is the smallest
 * element of B times an element of A near 1 or -1. The result is therefore tiny beside the largest
 * element of A. A kernel that divides a row of A by its largest value must not lose the result. */
static void check_stored(const char *format, int a_span, int depth) {
    enum { LENGTH = 96 };
    uint8_t codes[LENGTH] = {0}, scales[] = {127, (uint8_t)(127 - depth), 127};
    float a[LENGTH] = {0}, d;
    bsmm_matrix am = describe(format_named("f32"), 1, LENGTH), dm = describe(am.format, 1, 1);
    bsmm_matrix bm = describe(format_named(format), 1, LENGTH);
    const bsmm_elem_info *elem = bsmm_elem_row(bm.format.elem);
    a[0] = ldexpf(1, a_span);
    a[32] = -1;
    a[33] = 1 + 0x1p-15f;
    bsmm_elem_store(bm.format.elem, codes, 1, bsmm_elem_encode(bm.format.elem, elem->max, true));
    bsmm_elem_store(bm.format.elem, codes, 32, 1);
    bsmm_elem_store(bm.format.elem, codes, 33, 1);
    am.data = a;
    bm.data = codes;
    bm.scales = scales;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm, .threads = 1};
    double each = ldexp(elem->min_subnormal, -depth);
    check_result(&desc, &d, 0x1p-15 * each, 2 * each);
}

static void test_stored_weights(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3",
                                          "mxfp4"};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (int a_span = 0; a_span <= 120; a_span += 8)
            for (int depth = 0; depth <= 92; depth += 4)
                check_stored(formats[i], a_span, depth);
}

/* Tests large elements with a small block scale. Packing multiplies the scale by a power of two and
 * thus makes it subnormal. */
static void test_subnormal_factors(void **state) {
    (void)state;
    enum { LENGTH = 64 };
    uint8_t scales[] = {127, 1};
    float a[LENGTH] = {[0] = 0x1p60f, [40] = 0x1.8p120f}, b[LENGTH] = {[40] = 3}, d;
    bsmm_matrix bm = describe(format_named("f32"), 1, LENGTH), dm = describe(bm.format, 1, 1);
    bsmm_matrix am = describe((bsmm_format){BSMM_ELEM_F32, BSMM_SCALE_E8M0, 1, 32}, 1, LENGTH);
    am.data = a;
    am.scales = scales;
    bm.data = b;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &bm, .d = &dm, .threads = 1};
    check_result(&desc, &d, 4.5 * 0x1p-6, 4.5 * 0x1p-6);
    am.format.block_cols = 20; /* The kernel reads scales of blocks of 20 columns one at a time. */
    uint8_t more[] = {127, 127, 1, 127};
    am.scales = more;
    check_result(&desc, &d, 4.5 * 0x1p-6, 4.5 * 0x1p-6);
}

/* Tests a row of B whose last block has the scale 2^-depth and whose other blocks have the scale 1.
 * A kernel may store its accumulator divided by the scale of the last block. The quotient is
 * outside the range of fp32 here. */
static void check_depth(bsmm_matmul_desc *desc, const float *d, int depth) {
    const bsmm_matrix *b = desc->b;
    int64_t last = b->cols / 32 - 1;
    uint32_t elem = b->format.elem;
    double largest = bsmm_elem_row(elem)->max;
    memset(b->scales, 127, (size_t)last);
    ((uint8_t *)b->scales)[last] = (uint8_t)(127 - depth);
    double want = 0x1.fffffep0 * largest * (32 * (double)last + ldexp(32, -depth));
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; !e.accepts; i++)
        assert_int_equal(bsmm_explain(desc, i, &e), BSMM_OK);
    assert_int_equal(bsmm_matmul(desc), BSMM_OK);
    expect_within(&e, *d, want, want);
}

static void check_depths(const char *format, float *a) {
    enum { LONGEST = 1 << 20 };
    test_matrix b;
    float d;
    rng r = {3};
    test_matrix_make(&b, describe(format_named(format), 1, LONGEST), FILL_ORDINARY, &r);
    uint32_t elem = b.m.format.elem;
    uint32_t code = bsmm_elem_encode(elem, bsmm_elem_row(elem)->max, true);
    for (int i = 0; i < LONGEST; i++)
        bsmm_elem_store(elem, b.m.data, (uint64_t)i, code);
    bsmm_matrix am = describe(format_named("f32"), 1, LONGEST);
    bsmm_matrix dm = describe(format_named("f32"), 1, 1);
    am.data = a;
    dm.data = &d;
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &am, .b = &b.m, .d = &dm, .threads = 1};
    static const int depths[] = {42, 56, 64, 69};
    for (size_t i = 0; i < BSMM_COUNT(depths); i++)
        if (test_takes_next()) check_depth(&desc, &d, depths[i]);
    test_matrix_free(&b);
}

static void test_largest_sums(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3",
                                          "mxfp4"};
    float *a = malloc(sizeof(float) << 20);
    for (int i = 0; i < 1 << 20; i++)
        a[i] = 0x1.fffffep0f;
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        check_depths(formats[i], a);
    free(a);
}

static int span_of(bsmm_matrix *m) {
    bsmm_product p = {0};
    uint8_t *units = malloc(BSMM_F32FMA_UNIT_BYTES(8, BSMM_F32FMA_SEGMENT_UNIT)), wide[8] = {0};
    double factors[8];
    bsmm_panel to = {units, factors, wide};
    assert_int_equal(bsmm_operand_take(m, "a", &p.a), BSMM_OK);
    p.b = p.a;
    bsmm_f32fma_pack(&p, false, 8, 0, 1, &to);
    free(units);
    return wide[0];
}

static int span_of_floats(const float *values, int64_t count) {
    float copy[8];
    bsmm_matrix m = describe(format_named("f32"), 1, count);
    memcpy(copy, values, (size_t)count * sizeof(float));
    m.data = copy;
    return span_of(&m);
}

/* Tests the span that packing reports for rows of f32. The span is the number of binades between a
 * row's largest and smallest nonzero value. */
static void test_spans_of_floats(void **state) {
    (void)state;
    assert_int_equal(span_of_floats((float[]){1, 0x1p-149f, 0}, 3), 149);
    assert_int_equal(span_of_floats((float[]){0x1p-149f}, 1), 0);
    assert_int_equal(span_of_floats((float[]){0, -0.0f}, 2), 0);
    assert_int_equal(span_of_floats((float[]){3, -5, INFINITY, NAN}, 4), 1);
    assert_int_equal(span_of_floats((float[]){0x1p27f, 0x1p-149f}, 2), 176);
    assert_true(span_of_floats((float[]){0x1p20f, 0x1p-149f}, 2) + 32 <= BSMM_F32FMA_SPAN_LIMIT);
    assert_int_equal(span_of_floats((float[]){0x1p28f, 0x1p-149f}, 2), UINT8_MAX);
    assert_int_equal(span_of_floats((float[]){0x1p127f, 0x1p-149f}, 2), UINT8_MAX);
}

/* Tests that blocks of zeros do not count for the span of a row (the number of binades between its
 * largest and smallest value). Many quantizers give such blocks the smallest scale. */
static void test_spans_of_blocks(void **state) {
    (void)state;
    uint8_t codes[96], scales[3] = {127, 0, 130};
    bsmm_matrix m = describe(format_named("mxfp8"), 1, 96);
    m.data = codes;
    m.scales = scales;
    memset(codes, 0x38, sizeof codes); /* 0x38 is the e4m3 code of 1. */
    assert_int_equal(span_of(&m), 130);
    memset(codes + 32, 0, 32);
    assert_int_equal(span_of(&m), 3);
    scales[1] = 255;
    assert_true(span_of(&m) + 149 <= BSMM_F32FMA_SPAN_LIMIT);
}

/* cpu_avx2_f32_small_m decodes elements of B to f16 numbers (halves). Tests the numbers `top` and
 * `extent` of each element format, by which the kernel decides whether fp32 sums can overflow or
 * lose bits. `top` must be the exponent of the largest half. `extent` must be the number of binades
 * between the largest and the smallest nonzero element of the format. For f32 and bf16, both
 * numbers are those of the elements that the kernel multiplies without packing. */
static void test_halves(void **state) {
    (void)state;
#if defined(__x86_64__)
    int halves = 0;
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; bsmm_elem_at(i, &info) == BSMM_OK; i++) {
        const bsmm_small_m_f32fma_halves *h = bsmm_small_m_f32fma_halves_of(info.elem);
        if (!h) continue;
        halves++;
        bool is_wide = info.elem == BSMM_ELEM_F32 || info.elem == BSMM_ELEM_BF16;
        int top = is_wide ? 15 : ilogb(info.max);
        assert_int_equal(h->top, top - h->raw);
        assert_int_equal(h->extent, top - (is_wide ? -48 : ilogb(info.min_subnormal)));
    }
    assert_int_equal(halves, 8);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_cancelled_products),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_stored_weights),
        cmocka_unit_test(test_subnormal_factors),
        cmocka_unit_test(test_largest_sums),
        cmocka_unit_test(test_spans_of_floats),
        cmocka_unit_test(test_spans_of_blocks),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
