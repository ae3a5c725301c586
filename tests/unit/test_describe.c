/* Tests invalid descriptions of a product. Each description breaks one rule. bsmm_matmul must
 * return the expected status and a message that names the field, and must not change D. */
#include "described.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void no_a(described *f) {
    f->desc.a = NULL;
}
static void no_d(described *f) {
    f->desc.d = NULL;
}
static void desc_size_zero(described *f) {
    f->desc.struct_size = 0;
}
static void matrix_size_small(described *f) {
    f->am.struct_size = 4;
}
static void desc_size_cuts_a_pointer(described *f) {
    f->desc.struct_size = offsetof(bsmm_matmul_desc, a) + 4;
}
static void unknown_elem(described *f) {
    f->am.format.elem = 99;
}
static void elem_none(described *f) {
    f->am.format.elem = BSMM_ELEM_NONE;
}
static void elem_e8m0(described *f) {
    f->am.format.elem = BSMM_ELEM_E8M0;
}
static void unknown_scale(described *f) {
    f->bm.format.scale = 4;
}
static void unknown_order(described *f) {
    f->bm.order = 2;
}
static void unknown_layout(described *f) {
    f->bm.scale_layout = 9;
}
static void unknown_global(described *f) {
    f->bm.global_kind = 2;
}
static void unknown_compute(described *f) {
    f->desc.compute = 2;
}
static void unknown_flag(described *f) {
    f->desc.flags = 1u << 31;
}
static void any_rows_in_one_call(described *f) {
    f->desc.flags = BSMM_MATMUL_ANY_ROWS;
}
static void block_zero(described *f) {
    f->am.format.block_rows = 0;
}
static void block_of_one(described *f) {
    f->am.format.block_cols = 1;
}
static void block_splits_a_byte(described *f) {
    f->bm.format.block_cols = 33;
}
static void block_without_scale(described *f) {
    f->am.format.scale = BSMM_SCALE_NONE;
}
static void scales_without_scale(described *f) {
    f->dm.scales = f->a_scales;
}
static void negative_rows(described *f) {
    f->am.rows = -1;
}
static void huge_rows(described *f) {
    f->am.rows = INT64_MAX;
}
static void overflowing_product(described *f) {
    f->am.rows = f->am.cols = INT64_MAX / 128;
}
/* Describes a matrix of 2^63 bytes, which is larger than the largest int64. */
static void size_above_int64(described *f) {
    f->am.rows = INT64_C(1) << 32;
    f->am.cols = INT64_C(1) << 31;
}
static void short_ld(described *f) {
    f->am.ld = K - 1;
}
static void odd_ld(described *f) {
    f->bm.ld = K + 1;
}
static void short_data(described *f) {
    f->am.data_bytes = M * K - 1;
}
static void wrong_scale_bytes(described *f) {
    f->am.scale_bytes = M * K / 32 + 1;
}
static void short_scale_bytes(described *f) {
    f->am.scale_bytes = M * K / 32 - 1;
}
static void unpadded_swizzle(described *f) {
    f->am.scale_layout = BSMM_LAYOUT_NV_128X4;
    f->am.scale_bytes = M * K / 32;
}
static void undeclared_swizzle(described *f) {
    f->am.scale_layout = BSMM_LAYOUT_NV_128X4;
}
/* Describes a scale buffer that is too small because it has no padding. K = 64 in blocks of 128 has
 * one scale in each row, but the layout pads each row of scales to four. */
