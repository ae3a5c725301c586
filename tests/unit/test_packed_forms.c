/* Tests the forms (formats) of packed weights. Weights of the form "compact" must contain B's bytes
 * in another order, and must have at most 3% more bytes than B. Plans with any M and any format of
 * A must accept them. */
#include "packed_b.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns the number of forms. Form number i of the table has the value i + 1. */
static uint32_t form_count(void) {
    bsmm_packed_form_info info = {.struct_size = sizeof info};
    uint32_t count = 0;
    while (bsmm_packed_form_at(count, &info) == BSMM_OK)
        count++;
    assert_true(count >= BSMM_PACKED_COMPACT);
    return count;
}

static void test_table(void **state) {
    (void)state;
    bsmm_packed_form_info info = {.struct_size = sizeof info};
    uint32_t count = form_count();
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(bsmm_packed_form_at(i, &info), BSMM_OK);
        assert_int_equal(info.form, i + 1);
        assert_true(info.version >= 1);
    }
    assert_int_equal(bsmm_packed_form_at(BSMM_PACKED_WIDE - 1, &info), BSMM_OK);
    assert_string_equal(info.name, "wide");
    assert_int_equal(bsmm_packed_form_at(BSMM_PACKED_COMPACT - 1, &info), BSMM_OK);
    assert_string_equal(info.name, "compact");
}

/* Returns the number of bytes of B without gaps and without padding. */
static uint64_t least_bytes(const bsmm_matrix *b) {
    const bsmm_matrix plain = describe(b->format, b->rows, b->cols);
    uint64_t data, scales = 0;
    assert_int_equal(bsmm_data_bytes(&plain, &data), BSMM_OK);
    if (b->format.scale) assert_int_equal(bsmm_scale_bytes(&plain, &scales), BSMM_OK);
    return data + scales;
}

/* Checks every byte of packed weights in the form "compact". The test computes the places of the
 * bytes itself, without the library's functions. This form divides the rows of B into strips of 16
 * rows, and each row into pieces of 4 bytes, or of 3 bytes with 6-bit codes. A strip has the first
 * pieces of its 16 rows, then the second pieces of these rows, and so on. The last strip may have
 * fewer rows, and the last piece of a row may have fewer bytes. */
static void check_places(const packed_b *f) {
    const bsmm_matrix *b = &f->b.m;
    const uint8_t *at = f->packed + HEADER, *data = b->data;
    uint64_t line, piece = bsmm_elem_row(b->format.elem)->bits == 6 ? 3 : 4;
    assert_true(bsmm_elem_bytes(b->format.elem, (uint64_t)b->cols, &line));
    for (int64_t first = 0; first < b->rows; first += 16)
        for (uint64_t byte = 0; byte < line; byte += piece)
            for (int64_t r = first; r < b->rows && r < first + 16; r++) {
                uint64_t n = line - byte < piece ? line - byte : piece;
                if (byte + n < line) assert_memory_equal(at, data + (uint64_t)r * line + byte, n);
                at += n;
            }
}

static void check_compact(bsmm_matrix b, fill how, rng *r) {
    packed_b f;
    packed_b_make(&f, format_named("bf16"), b, 1, how, r);
    packed_b_pack(&f, BSMM_PACKED_COMPACT);
    packed_b_check_unpacked(&f, r);
    if (b.order == BSMM_ORDER_ROW && b.ld == 0) check_places(&f);
    uint64_t stored = least_bytes(&f.b.m), told;
    if (stored >= 65536 && b.rows >= 64) assert_true((double)f.bytes <= 1.03 * (double)stored);
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &f.b.m, 0, NULL, &told), BSMM_OK);
    assert_int_equal(told, f.bytes);
    packed_b_free(&f);
}

static void test_compact_is_a_permutation(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 32}, {7, 33},   {16, 64},    {17, 420}, {133, 95},
                                        {32, 2}, {500, 70}, {100, 1030}, {0, 64},   {5, 0}};
    rng r = {41};
    const format_list all = all_formats();
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < BSMM_COUNT(shapes); j++) {
            bsmm_matrix b = describe(format_named(all.names[i]), shapes[j][0], shapes[j][1]);
            check_compact(b, FILL_SPECIAL, &r);
            b.order = BSMM_ORDER_COL;
            check_compact(b, FILL_SPECIAL, &r);
        }
    bsmm_matrix b = describe(format_named("nvfp4"), 100, 352);
    b.ld = 400;
    b.scale_layout = BSMM_LAYOUT_NV_128X4;
    check_compact(b, FILL_SPECIAL, &r);
}

