/* Tests that bsmm_quantize, bsmm_dequantize and bsmm_amax write the same bytes with every
 * instruction set. The test covers every recipe, element format, input type, scale layout and
 * order, and values that are hard to round. An unreadable page follows each buffer. */
#include "base/scalar.h"
#include "cpu_hooks.h"
#include "operand.h"
#include "quantize/recipe.h"
#include "recode_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t processors[] = {0, BSMM_CPU_AVX2, ~(uint32_t)BSMM_CPU_AVX512_VBMI, ~0u};

typedef struct call {
    const char *recipe;
    uint32_t flags;
    const float *amax;
} call;

static void poison(test_matrix *t) {
    memset(t->m.data, 0xa5, t->data_bytes);
    if (t->m.scales) memset(t->m.scales, 0xa5, t->scale_bytes);
    t->global = -1;
}

static void run_quantize(const call *how, const test_matrix *src, test_matrix *dst) {
    bsmm_quantize_desc desc = {.struct_size = sizeof desc,
                               .flags = how->flags,
                               .src = &src->m,
                               .dst = &dst->m,
                               .recipe = how->recipe,
                               .amax = how->amax};
    poison(dst);
    if (bsmm_quantize(&desc, NULL) != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

static void assert_same_bytes(const test_matrix *a, const test_matrix *b, const char *what) {
    if (memcmp(a->m.data, b->m.data, a->data_bytes) != 0) fail_msg("%s: elements differ", what);
    if (a->m.scales && memcmp(a->m.scales, b->m.scales, a->scale_bytes) != 0)
        fail_msg("%s: scales differ", what);
    if (memcmp(&a->global, &b->global, sizeof a->global) != 0) fail_msg("%s: levels differ", what);
}

static void check_quantize(const call *how, const test_matrix *src, const bsmm_matrix *shape) {
    test_matrix plain, fast;
    rng r = {0};
    char what[128];
    test_matrix_make(&plain, *shape, FILL_ORDINARY, &r);
    test_matrix_make(&fast, *shape, FILL_ORDINARY, &r);
    if (shape->global_scale) {
        plain.m.global_scale = &plain.global;
        fast.m.global_scale = &fast.global;
    }
    bsmm_cpu_mask_features(processors[0]);
    run_quantize(how, src, &plain);
    for (size_t i = 1; i < BSMM_COUNT(processors); i++) {
        bsmm_cpu_mask_features(processors[i]);
        run_quantize(how, src, &fast);
        snprintf(what, sizeof what, "%s, %s to %s, %d x %d, processor %d", how->recipe,
                 bsmm_format_name(src->m.format), bsmm_format_name(shape->format), (int)shape->rows,
                 (int)shape->cols, (int)i);
        assert_same_bytes(&plain, &fast, what);
    }
    bsmm_cpu_mask_features(~0u);
    test_matrix_free(&plain);
    test_matrix_free(&fast);
}

/* Chooses sizes, strides, layouts and orders of both matrices. Each value of `variant` gives
 * another combination. */
static void shape_both(uint32_t variant, bsmm_matrix *src, bsmm_matrix *dst) {
    static const int64_t sizes[][2] = {{3, 512}, {2, 1031}, {5, 70}, {133, 33}, {2, 2305}, {4, 1}};
    src->rows = dst->rows = sizes[variant % 6][0];
    src->cols = dst->cols = sizes[variant % 6][1];
    src->order = variant % 5 == 4;
    dst->order = variant % 7 == 6;
    if (variant & 1) src->ld = (src->order ? src->rows : src->cols) + 3;
    if (variant & 2) dst->ld = bsmm_round_up(dst->order ? dst->rows : dst->cols, 4) + 4;
    if (dst->format.scale == BSMM_SCALE_NONE) return;
    dst->scale_layout = variant % 9;
    if (dst->scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS) {
        dst->scale_tile_rows = 3;
        dst->scale_tile_cols = variant & 4 ? 8 : 5;
    }
}

static void check_recipe(const bsmm_recipe_info *info, bsmm_format format, rng *r) {
    static float level;
    for (int i = 0; i < 12; i++) {
        uint32_t variant = rng_below(r, 4 * 5 * 7 * 9);
        test_matrix src;
        bsmm_matrix from = describe((bsmm_format){.elem = BSMM_ELEM_F32 + variant % 3}, 0, 0);
        bsmm_matrix to = describe(format, 0, 0);
        const float given = 3.0f;
        call how = {info->name, variant & 1 ? info->flags : 0, variant % 4 == 3 ? &given : NULL};
        shape_both(variant, &from, &to);
        if (!(how.flags & BSMM_QUANTIZE_ONE_LEVEL) && format.scale == BSMM_SCALE_E4M3 &&
            strcmp(info->name, "ggml") != 0)
            to.global_scale = &level;
        to.global_kind = strcmp(info->name, "compressed-tensors") == 0 && to.global_scale;
        test_matrix_make(&src, from, FILL_ORDINARY, r);
        recode_fill(&src, rng_below(r, RECODE_MIXES), r);
        check_quantize(&how, &src, &to);
        test_matrix_free(&src);
    }
}

static void check_formats(const bsmm_recipe_info *info, rng *r) {
    char names[256];
    snprintf(names, sizeof names, "%s", info->formats);
    for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest));) {
        bsmm_format format = format_named(name);
        check_recipe(info, format, r);
        if (format.scale == BSMM_SCALE_NONE) continue;
        /* No preset has blocks of these shapes, such as several rows or an unusual number of
         * columns. */
        format.block_cols = 12;
        check_recipe(info, format, r);
        format.block_cols = 48;
        format.block_rows = 3;
        check_recipe(info, format, r);
    }
}

