/* Tests bsmm_quantize for various shapes, orders, layouts, numbers of threads and input types. Also
 * tests its errors, bsmm_amax and bsmm_recipe_store. */
#include "core/kernel.h"
#include "operand.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bsmm_matrix shaped(bsmm_format format, int64_t rows, int64_t cols) {
    return describe(format, rows, cols);
}

/* Fills a matrix with values whose exponents vary so widely that every block gets a different
 * scale. */
static void fill_values(const bsmm_matrix *m, rng *r) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(m, "m", &o), BSMM_OK);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) {
            double value = (double)(int64_t)rng_next(r) * 0x1p-63;
            value *= ldexp(1, (int)rng_below(r, 16) - 8);
            uint32_t code = bsmm_elem_encode(m->format.elem, rng_below(r, 9) ? value : 0, true);
            bsmm_elem_store(m->format.elem, m->data, bsmm_operand_index(&o, i, j), code);
        }
}

static bsmm_status quantize(const char *recipe, uint32_t flags, uint32_t threads,
                            const bsmm_matrix *src, const bsmm_matrix *dst,
                            bsmm_quantize_report *report) {
    bsmm_quantize_desc desc = {.struct_size = sizeof desc,
                               .flags = flags,
                               .src = src,
                               .dst = dst,
                               .recipe = recipe,
                               .threads = threads};
    return bsmm_quantize(&desc, report);
}

static void must_quantize(const char *recipe, uint32_t threads, const bsmm_matrix *src,
                          const bsmm_matrix *dst) {
    if (quantize(recipe, 0, threads, src, dst, NULL) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
}

static uint32_t scale_at(const bsmm_matrix *m, int64_t r, int64_t c) {
    uint64_t at;
    assert_int_equal(bsmm_scale_offset(m, r, c, &at), BSMM_OK);
    return bsmm_scale_load_code(m->format.scale, m->scales, at);
}

/* Fails unless the two matrices have equal codes and scales. Their layouts may differ. */
static void assert_same_codes(const bsmm_matrix *a, const bsmm_matrix *b) {
    bsmm_operand x, y;
    assert_int_equal(bsmm_operand_take(a, "a", &x), BSMM_OK);
    assert_int_equal(bsmm_operand_take(b, "b", &y), BSMM_OK);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            uint32_t elem = a->format.elem;
            uint32_t p = bsmm_elem_load(elem, a->data, bsmm_operand_index(&x, i, j));
            uint32_t q = bsmm_elem_load(elem, b->data, bsmm_operand_index(&y, i, j));
            if (p != q) fail_msg("(%d, %d): 0x%x and 0x%x", (int)i, (int)j, p, q);
        }
    for (int64_t i = 0; i < x.map.rows; i++)
        for (int64_t j = 0; j < x.map.cols; j++)
            assert_int_equal(scale_at(a, i, j), scale_at(b, i, j));
}

static const bsmm_format formats[] = {
    {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32},
    {BSMM_ELEM_E2M3, BSMM_SCALE_E8M0, 1, 32},
    {BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32},
    {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16},
    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128},
    {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 128, 128},
    {BSMM_ELEM_E5M2, BSMM_SCALE_E8M0, 7, 6},
    {BSMM_ELEM_E3M2, BSMM_SCALE_E4M3, 3, 20},
    {BSMM_ELEM_F16, BSMM_SCALE_F32, 2, 10},
    {BSMM_ELEM_F32, BSMM_SCALE_F32, 5, 9},
    {BSMM_ELEM_E2M1, BSMM_SCALE_F32, 32, 300},
    {.elem = BSMM_ELEM_E4M3FNUZ},
    {.elem = BSMM_ELEM_E2M1},
    {.elem = BSMM_ELEM_E3M2},
    {.elem = BSMM_ELEM_BF16},
    {.elem = BSMM_ELEM_F32},
};

static const int64_t sizes[][2] = {{1, 1}, {5, 33}, {130, 70}, {37, 513},
                                   {4, 0}, {0, 4},  {67, 1031}};

typedef struct memory {
    test_matrix src, plain, other;
} memory;

static void make_memory(memory *m, bsmm_format format, const int64_t size[2], rng *r) {
    test_matrix_make(&m->src, shaped(format_named("f32"), size[0], size[1]), FILL_ORDINARY, r);
    test_matrix_make(&m->plain, shaped(format, size[0], size[1]), FILL_SPECIAL, r);
    fill_values(&m->src.m, r);
    m->plain.m.global_scale = &m->plain.global;
    must_quantize(NULL, 1, &m->src.m, &m->plain.m);
}