static void unpadded_cublas(described *f) {
    f->am.format = f->bm.format = format_named("fp8_block128");
    f->am.scale_layout = BSMM_LAYOUT_CUBLAS_BLK128;
    f->am.scale_bytes = 1 * sizeof(float);
}
static void tile_of_zero(described *f) {
    f->am.scale_layout = BSMM_LAYOUT_TILE_CONTIGUOUS;
}
static void tile_without_tiles(described *f) {
    f->am.scale_tile_rows = 4;
}
static void pitch_in_swizzle(described *f) {
    f->am.scale_layout = BSMM_LAYOUT_NV_8X4;
    f->am.scale_ld = 4;
}
static void short_pitch(described *f) {
    f->am.scale_ld = 1;
}
static void k_differs(described *f) {
    f->bm.cols = K / 2;
}
static void m_differs(described *f) {
    f->dm.rows = M + 1;
}
static void n_differs(described *f) {
    f->dm.cols = N + 1;
}
static void c_differs(described *f) {
    f->cm.cols = N + 1;
}
static void c_is_scaled(described *f) {
    f->cm.format = format_named("mxfp8");
}
static void c_is_8_bit(described *f) {
    f->cm.format = format_named("e4m3");
}
static void c_missing(described *f) {
    f->desc.c = NULL;
}
static void d_is_4_bit(described *f) {
    f->dm.format = format_named("e2m1");
}
static void alpha_nan(described *f) {
    f->alpha = NAN;
}
static void alpha_inf(described *f) {
    f->alpha = INFINITY;
}
static void beta_nan(described *f) {
    f->beta = NAN;
}
static void bias_without_elem(described *f) {
    f->desc.bias_elem = BSMM_ELEM_NONE;
}
static void bias_of_8_bits(described *f) {
    f->desc.bias_elem = BSMM_ELEM_E4M3;
}
static void recipe_without_scales(described *f) {
    f->desc.recipe = "ocp";
}
static void unknown_recipe(described *f) {
    f->dm.format = format_named("mxfp8");
    f->desc.recipe = "nonesuch";
}
static void unknown_kernel(described *f) {
    f->desc.kernel = "nonesuch";
}
static void unknown_device(described *f) {
    f->desc.device = "abacus:0";
}
static void prefix_of_a_device(described *f) {
    f->desc.device = "c";
}
static void refusing_kernel(described *f) {
    f->dm.format = format_named("mxfp8");
    f->dm.scales = f->d;
    f->desc.kernel = "cpu_f32";
}
static void a_missing_data(described *f) {
    f->am.data = NULL;
}
static void a_missing_scales(described *f) {
    f->am.scales = NULL;
}
static void d_missing_data(described *f) {
    f->dm.data = NULL;
}
static void d_misaligned(described *f) {
    f->dm.data = (uint8_t *)f->d + 1;
}
static void bias_missing(described *f) {
    f->desc.bias = NULL;
}
static void bias_misaligned(described *f) {
    f->desc.bias = (uint8_t *)f->bias + 2;
}
static void d_over_a(described *f) {
    f->am.data = f->d;
}
static void d_scales_over_d(described *f) {
    f->dm.format = format_named("mxfp8");
    f->dm.scales = (uint8_t *)f->d + M * N - 1;
}
static void d_over_b_scales(described *f) {
    f->bm.scales = (uint8_t *)f->d + 5;
}
static void d_over_bias(described *f) {
    f->desc.bias = f->d + 3;
}
static void d_over_c_askew(described *f) {
    f->cm.data = f->d + 1;
}

/* clang-format on */