static void test_every_recipe(void **state) {
    (void)state;
    bsmm_recipe_info info = {.struct_size = sizeof info};
    rng r = {1};
    for (uint32_t i = 0; bsmm_recipe_at(i, &info) == BSMM_OK; i++)
        check_formats(&info, &r);
}

/* A bound is a magnitude that gives an e4m3 scale halfway between two codes. At each bound, the
 * test tries NEAR floats, from 3 ulp below the bound to 3 ulp above it. */
enum { BOUNDS = 126, NEAR = 7, BLOCK = 16 };

/* Stores blocks of 16 values. A bound is a magnitude that gives an e4m3 scale halfway between two
 * codes. The largest magnitude of each block is a bound or lies up to 3 ulp below or above it, so
 * that an error in the last bits would change the block's scale. `tensor` is the scale of the
 * tensor. */
static void store_bounds(const test_matrix *src, float tensor, rng *r) {
    for (uint32_t i = 0; i < BOUNDS * NEAR; i++) {
        uint32_t code = i / NEAR;
        float bound = (bsmm_e4m3_value(code) + bsmm_e4m3_value(code + 1)) / 2 * (tensor / 448);
        float amax = code ? bsmm_bits_float(bsmm_float_bits(bound) - 3 + i % NEAR) : 0;
        for (uint32_t j = 0; j < BLOCK; j++) {
            double part = j == i % BLOCK ? 1 : rng_below(r, 2000) / 1000.0 - 1;
            uint32_t value = bsmm_elem_encode(src->m.format.elem, part * (double)amax, true);
            bsmm_elem_store(src->m.format.elem, src->m.data, i * BLOCK + j, value);
        }
    }
}

static void check_bounds(const char *recipe, const test_matrix *src, float tensor) {
    static float level;
    bsmm_matrix shape = describe(format_named("nvfp4"), src->m.rows, src->m.cols);
    if (strcmp(recipe, "ggml") != 0) shape.global_scale = &level;
    shape.global_kind = strcmp(recipe, "compressed-tensors") == 0;
    check_quantize(&(call){recipe, 0, shape.global_scale ? &tensor : NULL}, src, &shape);
}