static void free_memory(memory *m) {
    test_matrix_free(&m->src);
    test_matrix_free(&m->plain);
}

/* Quantizes one block as a matrix of its own. The codes and the scale must be those of the same
 * block in the whole matrix. */
static void check_block(const memory *m, int64_t r0, int64_t c0) {
    const bsmm_format *f = &m->plain.m.format;
    int64_t rows = bsmm_min_i64(f->block_rows, m->src.m.rows - r0);
    int64_t cols = bsmm_min_i64(f->block_cols, m->src.m.cols - c0);
    test_matrix block;
    rng r = {0};
    float amax;
    bsmm_matrix part = m->src.m;
    part.data = (float *)part.data + r0 * m->src.m.cols + c0;
    part.ld = m->src.m.cols;
    part.rows = rows;
    part.cols = cols;
    part.data_bytes = 0;
    test_matrix_make(&block, shaped(*f, rows, cols), FILL_SPECIAL, &r);
    block.m.global_scale = &block.global;
    assert_int_equal(bsmm_amax(&m->src.m, &amax), BSMM_OK);
    bsmm_quantize_desc desc = {
        .struct_size = sizeof desc, .src = &part, .dst = &block.m, .amax = &amax};
    assert_int_equal(bsmm_quantize(&desc, NULL), BSMM_OK);
    assert_true(block.global == m->plain.global);
    assert_int_equal(scale_at(&block.m, 0, 0),
                     scale_at(&m->plain.m, r0 / f->block_rows, c0 / f->block_cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            assert_true(test_matrix_value(&block, i, j) ==
                        test_matrix_value(&m->plain, r0 + i, c0 + j));
    test_matrix_free(&block);
}

static void test_blocks_are_independent(void **state) {
    (void)state;
    rng r = {1};
    for (size_t f = 0; f < BSMM_COUNT(formats); f++) {
        memory m;
        static const int64_t size[] = {133, 130};
        if (formats[f].scale == BSMM_SCALE_NONE) continue;
        make_memory(&m, formats[f], size, &r);
        for (int64_t i = 0; i < size[0]; i += 4 * formats[f].block_rows)
            for (int64_t j = 0; j < size[1]; j += formats[f].block_cols)
                check_block(&m, i, j);
        free_memory(&m);
    }
}

/* Checks that another order, stride, scale layout or number of threads gives the same codes. */
static void check_variant(const memory *m, uint32_t variant, rng *r) {
    static const uint32_t layouts[] = {BSMM_LAYOUT_COL_MAJOR, BSMM_LAYOUT_NV_128X4,
                                       BSMM_LAYOUT_CDNA4_MFMA16, BSMM_LAYOUT_CUBLAS_BLK128};
    test_matrix src, dst;
    bsmm_matrix from = m->src.m, to = m->plain.m;
    from.order = variant & 1;
    from.ld = (from.order ? from.rows : from.cols) + 3;
    from.data_bytes = to.data_bytes = to.scale_bytes = 0;
    to.order = variant >> 1 & 1;
    to.ld = bsmm_round_up(to.order ? to.rows : to.cols, 4) + 4;
    to.scales = NULL;
    if (to.format.scale != BSMM_SCALE_NONE) to.scale_layout = layouts[variant % 4];
    test_matrix_make(&src, from, FILL_ORDINARY, r);
    test_matrix_make(&dst, to, FILL_SPECIAL, r);
    dst.m.global_scale = &dst.global;
    assert_int_equal(bsmm_convert(&m->src.m, &src.m), BSMM_OK);
    must_quantize(NULL, 1 + variant % 5, &src.m, &dst.m);
    assert_same_codes(&m->plain.m, &dst.m);
    assert_true(dst.global == m->plain.global);
    test_matrix_free(&src);
    test_matrix_free(&dst);
}

static void test_orders_layouts_and_threads(void **state) {
    (void)state;
    rng r = {2};
    for (size_t f = 0; f < BSMM_COUNT(formats); f++)
        for (size_t s = 0; s < BSMM_COUNT(sizes); s++) {
            memory m;
            make_memory(&m, formats[f], sizes[s], &r);
            for (uint32_t variant = 0; variant < 8; variant++)
                check_variant(&m, variant, &r);
            free_memory(&m);
        }
}

/* Tests elements of fewer than 8 bits. If a row does not fill its last byte, the rest must be codes
 * of 0. Gaps between rows must stay unchanged. */
static void test_padding_of_elements(void **state) {
    (void)state;
    uint8_t data[16];
    float values[] = {-6, -6, -6, -6, -6, -6};
    bsmm_matrix src = describe(format_named("f32"), 2, 3);
    bsmm_matrix dst = describe(format_named("e2m1"), 2, 3);
    src.data = values;
    dst.data = data;
    dst.ld = 8;
    memset(data, 0xa5, sizeof data);
    must_quantize(NULL, 1, &src, &dst);
    static const uint8_t rows[] = {0xff, 0x0f, 0xa5, 0xa5, 0xff, 0x0f, 0xa5};
    assert_memory_equal(data, rows, sizeof rows);
    dst.order = BSMM_ORDER_COL;
    dst.format = format_named("e3m2");
    memset(data, 0xa5, sizeof data);
    must_quantize(NULL, 1, &src, &dst);
    uint32_t code = bsmm_elem_encode(BSMM_ELEM_E3M2, -6, true);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(bsmm_elem_load(BSMM_ELEM_E3M2, data, i), i < 2 ? code : 0);
    static const uint8_t skipped[] = {0xa5, 0xa5, 0xa5};
    assert_memory_equal(data + 3, skipped, sizeof skipped);
}

static void test_padding_of_scales(void **state) {
    (void)state;
    rng r = {3};
    test_matrix src, dst;
    bsmm_operand o;
    test_matrix_make(&src, shaped(format_named("f32"), 130, 70), FILL_ORDINARY, &r);
    bsmm_matrix to = shaped(format_named("mxfp4"), 130, 70);
    to.scale_layout = BSMM_LAYOUT_NV_128X4;
    test_matrix_make(&dst, to, FILL_SPECIAL, &r);
    memset(dst.m.scales, 0xa5, dst.scale_bytes);
    must_quantize(NULL, 2, &src.m, &dst.m);
    assert_int_equal(bsmm_operand_take(&dst.m, "dst", &o), BSMM_OK);
    for (int64_t i = 0; i < 256; i++)
        for (int64_t j = 0; j < 4; j++) {
            uint8_t code = ((uint8_t *)dst.m.scales)[bsmm_scale_map_at(&o.map, i, j)];
            assert_true((code == 0) == (i >= 130 || j >= 3));
        }
    test_matrix_free(&src);
    test_matrix_free(&dst);
}

/* Tests that f16 and bf16 inputs give the same bytes as the same values in f32. The rules of a few
 * recipes depend on the input's type, so these are excluded. */
static void test_input_types(void **state) {
    (void)state;
    static const char *const recipes[] = {"torchao", "te", "modelopt"};
    rng r = {4};
    for (uint32_t elem = BSMM_ELEM_F16; elem <= BSMM_ELEM_BF16; elem++)
        for (size_t i = 0; i < BSMM_COUNT(recipes); i++) {
            test_matrix half, wide, a, b;
            bsmm_matrix shape = shaped(format_named("nvfp4"), 9, 100);
            test_matrix_make(&half, shaped((bsmm_format){.elem = elem}, 9, 100), FILL_ORDINARY, &r);
            test_matrix_make(&wide, shaped(format_named("f32"), 9, 100), FILL_ORDINARY, &r);
            test_matrix_make(&a, shape, FILL_SPECIAL, &r);
            test_matrix_make(&b, shape, FILL_SPECIAL, &r);
            a.m.global_scale = &a.global;
            b.m.global_scale = &b.global;
            assert_int_equal(bsmm_dequantize(&half.m, &wide.m), BSMM_OK);
            must_quantize(recipes[i], 0, &half.m, &a.m);
            must_quantize(recipes[i], 0, &wide.m, &b.m);
            assert_same_codes(&a.m, &b.m);
            assert_true(a.global == b.global);
            test_matrix_free(&half);
            test_matrix_free(&wide);
            test_matrix_free(&a);
            test_matrix_free(&b);
        }
}

/* Tests that every format with scales saturates, even if its elements are f32. */
static void test_wide_elements_saturate(void **state) {
    (void)state;
    float values[] = {1, -INFINITY, INFINITY, 0}, data[4];
    uint8_t scale;
    bsmm_matrix src = describe(format_named("f32"), 1, 4);
    bsmm_matrix dst = describe((bsmm_format){BSMM_ELEM_F32, BSMM_SCALE_E8M0, 1, 4}, 1, 4);
    src.data = values;
    dst.data = data;
    dst.scales = &scale;
    must_quantize("ocp", 1, &src, &dst);
    assert_true(data[1] == -FLT_MAX && data[2] == FLT_MAX && data[3] == 0);
}

static float amax_of(const bsmm_matrix *m) {
    float amax = -1;
    assert_int_equal(bsmm_amax(m, &amax), BSMM_OK);
    return amax;
}

static void test_amax(void **state) {
    (void)state;
    float values[] = {1, -7, 3, NAN, 2, 100};
    bsmm_matrix m = describe(format_named("f32"), 2, 3);
    m.data = values;
    assert_true(isnan(amax_of(&m)));
    values[3] = 0;
    assert_true(amax_of(&m) == 100);
    m.cols = 2;
    /* The leading dimension is larger than a row here. The elements after the end of a row must not
     * count for the largest magnitude. */
    m.ld = 3;
    assert_true(amax_of(&m) == 7);
    m.order = BSMM_ORDER_COL;
    assert_true(amax_of(&m) == 7);
    values[1] = -INFINITY;
    assert_true(isinf(amax_of(&m)));
    m.rows = 0;
    assert_true(amax_of(&m) == 0);
    assert_int_equal(bsmm_amax(&m, NULL), BSMM_E_INVALID);
    m.format = format_named("e4m3");
    assert_int_equal(bsmm_amax(&m, values), BSMM_E_INVALID);
}

/* Checks that bsmm_recipe_store and bsmm_recipe_pad write the same bytes as bsmm_quantize.
 * bsmm_recipe_store is called for several parts of a matrix. */
static void check_store(const char *name, const char *format, uint32_t kind, rng *r) {
    test_matrix src, a, b;
    const bsmm_recipe *recipe;
    bsmm_operand o;
    bsmm_matrix shape = shaped(format_named(format), 200, 300);
    shape.scale_layout = BSMM_LAYOUT_NV_128X4;
    shape.global_kind = kind;
    test_matrix_make(&src, shaped(format_named("f32"), 200, 300), FILL_ORDINARY, r);
    test_matrix_make(&a, shape, FILL_SPECIAL, r);
    test_matrix_make(&b, shape, FILL_SPECIAL, r);
    memset(b.m.scales, 0xa5, b.scale_bytes);
    a.m.global_scale = &a.global;
    must_quantize(name, 0, &src.m, &a.m);
    b.global = a.global;
    b.m.global_scale = &b.global;
    assert_int_equal(bsmm_recipe_find(name, shape.format, &recipe), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&b.m, "b", &o), BSMM_OK);
    int64_t step = shape.format.block_rows, across = 128;
    for (int64_t row = 0; row < 200; row += step)
        for (int64_t col = 0; col < 300; col += across)
            bsmm_recipe_store(recipe, &o, row, bsmm_min_i64(step, 200 - row), col,
                              bsmm_min_i64(across, 300 - col),
                              (const float *)src.m.data + row * 300 + col, 300,
                              (float)bsmm_operand_global(&o));
    bsmm_recipe_pad(&o);
    assert_memory_equal(a.m.data, b.m.data, a.data_bytes);
    assert_memory_equal(a.m.scales, b.m.scales, a.scale_bytes);
    test_matrix_free(&src);
    test_matrix_free(&a);
    test_matrix_free(&b);
}

static void test_store_by_rows(void **state) {
    (void)state;
    rng r = {5};
    check_store("ocp", "mxfp6_e2m3", 0, &r);
    check_store("torchao", "nvfp4", BSMM_GLOBAL_MULTIPLIER, &r);
    check_store("te", "nvfp4", BSMM_GLOBAL_DIVISOR, &r);
    check_store("compressed-tensors", "nvfp4", BSMM_GLOBAL_DIVISOR, &r);
    check_store("deepgemm", "fp8_block128", 0, &r);
}

static struct {
    float values[64], global;
    uint8_t data[64], scales[16];
} buffers;

static void expect(bsmm_status status, const char *text, const bsmm_quantize_desc *desc,
                   bsmm_quantize_report *report) {
    memset(&buffers, 0x3c, sizeof buffers);
    uint8_t before[sizeof buffers];
    memcpy(before, &buffers, sizeof buffers);
    assert_int_equal(bsmm_quantize(desc, report), status);
    if (!strstr(bsmm_error_message(), text)) fail_msg("%s", bsmm_error_message());
    assert_memory_equal(before, &buffers, sizeof buffers);
}

static bsmm_matrix source(void) {
    bsmm_matrix m = describe(format_named("f32"), 2, 32);
    m.data = buffers.values;
    return m;
}

static bsmm_matrix destination(const char *format) {
    bsmm_matrix m = describe(format_named(format), 2, 32);
    m.data = buffers.data;
    m.scales = buffers.scales;
    return m;
}

static void test_bad_descriptions(void **state) {
    (void)state;
    float minus = -1;
    bsmm_matrix src = source(), dst = destination("mxfp8"), bad;
    const bsmm_quantize_desc good = {.struct_size = sizeof good, .src = &src, .dst = &dst};
    bsmm_quantize_desc desc;
    assert_int_equal(bsmm_quantize(NULL, NULL), BSMM_E_INVALID);
    desc = good, desc.src = NULL, expect(BSMM_E_INVALID, "src", &desc, NULL);
    desc = good, desc.dst = NULL, expect(BSMM_E_INVALID, "dst", &desc, NULL);
    desc = good, desc.flags = 1, expect(BSMM_E_INVALID, "flags", &desc, NULL);
    desc = good, desc.flags = 64, expect(BSMM_E_INVALID, "flags", &desc, NULL);
    desc = good, desc.reserved = 1, expect(BSMM_E_INVALID, "reserved", &desc, NULL);
    desc = good, desc.amax = &minus, expect(BSMM_E_INVALID, "amax", &desc, NULL);
    desc = good, desc.recipe = "none", expect(BSMM_E_NOT_FOUND, "recipe", &desc, NULL);
    desc = good, desc.recipe = "deepgemm", expect(BSMM_E_UNSUPPORTED, "deepgemm", &desc, NULL);
    desc = good, desc.dst = &bad;
    bad = dst, bad.rows = 1, expect(BSMM_E_INVALID, "dst.rows", &desc, NULL);
    bad = dst, bad.cols = 31, expect(BSMM_E_INVALID, "dst.cols", &desc, NULL);
    bad = dst, bad.data = NULL, expect(BSMM_E_INVALID, "dst.data", &desc, NULL);
    bad = dst, bad.scales = NULL, expect(BSMM_E_INVALID, "dst.scales", &desc, NULL);
    bad = dst, bad.scales = buffers.data + 63, expect(BSMM_E_INVALID, "overlaps", &desc, NULL);
    bad = dst, bad.data = buffers.values, expect(BSMM_E_INVALID, "overlaps", &desc, NULL);
    bad = dst, bad.scale_layout = BSMM_LAYOUT_NV_8X4;
    expect(BSMM_E_INVALID, "scale_bytes", &desc, NULL);
    desc = good, desc.src = &bad;
    bad = dst, expect(BSMM_E_INVALID, "src.format", &desc, NULL);
    bad = src, bad.data = (uint8_t *)src.data + 1, expect(BSMM_E_INVALID, "aligned", &desc, NULL);
    bad = src, bad.global_scale = &buffers.global;
    expect(BSMM_E_INVALID, "src.global_scale", &desc, NULL);
    bsmm_quantize_report report = {.struct_size = 3};
    expect(BSMM_E_INVALID, "report", &good, &report);
}

static void test_bad_levels(void **state) {
    (void)state;
    bsmm_matrix src = source(), dst = destination("nvfp4");
    bsmm_quantize_desc desc = {.struct_size = sizeof desc, .src = &src, .dst = &dst};
    expect(BSMM_E_INVALID, "BSMM_QUANTIZE_ONE_LEVEL", &desc, NULL);
    desc.recipe = "te";
    expect(BSMM_E_INVALID, "dst.global_scale", &desc, NULL);
    dst.global_scale = &buffers.global;
    desc.recipe = "compressed-tensors";
    expect(BSMM_E_INVALID, "stores a divisor", &desc, NULL);
    assert_non_null(strstr(bsmm_error_message(), "are torchao te modelopt"));
    dst.global_kind = BSMM_GLOBAL_DIVISOR;
    desc.recipe = "modelopt";
    expect(BSMM_E_INVALID, "stores a multiplier", &desc, NULL);
    assert_non_null(strstr(bsmm_error_message(), "are te compressed-tensors"));
    assert_int_equal(quantize(NULL, BSMM_QUANTIZE_ONE_LEVEL, 0, &src, &dst, NULL), BSMM_OK);
    assert_true(buffers.global == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_independent),
        cmocka_unit_test(test_orders_layouts_and_threads),
        cmocka_unit_test(test_padding_of_elements),
        cmocka_unit_test(test_padding_of_scales),
        cmocka_unit_test(test_input_types),
        cmocka_unit_test(test_wide_elements_saturate),
        cmocka_unit_test(test_amax),
        cmocka_unit_test(test_store_by_rows),
        cmocka_unit_test(test_bad_descriptions),
        cmocka_unit_test(test_bad_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
