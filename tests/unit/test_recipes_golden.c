/* Tests that every recipe writes the same bytes as the project from which it comes. The bytes are
 * the element codes, the block scales and the tensor scale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bsmm.h"
#include "format/format.h"
#include "recipe_cases.h"

typedef struct result {
    bsmm_matrix m;
    float global;
} result;

static bsmm_matrix input_matrix(const recipe_case *c) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    assert_int_equal(bsmm_format_from_name(c->dtype, &m.format), BSMM_OK);
    m.rows = c->rows;
    m.cols = c->cols;
    m.data = (void *)c->input;
    return m;
}

static void quantize_case(const recipe_case *c, result *out) {
    bsmm_matrix src = input_matrix(c), *m = &out->m;
    uint64_t data_bytes, scale_bytes;
    *m = BSMM_INIT(bsmm_matrix);
    assert_int_equal(bsmm_format_from_name(c->format, &m->format), BSMM_OK);
    m->rows = c->rows;
    m->cols = c->cols;
    assert_int_equal(bsmm_data_bytes(m, &data_bytes), BSMM_OK);
    assert_int_equal(bsmm_scale_bytes(m, &scale_bytes), BSMM_OK);
    assert_int_equal(data_bytes, c->data_bytes);
    assert_int_equal(scale_bytes, c->scales_bytes);
    m->data = malloc(data_bytes);
    m->scales = malloc(scale_bytes);
    m->global_scale = &out->global;
    m->global_kind = strstr(c->options, "divisor") ? BSMM_GLOBAL_DIVISOR : BSMM_GLOBAL_MULTIPLIER;
    memset(m->data, 0xa5, data_bytes);
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = &src;
    desc.dst = m;
    desc.recipe = c->recipe;
    if (strstr(c->options, "one-level")) desc.flags |= BSMM_QUANTIZE_ONE_LEVEL;
    if (strstr(c->options, "pow2")) desc.flags |= BSMM_QUANTIZE_POW2;
    if (bsmm_quantize(&desc, NULL) != BSMM_OK) fail_msg("%s", bsmm_error_message());
}

/* Returns false for elements that are not compared: those of a block with a NaN scale, if the
 * golden case leaves them unspecified. */
static bool is_compared(const recipe_case *c, const bsmm_matrix *m, int64_t row, int64_t col) {
    uint64_t at;
    if (!strstr(c->options, "nan-blocks")) return true;
    bsmm_matrix described = *m;
    assert_int_equal(
        bsmm_scale_offset(&described, row / m->format.block_rows, col / m->format.block_cols, &at),
        BSMM_OK);
    double scale = bsmm_scale_load(m->format.scale, c->scales, at);
    return scale == scale;
}

static void compare_elements(const recipe_case *c, const bsmm_matrix *m) {
    uint32_t elem = m->format.elem;
    int64_t pitch = bsmm_round_up(c->cols, bsmm_elem_group(elem));
    for (int64_t i = 0; i < c->rows * pitch; i++) {
        int64_t row = i / pitch, col = i % pitch;
        uint32_t got = bsmm_elem_load(elem, m->data, (uint64_t)i);
        uint32_t want = bsmm_elem_load(elem, c->data, (uint64_t)i);
        if (got != want && (col >= c->cols || is_compared(c, m, row, col)))
            fail_msg("%s/%s/%s/%s/%s: element (%lld, %lld) is 0x%x; must be 0x%x", c->recipe,
                     c->format, c->options, c->dtype, c->name, (long long)row, (long long)col, got,
                     want);
    }
}

static void compare_scales(const recipe_case *c, const bsmm_matrix *m) {
    size_t bytes = bsmm_scale_row_of(m->format.scale)->bytes;
    for (size_t i = 0; i < c->scales_bytes / bytes; i++) {
        uint32_t got = bsmm_scale_load_code(m->format.scale, m->scales, i);
        uint32_t want = bsmm_scale_load_code(m->format.scale, c->scales, i);
        if (got != want)
            fail_msg("%s/%s/%s/%s/%s: scale %zu is 0x%x; must be 0x%x", c->recipe, c->format,
                     c->options, c->dtype, c->name, i, got, want);
    }
}

static void compare_global(const recipe_case *c, const result *out) {
    if (c->global && memcmp(c->global, &out->global, sizeof(float)) != 0)
        fail_msg("%s/%s/%s/%s/%s: global is %a", c->recipe, c->format, c->options, c->dtype,
                 c->name, (double)out->global);
    if (!c->global) assert_true(out->global == 1);
}

static void golden_bytes(void **state) {
    (void)state;
    recipe_cases set = recipe_cases_open();
    for (size_t i = 0; i < set.count; i++) {
        const recipe_case *c = &set.cases[i];
        result out;
        quantize_case(c, &out);
        compare_global(c, &out);
        compare_scales(c, &out.m);
        compare_elements(c, &out.m);
        free(out.m.data);
        free(out.m.scales);
    }
    print_message("%zu cases\n", set.count);
    recipe_cases_close(&set);
}

static bool has_case(const recipe_cases *set, const bsmm_recipe_info *recipe) {
    char format[40];
    for (size_t i = 0; i < set->count; i++) {
        const recipe_case *c = &set->cases[i];
        snprintf(format, sizeof format, " %s ", c->format);
        char takes[256];
        snprintf(takes, sizeof takes, " %s ", recipe->formats);
        if (strcmp(c->recipe, recipe->name) == 0 && strstr(takes, format)) return true;
    }
    return false;
}

/* Returns true if a recipe computes scales. The other recipes only encode elements. */
static bool is_scaled(const bsmm_recipe_info *recipe) {
    char first[40];
    bsmm_format format;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(recipe->formats, " "), recipe->formats);
    assert_int_equal(bsmm_format_from_name(first, &format), BSMM_OK);
    return format.scale != BSMM_SCALE_NONE;
}

static void every_recipe_has_golden_bytes(void **state) {
    (void)state;
    recipe_cases set = recipe_cases_open();
    bsmm_recipe_info recipe = BSMM_INIT(bsmm_recipe_info);
    for (uint32_t i = 0; bsmm_recipe_at(i, &recipe) == BSMM_OK; i++)
        if (is_scaled(&recipe) && !has_case(&set, &recipe))
            fail_msg("recipe %s for %s: no golden bytes of its project", recipe.name,
                     recipe.formats);
    recipe_cases_close(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_recipe_has_golden_bytes),
                                       cmocka_unit_test(golden_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