static void test_scale_bounds(void **state) {
    (void)state;
    static const char *const recipes[] = {"torchao", "te", "modelopt", "compressed-tensors",
                                          "ggml"};
    static const float tensors[] = {1, 2688, 0.37f, 3.3e-5f, 0x1.9p-50f, 0x1.7p59f, 0x1.3p-110f};
    rng r = {6};
    for (uint32_t i = 0; i < BSMM_COUNT(recipes) * BSMM_COUNT(tensors); i++)
        for (uint32_t elem = BSMM_ELEM_F32; elem <= BSMM_ELEM_BF16; elem++) {
            float tensor = tensors[i / BSMM_COUNT(recipes)];
            test_matrix src;
            test_matrix_make(&src, describe((bsmm_format){.elem = elem}, 1, BOUNDS * NEAR * BLOCK),
                             FILL_ORDINARY, &r);
            store_bounds(&src, tensor, &r);
            check_bounds(recipes[i % BSMM_COUNT(recipes)], &src, tensor);
            test_matrix_free(&src);
        }
}

static void store_patterns(const test_matrix *t, uint32_t low) {
    bool wide = t->m.format.elem == BSMM_ELEM_F32;
    for (uint32_t i = 0; i < 1u << 16; i++)
        bsmm_elem_store(t->m.format.elem, t->m.data, i, wide ? i << 16 | low : i);
}

/* Compares vector code with the portable functions for values of every bit pattern. Formats without
 * scales round each value separately. Consecutive patterns are values of similar magnitudes, so all
 * values of a block of the formats with scales have similar magnitudes here. */
static void check_patterns(const test_matrix *src) {
    static const char *const formats[] = {"e4m3",  "e4m3fnuz",   "e5m2",        "e5m2fnuz",
                                          "e3m2",  "e2m3",       "e2m1",        "mxfp4",
                                          "mxfp8", "mxfp6_e2m3", "fp8_group128"};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
        bsmm_matrix shape = describe(format_named(formats[i]), 1, 1 << 16);
        check_quantize(&(call){NULL, 0, NULL}, src, &shape);
    }
}

static void test_every_pattern(void **state) {
    (void)state;
    static const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    rng r = {2};
    for (uint32_t elem = BSMM_ELEM_F32; elem <= BSMM_ELEM_BF16; elem++)
        for (size_t i = 0; i < (elem == BSMM_ELEM_F32 ? BSMM_COUNT(lows) : 1); i++) {
            test_matrix src;
            test_matrix_make(&src, describe((bsmm_format){.elem = elem}, 1, 1 << 16), FILL_ORDINARY,
                             &r);
            store_patterns(&src, lows[i]);
            check_patterns(&src);
            test_matrix_free(&src);
        }
}

/* Tests bf16 in blocks. In row e, each block begins with the largest bf16 number of exponent e. The
 * other values of the block are smaller by factors of up to 2^6. */
static void test_bf16_in_blocks(void **state) {
    (void)state;
    enum { WIDTH = 32, COLS = 50 * WIDTH, EXPONENTS = 255 };
    test_matrix src;
    rng r = {7};
    test_matrix_make(&src, describe(format_named("bf16"), EXPONENTS, COLS), FILL_ORDINARY, &r);
    for (uint32_t i = 0; i < EXPONENTS * COLS; i++) {
        uint32_t top = i / COLS << 7 | 0x7f, c = i % COLS, n = c - c / WIDTH - 1;
        uint32_t below = c % WIDTH == 0 || n / 2 > top ? 0 : n / 2;
        bsmm_elem_store(BSMM_ELEM_BF16, src.m.data, i, (top - below) | (n & 1) << 15);
    }
    bsmm_matrix shape = describe(format_named("mxfp4"), EXPONENTS, COLS);
    check_quantize(&(call){NULL, 0, NULL}, &src, &shape);
    check_quantize(&(call){"rceil", 0, NULL}, &src, &shape);
    test_matrix_free(&src);
}

static void test_amax(void **state) {
    (void)state;
    rng r = {3};
    for (uint32_t variant = 0; variant < 90; variant++) {
        test_matrix src;
        float plain, fast;
        bsmm_matrix shape = describe((bsmm_format){.elem = BSMM_ELEM_F32 + variant % 3},
                                     1 + variant % 4, 1 + rng_below(&r, 3000));
        shape.order = variant >> 2 & 1;
        test_matrix_make(&src, shape, FILL_ORDINARY, &r);
        recode_fill(&src, variant % RECODE_MIXES, &r);
        bsmm_cpu_mask_features(0);
        assert_int_equal(bsmm_amax(&src.m, &plain), BSMM_OK);
        for (size_t i = 1; i < BSMM_COUNT(processors); i++) {
            bsmm_cpu_mask_features(processors[i]);
            assert_int_equal(bsmm_amax(&src.m, &fast), BSMM_OK);
            assert_memory_equal(&plain, &fast, sizeof plain);
        }
        test_matrix_free(&src);
    }
}