static const struct {
    const char *name;
    void (*spoil)(described *f);
    bsmm_status status;
    const char *field;
} rows[] = {
    {"no a", no_a, BSMM_E_INVALID, "a:"},
    {"no d", no_d, BSMM_E_INVALID, "d:"},
    {"desc size zero", desc_size_zero, BSMM_E_INVALID, "desc.struct_size"},
    {"matrix size small", matrix_size_small, BSMM_E_INVALID, "a.struct_size"},
    {"desc size cuts a pointer", desc_size_cuts_a_pointer, BSMM_E_INVALID,
     "desc.struct_size: value is 12"},
    {"unknown elem", unknown_elem, BSMM_E_INVALID, "a.format.elem"},
    {"elem none", elem_none, BSMM_E_INVALID, "a.format.elem"},
    {"elem e8m0", elem_e8m0, BSMM_E_INVALID, "a.format.elem"},
    {"unknown scale", unknown_scale, BSMM_E_INVALID, "b.format.scale"},
    {"unknown order", unknown_order, BSMM_E_INVALID, "b.order"},
    {"unknown layout", unknown_layout, BSMM_E_INVALID, "b.scale_layout"},
    {"unknown global kind", unknown_global, BSMM_E_INVALID, "b.global_kind"},
    {"unknown compute", unknown_compute, BSMM_E_INVALID, "compute"},
    {"unknown flag", unknown_flag, BSMM_E_INVALID, "flags"},
    {"any rows in one call", any_rows_in_one_call, BSMM_E_INVALID, "flags: value is 1; only plans"},
    {"block of zero rows", block_zero, BSMM_E_INVALID, "a.format.block_rows"},
    {"block of one", block_of_one, BSMM_E_INVALID, "a.format.block_cols"},
    {"block splits a byte", block_splits_a_byte, BSMM_E_INVALID, "b.format.block_cols"},
    {"block without scale", block_without_scale, BSMM_E_INVALID, "a.format.block"},
    {"scales without scale", scales_without_scale, BSMM_E_INVALID, "d.scales"},
    {"negative rows", negative_rows, BSMM_E_INVALID, "a.rows"},
    {"huge rows", huge_rows, BSMM_E_INVALID, "a.rows"},
    {"overflowing product", overflowing_product, BSMM_E_INVALID, "a.rows x cols"},
    {"size above int64", size_above_int64, BSMM_E_INVALID, "a.rows x cols"},
    {"short ld", short_ld, BSMM_E_INVALID, "a.ld"},
    {"odd ld", odd_ld, BSMM_E_INVALID, "b.ld"},
    {"short data", short_data, BSMM_E_INVALID, "a.data_bytes"},
    {"wrong scale bytes", wrong_scale_bytes, BSMM_E_INVALID, "a.scale_bytes"},
    {"short scale bytes", short_scale_bytes, BSMM_E_INVALID, "a.scale_bytes"},
    {"unpadded swizzle", unpadded_swizzle, BSMM_E_INVALID, "a.scale_bytes"},
    {"undeclared swizzle", undeclared_swizzle, BSMM_E_INVALID, "a.scale_bytes"},
    {"unpadded cublas scales", unpadded_cublas, BSMM_E_INVALID, "a.scale_bytes"},
    {"tile of zero", tile_of_zero, BSMM_E_INVALID, "a.scale_tile_rows"},
    {"tile without tiles", tile_without_tiles, BSMM_E_INVALID, "a.scale_tile_rows"},
    {"pitch in a swizzle", pitch_in_swizzle, BSMM_E_INVALID, "a.scale_ld"},
    {"short pitch", short_pitch, BSMM_E_INVALID, "a.scale_ld"},
    {"k differs", k_differs, BSMM_E_INVALID, "b.cols"},
    {"m differs", m_differs, BSMM_E_INVALID, "d.rows"},
    {"n differs", n_differs, BSMM_E_INVALID, "d.cols"},
    {"c differs", c_differs, BSMM_E_INVALID, "c.cols"},
    {"c is scaled", c_is_scaled, BSMM_E_INVALID, "c.format"},
    {"c is 8 bits wide", c_is_8_bit, BSMM_E_INVALID, "c.format"},
    {"c missing", c_missing, BSMM_E_INVALID, "c:"},
    {"d is 4 bits wide", d_is_4_bit, BSMM_E_INVALID, "d.format"},
    {"alpha nan", alpha_nan, BSMM_E_INVALID, "alpha"},
    {"alpha inf", alpha_inf, BSMM_E_INVALID, "alpha"},
    {"beta nan", beta_nan, BSMM_E_INVALID, "beta"},
    {"bias without elem", bias_without_elem, BSMM_E_INVALID, "bias_elem"},
    {"bias of 8 bits", bias_of_8_bits, BSMM_E_INVALID, "bias_elem"},
    {"recipe without scales", recipe_without_scales, BSMM_E_INVALID, "recipe"},
    {"unknown recipe", unknown_recipe, BSMM_E_NOT_FOUND, "recipe"},
    {"unknown kernel", unknown_kernel, BSMM_E_NOT_FOUND, "kernel"},
    {"unknown device", unknown_device, BSMM_E_UNSUPPORTED, "device"},
    {"prefix of a device", prefix_of_a_device, BSMM_E_UNSUPPORTED, "device"},
    {"refusing kernel", refusing_kernel, BSMM_E_UNSUPPORTED, "kernel"},
    {"a missing data", a_missing_data, BSMM_E_INVALID, "a.data"},
    {"a missing scales", a_missing_scales, BSMM_E_INVALID, "a.scales"},
    {"d missing data", d_missing_data, BSMM_E_INVALID, "d.data"},
    {"d misaligned", d_misaligned, BSMM_E_INVALID, "d.data"},
    {"bias missing", bias_missing, BSMM_E_INVALID, "bias"},
    {"bias misaligned", bias_misaligned, BSMM_E_INVALID, "bias"},
    {"d over a", d_over_a, BSMM_E_INVALID, "d:"},
    {"d's scales over d", d_scales_over_d, BSMM_E_INVALID, "d.scales"},
    {"d over b's scales", d_over_b_scales, BSMM_E_INVALID, "d:"},
    {"d over bias", d_over_bias, BSMM_E_INVALID, "d:"},
    {"d over c askew", d_over_c_askew, BSMM_E_INVALID, "d:"},
};

