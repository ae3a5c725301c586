/* Tests block-scaled products on Blackwell whose operands have scales in different layouts. The
 * kernels cuda_sm100f_scaled, cuda_sm100f_scaled_small_m and cuda_sm120f_scaled read scales in the
 * layout nv_128x4 and first copy others to this layout, those of A and of B in one launch. The bits
 * of D must not depend on the layouts. The test is skipped unless the device is a real or simulated
 * Blackwell GPU. */
#include "gpu.h"
#include "operand.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3, COLS = 150, LAYOUTS = 5 };

static const uint32_t layouts[LAYOUTS] = {BSMM_LAYOUT_NV_128X4, BSMM_LAYOUT_ROW_MAJOR,
                                          BSMM_LAYOUT_COL_MAJOR, BSMM_LAYOUT_NV_8X4,
                                          BSMM_LAYOUT_TILE_CONTIGUOUS};

/* Holds a matrix `stored` with scales in the layout layouts[0], and copies of its description,
 * with[i], whose scales have the layout layouts[i]. All of them have the same elements. */
typedef struct operand {
    test_matrix stored;
    bsmm_matrix with[LAYOUTS];
} operand;

static bsmm_matrix laid(bsmm_matrix m, uint32_t layout) {
    m.scale_layout = layout;
    m.scale_ld = 0;
    m.scale_tile_rows = layout == BSMM_LAYOUT_TILE_CONTIGUOUS ? 3 : 0;
    m.scale_tile_cols = layout == BSMM_LAYOUT_TILE_CONTIGUOUS ? 5 : 0;
    return m;
}

static void make(operand *o, const char *format, int64_t rows, int64_t k, rng *r) {
    test_matrix_make(&o->stored, laid(describe(format_named(format), rows, k), layouts[0]),
                     FILL_ORDINARY, r);
    for (int i = 0; i < LAYOUTS; i++) {
        bsmm_matrix *m = &o->with[i];
        bsmm_scale_map map;
        *m = laid(o->stored.m, layouts[i]);
        assert_int_equal(bsmm_scale_map_make(m, "m", &map), BSMM_OK);
        m->scale_bytes = map.count;
        m->scales = calloc(1, map.count);
        assert_int_equal(bsmm_relayout_scales(&o->stored.m, m), BSMM_OK);
    }
}

static void release(operand *o) {
    for (int i = 0; i < LAYOUTS; i++)
        free(o->with[i].scales);
    test_matrix_free(&o->stored);
}

/* Returns true if a kernel of this name takes the product. */
static bool takes(const bsmm_matmul_desc *desc, const char *kernel) {
    bsmm_explanation e = {.struct_size = sizeof e};
    bsmm_matmul_desc any = *desc;
    any.kernel = NULL;
    for (uint32_t i = 0; bsmm_explain(&any, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, kernel) == 0) return e.accepts;
    return false;
}

/* Multiplies with all pairs of scale layouts of A and B, and fails unless D has the same bits with
 * all of them. Returns false if the kernel does not take the product on this device. */
static bool check_layouts(const char *device, const char *kernel, const operand *a,
                          const operand *b) {
    float first[ROWS * COLS], got[ROWS * COLS];
    bsmm_matrix d = describe(format_named("f32"), ROWS, COLS);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .d = &d, .device = device, .kernel = kernel};
    for (int i = 0; i < LAYOUTS * LAYOUTS; i++) {
        const int left = i / LAYOUTS, right = i % LAYOUTS;
        desc.a = &a->with[left], desc.b = &b->with[right];
        d.data = i ? got : first;
        memset(d.data, 0xa5, sizeof got);
        if (!takes(&desc, kernel)) return false;
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        if (i && memcmp(got, first, sizeof got) != 0)
            fail_msg("%s, %s, K %lld: scale layouts %u and %u", kernel,
                     bsmm_format_name(desc.a->format), (long long)desc.a->cols, layouts[left],
                     layouts[right]);
    }
    return true;
}

/* Tests that the scale layouts of A and B do not change the results. With K = 2048, threads read
 * the scales of a row several bytes at a time. With K = 208, a row has an odd number of scales, so
 * most rows of scales begin at unaligned addresses. */
static void test_layouts(void **state) {
    static const char *const kernels[] = {"cuda_sm100f_scaled", "cuda_sm100f_scaled_small_m",
                                          "cuda_sm120f_scaled"},
                             *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    static const int64_t depths[] = {208, 2048};
    const char *device = test_gpu_at(0);
    uint32_t checked = 0;
    rng r = {53};
    (void)state;
    for (size_t f = 0; device && f < BSMM_COUNT(formats) * BSMM_COUNT(depths); f++) {
        operand a, b;
        make(&a, formats[f / 2], ROWS, depths[f % 2], &r);
        make(&b, formats[f / 2], COLS, depths[f % 2], &r);
        for (size_t k = 0; k < BSMM_COUNT(kernels); k++)
            checked += check_layouts(device, kernels[k], &a, &b);
        release(&a);
        release(&b);
    }
    if (!checked) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