/* Tests that the form "compact" has at most 1.03 times B's bytes if B has at least 64 rows and 64
 * KiB, or if B is a stack of such matrices. The test only computes sizes. */
static void test_compact_is_small(void **state) {
    (void)state;
    static const int64_t extents[] = {64,   65,   66,   127,  129,  257,   576,   1000,  1025,
                                      2880, 4096, 4097, 7168, 9999, 11008, 28672, 128256};
    const format_list all = all_formats();
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < BSMM_COUNT(extents) * BSMM_COUNT(extents); j++) {
            const bsmm_matrix b =
                describe(format_named(all.names[i]), extents[j / BSMM_COUNT(extents)],
                         extents[j % BSMM_COUNT(extents)]);
            const uint64_t least = least_bytes(&b);
            for (int64_t groups = 0; groups <= 32 && least >= 65536; groups += 32) {
                const double most = 1.03 * (double)least * (double)(groups ? groups : 1);
                uint64_t bytes;
                assert_int_equal(
                    bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &b, groups, NULL, &bytes),
                    BSMM_OK);
                if ((double)bytes > most)
                    fail_msg("%s of %d x %d, %d groups: %llu bytes", all.names[i], (int)b.rows,
                             (int)b.cols, (int)groups, (unsigned long long)bytes);
            }
        }
}