static void test_each_broken_rule(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        described f;
        described_make(&f);
        rows[i].spoil(&f);
        float before[M * N + 1];
        memcpy(before, f.d, sizeof before);
        bsmm_status status = bsmm_matmul(&f.desc);
        const char *message = bsmm_error_message();
        if (status != rows[i].status || strncmp(message, rows[i].field, strlen(rows[i].field)) != 0)
            fail_msg("%s: got %s, \"%s\"", rows[i].name, bsmm_status_name(status), message);
        assert_memory_equal(before, f.d, sizeof before);
    }
}

static void test_the_unspoiled_one_works(void **state) {
    (void)state;
    described f;
    described_make(&f);
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
}

/* Tests a caller that was compiled with a newer bsmm.h, whose structs are larger. The call must
 * work if the members unknown to this library are zero. */
static void test_larger_struct(void **state) {
    (void)state;
    struct {
        bsmm_matmul_desc desc;
        uint64_t future[4];
    } larger = {0};
    described f;
    described_make(&f);
    larger.desc = f.desc;
    larger.desc.struct_size = sizeof larger;
    assert_int_equal(bsmm_matmul(&larger.desc), BSMM_OK);
    larger.future[3] = 1;
    assert_int_equal(bsmm_matmul(&larger.desc), BSMM_E_INVALID);
    assert_non_null(strstr(bsmm_error_message(), "desc.struct_size"));
}

/* Tests a caller that was compiled with an older bsmm.h, whose structs are smaller. The library
 * must treat the missing members as zero. */
static void test_smaller_struct(void **state) {
    (void)state;
    described f;
    described_make(&f);
    f.am.struct_size = offsetof(bsmm_matrix, global_scale);
    /* This field lies past the end of the struct that struct_size gives, so the library must not
     * read it. */
    f.am.global_scale = (float *)(uintptr_t)1;
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
}

/* Tests that the bias may be NULL if D has no columns. */
static void test_bias_of_no_columns(void **state) {
    (void)state;
    described f;
    described_make(&f);
    f.bm.rows = f.cm.cols = f.dm.cols = 0;
    f.desc.bias = NULL;
    assert_int_equal(bsmm_matmul(&f.desc), BSMM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_unspoiled_one_works), cmocka_unit_test(test_each_broken_rule),
        cmocka_unit_test(test_larger_struct),           cmocka_unit_test(test_smaller_struct),
        cmocka_unit_test(test_bias_of_no_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