/* Tests bsmm_amax on long rows. A vector loop reads several parts of a row at once, and a scalar
 * loop reads the last values, which may contain the largest one. */
static void test_amax_of_last_values(void **state) {
    (void)state;
    enum { LENGTH = 1109 };
    rng r = {9};
    for (uint32_t elem = BSMM_ELEM_F32; elem <= BSMM_ELEM_BF16; elem++) {
        test_matrix src;
        test_matrix_make(&src, describe((bsmm_format){.elem = elem}, 1, LENGTH), FILL_ORDINARY, &r);
        for (uint32_t i = 0; i < LENGTH; i++)
            bsmm_elem_store(elem, src.m.data, i, 0);
        for (uint32_t i = LENGTH - 60; i < LENGTH; i++) {
            float amax;
            bsmm_elem_store(elem, src.m.data, i, bsmm_elem_encode(elem, -1, true));
            assert_int_equal(bsmm_amax(&src.m, &amax), BSMM_OK);
            assert_true(amax == 1);
            bsmm_elem_store(elem, src.m.data, i, 0);
        }
        test_matrix_free(&src);
    }
}

/* Tests bsmm_amax on a matrix that is so large that it is searched in several parts. The largest
 * value is put near each end of the matrix and of the parts in turn. Gaps between rows contain a
 * larger value, which must not count. */
static void test_amax_of_many_rows(void **state) {
    (void)state;
    enum { ROWS = 700, COLS = 1500, PART = (1 << 19) / COLS };
    static const int64_t rows[] = {0, PART - 1, PART, PART + 1, 2 * PART, ROWS - 1};
    const uint32_t one = bsmm_elem_encode(BSMM_ELEM_BF16, -1, true);
    uint16_t *values = malloc((size_t)ROWS * (COLS + 1) * sizeof *values);
    bsmm_matrix m = describe(format_named("bf16"), ROWS, COLS);
    m.data = values;
    for (m.ld = COLS; m.ld <= COLS + 1; m.ld++)
        for (size_t i = 0; i < BSMM_COUNT(rows) * 2; i++) {
            float amax;
            int64_t at = rows[i / 2] * m.ld + (i % 2 ? COLS - 1 : 0);
            for (int64_t k = 0; k < ROWS * m.ld; k++)
                values[k] = k % m.ld == COLS ? 0x4000 : 0;
            values[at] = (uint16_t)one;
            bsmm_cpu_mask_features(processors[i % BSMM_COUNT(processors)]);
            assert_int_equal(bsmm_amax(&m, &amax), BSMM_OK);
            assert_true(amax == 1);
        }
    bsmm_cpu_mask_features(~0u);
    free(values);
}

static void check_dequantize(const test_matrix *src, const bsmm_matrix *shape) {
    test_matrix plain, fast;
    rng r = {0};
    test_matrix_make(&plain, *shape, FILL_ORDINARY, &r);
    test_matrix_make(&fast, *shape, FILL_ORDINARY, &r);
    poison(&plain);
    bsmm_cpu_mask_features(processors[0]);
    assert_int_equal(bsmm_dequantize(&src->m, &plain.m), BSMM_OK);
    for (size_t i = 1; i < BSMM_COUNT(processors); i++) {
        char what[128];
        poison(&fast);
        bsmm_cpu_mask_features(processors[i]);
        assert_int_equal(bsmm_dequantize(&src->m, &fast.m), BSMM_OK);
        snprintf(what, sizeof what, "%s to %s, %d x %d, processor %d",
                 bsmm_format_name(src->m.format), bsmm_format_name(shape->format), (int)shape->rows,
                 (int)shape->cols, (int)i);
        assert_same_bytes(&plain, &fast, what);
    }
    bsmm_cpu_mask_features(~0u);
    test_matrix_free(&plain);
    test_matrix_free(&fast);
}