static void check_m(packed_b *f, bsmm_format a, int64_t m, const char *kernel, rng *r) {
    packed_b g;
    packed_b_make(&g, a, describe(f->b.m.format, 1, f->b.m.cols), m, FILL_ORDINARY, r);
    test_matrix d;
    test_matrix_make(&d, describe(format_named("f32"), m, f->b.m.rows), FILL_ORDINARY, r);
    g.desc.b = &f->b.m, g.desc.d = &d.m, g.desc.kernel = kernel;
    if (bsmm_matmul(&g.desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    float *expected = malloc(d.data_bytes);
    memcpy(expected, d.m.data, d.data_bytes);
    memset(d.m.data, 0xa5, d.data_bytes);
    g.desc.b_packed = f->desc.b_packed;
    if (bsmm_plan_create(&g.desc, &g.plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    const packed_b with = {.a = g.a, .d = d, .packed = f->packed, .bytes = f->bytes};
    if (packed_b_run(&with, g.plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    if (memcmp(expected, d.m.data, d.data_bytes) != 0)
        fail_msg("%lld rows of %s by %s: other bits", (long long)m, bsmm_format_name(a),
                 bsmm_plan_kernel(g.plan));
    free(expected);
    test_matrix_free(&d);
    packed_b_free(&g);
}

static void test_one_compact_b_for_all(void **state) {
    (void)state;
    static const char *const weights[] = {"mxfp4",        "nvfp4",      "mxfp8",
                                          "mxfp6_e2m3",   "mxfp6_e3m2", "fp8_block128",
                                          "fp8_group128", "bf16",       "f32"};
    static const char *const activations[] = {"mxfp4", "bf16", "fp8_group128", "f32"};
    static const int64_t rows[] = {1, 2, 4, 5, 16, 17, 33, 100};
    rng r = {42};
    for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
        packed_b f;
        packed_b_make(&f, format_named("bf16"), describe(format_named(weights[i]), 83, 288), 3,
                      FILL_ORDINARY, &r);
        packed_b_pack(&f, BSMM_PACKED_COMPACT);
        for (size_t a = 0; a < BSMM_COUNT(activations); a++)
            for (size_t j = 0; j < BSMM_COUNT(rows); j++)
                check_m(&f, format_named(activations[a]), rows[j], NULL, &r);
        check_m(&f, format_named("bf16"), 5, "ref", &r);
        check_m(&f, format_named("bf16"), 5, "cpu_f32", &r);
        packed_b_free(&f);
    }
}

static void test_global_scale_is_packed(void **state) {
    (void)state;
    rng r = {45};
    for (uint32_t form = 1; form <= form_count(); form++)
        for (uint32_t kind = 0; kind < 2; kind++) {
            packed_b f;
            packed_b_make(&f, format_named("nvfp4"), describe(format_named("nvfp4"), 40, 128), 6,
                          FILL_ORDINARY, &r);
            float global = 3;
            f.b.m.global_scale = &global;
            f.b.m.global_kind = kind;
            assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
            float *expected = malloc(f.d.data_bytes);
            memcpy(expected, f.d.m.data, f.d.data_bytes);
            f.desc.b_packed = form;
            bsmm_plan *plan;
            if (bsmm_plan_create(&f.desc, &plan) == BSMM_OK) {
                bsmm_plan_destroy(plan);
                packed_b_pack(&f, form);
                memset(f.d.m.data, 0xa5, f.d.data_bytes);
                if (packed_b_run(&f, f.plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
                assert_memory_equal(expected, f.d.m.data, f.d.data_bytes);
                bsmm_matrix back = f.b.m;
                back.global_scale = NULL;
                assert_int_equal(bsmm_unpack_b(f.packed, f.bytes, 0, &back), BSMM_E_INVALID);
                assert_non_null(strstr(bsmm_error_message(), "b.global_scale"));
                packed_b_check_unpacked(&f, &r);
            }
            f.b.m.global_scale = NULL;
            free(expected);
            packed_b_free(&f);
        }
}

static void check_stack(uint32_t form, rng *r) {
    enum { G = 3, ROWS_EACH = 20, K_EACH = 96 };
    const bsmm_group group = {.struct_size = sizeof group,
                              .kind = BSMM_GROUP_BATCH,
                              .count = G,
                              .a_step = BSMM_GROUP_SHARED};
    packed_b f;
    packed_b_make(&f, format_named("mxfp4"), describe(format_named("mxfp4"), G * ROWS_EACH, K_EACH),
                  3, FILL_ORDINARY, r);
    f.b.m.rows = ROWS_EACH, f.b.m.data_bytes = f.b.m.scale_bytes = 0;
    f.d.m.cols = ROWS_EACH, f.d.m.data_bytes = 0;
    f.desc.group = &group, f.desc.b_packed = form;
    bsmm_plan *plan;
    if (bsmm_plan_create(&f.desc, &plan) == BSMM_OK) {
        bsmm_plan_destroy(plan);
        packed_b_pack(&f, form);
        uint64_t told;
        assert_int_equal(bsmm_packed_bytes("cpu", form, &f.b.m, G, &f.a.m.format, &told), BSMM_OK);
        assert_int_equal(told, f.bytes);
        uint8_t data[ROWS_EACH * K_EACH / 2], scales[ROWS_EACH * K_EACH / 32];
        bsmm_matrix back = f.b.m;
        back.data = data, back.scales = scales;
        for (int64_t g = 0; g < G; g++) {
            assert_int_equal(bsmm_unpack_b(f.packed, f.bytes, g, &back), BSMM_OK);
            assert_memory_equal(data, (uint8_t *)f.b.m.data + (size_t)g * sizeof data, sizeof data);
            assert_memory_equal(scales, (uint8_t *)f.b.m.scales + (size_t)g * sizeof scales,
                                sizeof scales);
        }
        assert_int_equal(bsmm_unpack_b(f.packed, f.bytes, G, &back), BSMM_E_INVALID);
        assert_non_null(strstr(bsmm_error_message(), "index: value is 3; must be 0 to 2"));
        assert_int_equal(packed_b_run(&f, f.plan), BSMM_OK);
    }
    packed_b_free(&f);
}

/* Tests a batch whose products share B. The packed weights must contain B only once, so they must
 * be as large as those of a single matrix. */
static void check_shared(uint32_t form, rng *r) {
    enum { G = 3, M = 3, N = 20, K = 96 };
    const bsmm_group group = {.struct_size = sizeof group,
                              .kind = BSMM_GROUP_BATCH,
                              .count = G,
                              .b_step = BSMM_GROUP_SHARED};
    packed_b f;
    packed_b_make(&f, format_named("mxfp4"), describe(format_named("mxfp4"), N, K), G * M,
                  FILL_ORDINARY, r);
    f.a.m.rows = M, f.a.m.data_bytes = f.a.m.scale_bytes = 0;
    f.d.m.rows = M, f.d.m.data_bytes = 0;
    f.desc.group = &group, f.desc.b_packed = form;
    bsmm_plan *plan;
    const bool planned = bsmm_plan_create(&f.desc, &plan) == BSMM_OK;
    assert_true(planned || form == BSMM_PACKED_WIDE);
    if (planned) {
        bsmm_plan_destroy(plan);
        packed_b_pack(&f, form);
        bsmm_packed_info info = {.struct_size = sizeof info};
        uint64_t one;
        assert_int_equal(bsmm_packed_describe(f.packed, f.bytes, &info), BSMM_OK);
        assert_int_equal(info.groups, 1);
        assert_int_equal(bsmm_packed_bytes("cpu", form, &f.b.m, 1, &f.a.m.format, &one), BSMM_OK);
        assert_int_equal(f.bytes, one);
        packed_b_check_unpacked(&f, r);
        assert_int_equal(packed_b_run(&f, f.plan), BSMM_OK);
    }
    packed_b_free(&f);
}

static void test_shared_b(void **state) {
    (void)state;
    rng r = {52};
    check_shared(BSMM_PACKED_WIDE, &r);
    check_shared(BSMM_PACKED_COMPACT, &r);
}

static void test_stacks(void **state) {
    (void)state;
    rng r = {50};
    check_stack(BSMM_PACKED_WIDE, &r);
    check_stack(BSMM_PACKED_COMPACT, &r);
}

/* Makes a B that is zero except for one element. The block of this element has the scale 2^100. */
static void make_lone_element(test_matrix *b) {
    memset(b->m.data, 0, b->data_bytes);
    memset(b->m.scales, 127, b->scale_bytes);
    bsmm_elem_store(b->m.format.elem, b->m.data, 3 * (uint64_t)b->m.cols + 20,
                    bsmm_elem_encode(b->m.format.elem, 1, true));
    ((uint8_t *)b->m.scales)[3 * b->m.cols / 32] = 127 + 100;
}

/* Tests compact packed weights with a block scale of 2^100, which is outside the range of some
 * kernels. Kernels may replace the scale of a block of zeros, but here the block has an element
 * that is not zero. */
static void test_unusual_scales(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8"};
    rng r = {51};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (uint32_t k = 0; bsmm_kernel_at(k); k++) {
            packed_b f;
            bsmm_explanation e = {.struct_size = sizeof e};
            bsmm_format format = format_named(formats[i]);
            packed_b_make(&f, format, describe(format, 16, 64), 2, FILL_ORDINARY, &r);
            make_lone_element(&f.b);
            f.desc.b_packed = BSMM_PACKED_COMPACT;
            assert_int_equal(bsmm_explain(&f.desc, k, &e), BSMM_OK);
            if (e.accepts) {
                f.desc.kernel = bsmm_kernel_at(k)->name;
                f.desc.b_packed = BSMM_PACKED_NONE;
                assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
                float want = ((float *)f.d.m.data)[3];
                packed_b_pack(&f, BSMM_PACKED_COMPACT);
                assert_int_equal(packed_b_run(&f, f.plan), BSMM_OK);
                if (memcmp(&want, (float *)f.d.m.data + 3, sizeof want) != 0)
                    fail_msg("%s, %s: %g, not %g", formats[i], f.desc.kernel,
                             (double)((float *)f.d.m.data)[3], (double)want);
            }
            packed_b_free(&f);
        }
}

static void test_refusals(void **state) {
    (void)state;
    const bsmm_matrix b = describe(format_named("mxfp4"), 16, 64);
    uint64_t bytes;
    assert_int_equal(bsmm_packed_bytes(NULL, form_count() + 1, &b, 0, NULL, &bytes),
                     BSMM_E_INVALID);
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_WIDE, &b, 0, NULL, &bytes),
                     BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "a: value is NULL"));
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &b, -1, NULL, &bytes),
                     BSMM_E_INVALID);
    assert_int_equal(bsmm_packed_bytes(NULL, BSMM_PACKED_COMPACT, &b, 0, NULL, NULL),
                     BSMM_E_INVALID);
    assert_int_equal(bsmm_unpack_b(NULL, 128, 0, &b), BSMM_E_INVALID);
    rng r = {49};
    packed_b f;
    packed_b_make(&f, format_named("bf16"), b, 3, FILL_ORDINARY, &r);
    f.desc.b_packed = BSMM_PACKED_COMPACT;
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_E_INVALID);
    f.desc.b_packed = form_count() + 1;
    assert_int_equal(bsmm_plan_create(&f.desc, &f.plan), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "b_packed: value is "));
    packed_b_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_compact_is_a_permutation),
        cmocka_unit_test(test_compact_is_small),
        cmocka_unit_test(test_one_compact_b_for_all),
        cmocka_unit_test(test_global_scale_is_packed),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_shared_b),
        cmocka_unit_test(test_unusual_scales),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