/* Checks second-level scales. Some of them make results subnormal, too large, zero or NaN. */
static void check_levels(bsmm_format format, rng *r) {
    static const float levels[] = {0.7f, -0x1.234p-120f, 0x1.777p120f, 0, NAN};
    for (int i = 0; i < 12; i++) {
        uint32_t variant = rng_below(r, 3 * 4 * 5 * 7 * 11);
        test_matrix src;
        bsmm_matrix from = describe(format, 0, 0);
        bsmm_matrix to = describe((bsmm_format){.elem = BSMM_ELEM_F32 + variant % 3}, 0, 0);
        shape_both(variant / 3, &to, &from);
        test_matrix_make(&src, from, (fill)(variant % 4 % 3), r);
        src.global = levels[variant % BSMM_COUNT(levels)];
        if (variant % 7 > 2) src.m.global_scale = &src.global;
        src.m.global_kind = variant % 11 == 10;
        check_dequantize(&src, &to);
        test_matrix_free(&src);
    }
}

static void test_dequantize(void **state) {
    (void)state;
    static const uint32_t blocks[][2] = {{1, 16}, {1, 32}, {2, 128}, {1, 48}, {3, 12}};
    rng r = {4};
    for (uint32_t elem = BSMM_ELEM_BF16; elem; elem = next_elem(elem)) {
        check_levels((bsmm_format){.elem = elem}, &r);
        for (uint32_t scale = BSMM_SCALE_E8M0; scale < BSMM_SCALE_COUNT; scale++)
            for (size_t b = 0; b < BSMM_COUNT(blocks); b++)
                check_levels((bsmm_format){elem, scale, blocks[b][0], blocks[b][1]}, &r);
    }
}

/* Tests every element code with every e8m0 scale and every e4m3 scale. */
static void test_every_code_and_scale(void **state) {
    (void)state;
    rng r = {5};
    for (uint32_t elem = BSMM_ELEM_E4M3; elem; elem = next_elem(elem))
        for (uint32_t scale = BSMM_SCALE_E8M0; scale <= BSMM_SCALE_E4M3; scale++) {
            test_matrix src;
            uint32_t codes = 1u << bsmm_elem_row(elem)->bits;
            bsmm_format format = {elem, scale, 1, codes};
            test_matrix_make(&src, describe(format, 256, codes), FILL_ORDINARY, &r);
            for (uint32_t i = 0; i < 256 * codes; i++)
                bsmm_elem_store(elem, src.m.data, i, i % codes);
            for (uint32_t i = 0; i < 256; i++)
                ((uint8_t *)src.m.scales)[i] = (uint8_t)i;
            for (uint32_t to = BSMM_ELEM_F32; to <= BSMM_ELEM_BF16; to++) {
                bsmm_matrix shape = describe((bsmm_format){.elem = to}, 256, codes);
                check_dequantize(&src, &shape);
            }
            test_matrix_free(&src);
        }
}

/* Tests dequantization if one block has a NaN scale. All results of this block are then NaN. The
 * sign bit of these NaNs must not depend on the signs of the elements. */
static void test_nan_scales(void **state) {
    (void)state;
    static const char *const formats[] = {"nvfp4", "mxfp4", "mxfp6_e2m3", "mxfp8"};
    rng r = {10};
    for (uint32_t i = 0; i < BSMM_COUNT(formats) * 8; i++) {
        bsmm_format format = format_named(formats[i / 8]);
        test_matrix src;
        test_matrix_make(&src, describe(format, 1, 8 * format.block_cols), FILL_ORDINARY, &r);
        ((uint8_t *)src.m.scales)[i % 8] = 0xff;
        for (uint32_t to = BSMM_ELEM_F32; to <= BSMM_ELEM_BF16; to++) {
            bsmm_matrix shape = describe((bsmm_format){.elem = to}, 1, src.m.cols);
            check_dequantize(&src, &shape);
        }
        test_matrix_free(&src);
    }
}

/* Returns a random fp32 scale. It has random bits, or is NaN, or has few significant bits, so that
 * products are halfway between two bf16 values. */
static uint32_t wide_scale(int mix, rng *r) {
    uint32_t bits = (uint32_t)rng_next(r);
    if (mix == 0) return bits;
    if (mix == 1) return (bits & 0x00ff8000u) | 0x3f000000u;
    return rng_below(r, 4) ? (bits & 0x007fffffu) | rng_below(r, 30) << 23 : 0x7fffffffu;
}

static void test_wide_scales(void **state) {
    (void)state;
    rng r = {7};
    for (uint32_t variant = 0; variant < 60; variant++) {
        bool fnuz = variant % 2;
        test_matrix src;
        bsmm_format format = format_named(fnuz ? "fp8_group128_fnuz" : "fp8_group128");
        test_matrix_make(&src, describe(format, 3, 1000), FILL_ORDINARY, &r);
        for (uint64_t i = 0; i < src.data_bytes; i++)
            ((uint8_t *)src.m.data)[i] = (uint8_t)rng_next(&r);
        for (uint64_t i = 0; i < src.scale_bytes / 4; i++)
            ((uint32_t *)src.m.scales)[i] = wide_scale((int)variant / 2 % 3, &r);
        for (uint32_t to = BSMM_ELEM_F32; to <= BSMM_ELEM_BF16; to++) {
            bsmm_matrix shape = describe((bsmm_format){.elem = to}, 3, 1000);
            check_dequantize(&src, &shape);
        }
        test_matrix_free(&src);
    }
}

/* Tests outputs that are so large that the library writes whole cache lines with non-temporal
 * stores. Rows begin at all positions in a cache line. */
static void test_large_outputs(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1050, 8192, BSMM_ELEM_F32}, {2050, 8200, BSMM_ELEM_BF16}};
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) skip();
    rng r = {6};
    for (size_t i = 0; i < BSMM_COUNT(shapes); i++) {
        test_matrix src;
        test_matrix_make(&src, describe(format_named("mxfp4"), shapes[i][0], shapes[i][1]),
                         FILL_ORDINARY, &r);
        bsmm_matrix to =
            describe((bsmm_format){.elem = (uint32_t)shapes[i][2]}, shapes[i][0], shapes[i][1]);
        check_dequantize(&src, &to);
        test_matrix_free(&src);
    }
}

/* Tests bsmm_strip_within. It returns true if each float of an array, as a 32-bit integer, lies
 * from the first to the second field of `range` or is equal to the third field (here 7). The vector
 * loop uses it to find blocks without special values, which take a fast path. */
static void test_within(void **state) {
    (void)state;
    static const bsmm_bits_range range = {0x21800000u, 0x5d800000u, 7};
    static const struct {
        uint32_t bits;
        bool within;
    } values[] = {
        {0x21800000u, true}, {0x217fffffu, false}, {0x5d800000u, true},  {0x5d800001u, false},
        {7, true},           {0, false},           {0x10000000u, false}, {0xa1800000u, false},
        {0x7fc00000u, false}};
    for (size_t p = 0; p < BSMM_COUNT(processors); p++) {
        bsmm_cpu_mask_features(processors[p]);
        for (int64_t n = 1; n <= 40; n++)
            for (size_t v = 0; v < BSMM_COUNT(values); v++)
                for (int64_t at = 0; at < n; at++) {
                    uint32_t strip[40];
                    for (int64_t i = 0; i < n; i++)
                        strip[i] = i == at ? values[v].bits : 0x3f800000u;
                    assert_int_equal(bsmm_strip_within(strip, n, range), values[v].within);
                }
    }
    bsmm_cpu_mask_features(~0u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within),
        cmocka_unit_test(test_every_recipe),
        cmocka_unit_test(test_scale_bounds),
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_bf16_in_blocks),
        cmocka_unit_test(test_amax),
        cmocka_unit_test(test_amax_of_last_values),
        cmocka_unit_test(test_amax_of_many_rows),
        cmocka_unit_test(test_nan_scales),
        cmocka_unit_test(test_dequantize),
        cmocka_unit_test(test_every_code_and_scale),
        cmocka_unit_test(test_wide_scales),
        cmocka_unit_test(test_large_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
