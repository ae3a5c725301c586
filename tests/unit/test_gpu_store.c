/* Tests products with a block-scaled D on GPUs. D must have the bytes that the CPU makes when it
 * quantizes the fp32 results of the same kernel. The test covers every GPU kernel and is skipped
 * without a GPU. */
#include "core/recipe.h"
#include "gpu.h"
#include "operand.h"
#include "portion_hooks.h"
#include "walk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* M and N are no multiples of 128, so the last block of 128 rows of D has only 9 rows, and the last
 * block of 128 columns has only 14 columns. */
enum { M = 137, N = 142, K = 96 };

typedef struct fixture {
    test_matrix a, b, c;
    test_matrix plain; /* `plain` holds the fp32 results. */
    /* `quantized` is D as the CPU quantizes it, and `stored` is D as the GPU writes it. */
    test_matrix quantized, stored;
    float bias[N];
    const char *recipe;
    bsmm_matmul_desc desc;
} fixture;

/* Makes a product of `a` and an mxfp8 matrix. D has the second-level scale `level`, or none if it
 * is 0. */
static void fixture_make(fixture *f, bsmm_matrix a, bsmm_matrix d, fill how, float level, rng *r) {
    *f = (fixture){.a = {.global = 1}};
    test_matrix_make(&f->a, a, how, r);
    test_matrix_make(&f->b, describe(format_named("mxfp8"), N, K), how, r);
    test_matrix_make(&f->c, describe(format_named("bf16"), d.rows, N), FILL_ORDINARY, r);
    test_matrix_make(&f->plain, describe(format_named("f32"), d.rows, N), FILL_ORDINARY, r);
    test_matrix_make(&f->quantized, d, FILL_SPECIAL, r);
    test_matrix_make(&f->stored, d, FILL_SPECIAL, r);
    f->quantized.global = f->stored.global = level;
    f->quantized.m.global_scale = level != 0 ? &f->quantized.global : NULL;
    f->stored.m.global_scale = level != 0 ? &f->stored.global : NULL;
    f->desc = (bsmm_matmul_desc){.struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m};
}

static void fixture_free(fixture *f) {
    test_matrix *all[] = {&f->a, &f->b, &f->c, &f->plain, &f->quantized, &f->stored};
    for (size_t i = 0; i < BSMM_COUNT(all); i++)
        test_matrix_free(all[i]);
}

static void poison(test_matrix *t) {
    memset(t->m.data, 0xa5, t->data_bytes);
    memset(t->m.scales, 0xa5, t->scale_bytes);
}

static void multiply(fixture *f, const bsmm_matrix *d, const char *recipe) {
    bsmm_matmul_desc desc = f->desc;
    desc.d = d;
    desc.recipe = recipe;
    if (test_multiply(&desc) != BSMM_OK)
        fail_msg("%s on %s: %s", desc.kernel, desc.device, bsmm_error_message());
}

/* Computes the expected bytes of a block-scaled D: quantizes the fp32 results of the product on the
 * CPU, with the second-level scale of D. */
static void quantize_plain(fixture *f) {
    const bsmm_recipe *recipe;
    bsmm_operand to;
    assert_int_equal(bsmm_operand_take(&f->quantized.m, "d", &to), BSMM_OK);
    assert_int_equal(bsmm_recipe_find(f->recipe, to.m.format, &recipe), BSMM_OK);
    poison(&f->quantized);
    bsmm_recipe_store(recipe, &to, 0, to.m.rows, 0, N, f->plain.m.data,
                      f->plain.m.ld ? f->plain.m.ld : N, (float)bsmm_operand_global(&to));
    bsmm_recipe_pad(&to);
}

static uint32_t code_of(const test_matrix *t, const bsmm_operand *o, int64_t r, int64_t c) {
    return bsmm_elem_load(t->m.format.elem, t->m.data, bsmm_operand_index(o, r, c));
}

static void compare(fixture *f) {
    bsmm_operand o;
    const bsmm_matrix *d = &f->stored.m;
    assert_int_equal(bsmm_operand_take(d, "d", &o), BSMM_OK);
    for (uint64_t i = 0; i < f->stored.scale_bytes; i++)
        if (((uint8_t *)d->scales)[i] != ((uint8_t *)f->quantized.m.scales)[i])
            fail_msg(
                "%s on %s, %s, recipe %s, layout %s, order %u: byte %llu of the scales is %02x, "
                "not %02x",
                f->desc.kernel, f->desc.device, bsmm_format_name(d->format),
                f->recipe ? f->recipe : "default", bsmm_layout_name(d->scale_layout), d->order,
                (unsigned long long)i, ((uint8_t *)d->scales)[i],
                ((uint8_t *)f->quantized.m.scales)[i]);
    for (int64_t i = 0; i < d->rows; i++)
        for (int64_t j = 0; j < N; j++) {
            uint32_t got = code_of(&f->stored, &o, i, j), want = code_of(&f->quantized, &o, i, j);
            if (got != want)
                fail_msg("%s on %s, %s, recipe %s, order %u: code (%lld, %lld) is %02x, not %02x",
                         f->desc.kernel, f->desc.device, bsmm_format_name(d->format),
                         f->recipe ? f->recipe : "default", d->order, (long long)i, (long long)j,
                         got, want);
        }
}

/* Checks the current kernel of the loop `w` over kernels. */
static void check_kernel(fixture *f, const test_walk *w) {
    f->desc.device = w->desc->device;
    f->desc.kernel = w->desc->kernel;
    poison(&f->plain);
    poison(&f->stored);
    multiply(f, &f->plain.m, NULL);
    multiply(f, &f->stored.m, f->recipe);
    quantize_plain(f);
    compare(f);
}

/* Checks every GPU kernel that accepts the product. Returns the number of these kernels. */
static int check_product(fixture *f) {
    bsmm_matmul_desc desc = f->desc;
    int ran = 0;
    desc.d = &f->stored.m;
    desc.recipe = f->recipe;
    for (test_walk w = test_walk_begin(&desc); test_walk_next(&w);)
        if (!test_walk_on_cpu(&w)) {
            check_kernel(f, &w);
            ran++;
        }
    return ran;
}

static int check_shape(const char *a, bsmm_matrix d, const char *recipe, float level, rng *r) {
    fixture f;
    fixture_make(&f, describe(format_named(a), d.rows, K), d, FILL_ORDINARY, level, r);
    f.recipe = recipe;
    int ran = check_product(&f);
    fixture_free(&f);
    return ran;
}

/* Returns the second-level scale of D, 0.25. A recipe would not choose this scale for results that
 * are sums of 96 products, each of which is near 1. A kernel that computed the scale itself would
 * therefore write other bytes. */
static float level_of(bsmm_format format) {
    return format.scale == BSMM_SCALE_E4M3 ? 0.25f : 0;
}

static void test_every_preset(void **state) {
    (void)state;
    rng r = {31};
    int ran = 0;
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    test_gpu_need();
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        bsmm_matrix d = describe(preset.format, M, N);
        ran += check_shape("bf16", d, NULL, level_of(preset.format), &r);
        d.order = BSMM_ORDER_COL;
        ran += check_shape("mxfp8", d, NULL, level_of(preset.format), &r);
    }
    print_message("%d products\n", ran);
    if (!getenv("BSMM_TEST_SAMPLE")) assert_true(ran > 0);
}

static void test_every_scale_layout(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp8", "nvfp4", "fp8_group128"};
    rng r = {32};
    test_gpu_need();
    for (uint32_t layout = 0; bsmm_layout_name(layout); layout++)
        for (size_t i = 0; i < BSMM_COUNT(formats); i++) {
            bsmm_matrix d = describe(format_named(formats[i]), M, N);
            bsmm_operand o;
            d.scale_layout = layout;
            if (bsmm_scale_bytes(&d, &d.scale_bytes) != BSMM_OK) continue;
            if (bsmm_operand_take(&d, "d", &o) != BSMM_OK) continue;
            check_shape("bf16", d, NULL, level_of(d.format), &r);
        }
}

static void test_named_recipes(void **state) {
    (void)state;
    static const char *const recipes[][2] = {{"mxfp8", "rceil"},
                                             {"mxfp4", "even"},
                                             {"nvfp4", "te"},
                                             {"nvfp4", "modelopt"},
                                             {"fp8_group128", "deepgemm"}};
    rng r = {33};
    test_gpu_need();
    for (size_t i = 0; i < BSMM_COUNT(recipes); i++) {
        bsmm_matrix d = describe(format_named(recipes[i][0]), M, N);
        check_shape("bf16", d, recipes[i][1], level_of(d.format), &r);
    }
    bsmm_matrix d = describe(format_named("nvfp4"), M, N);
    d.global_kind = BSMM_GLOBAL_DIVISOR;
    check_shape("bf16", d, "compressed-tensors", 3, &r);
}

/* Tests a block-scaled D whose second-level scale is NaN, has a reciprocal that overflows, or makes
 * every block scale overflow. */
static void test_extreme_levels(void **state) {
    (void)state;
    static const float levels[] = {0x1p-149f, 0x1p-30f, 0x1p100f, -1, NAN, INFINITY};
    rng r = {34};
    test_gpu_need();
    for (size_t i = 0; i < BSMM_COUNT(levels); i++)
        for (int te = 0; te < 2; te++)
            check_shape("bf16", describe(format_named("nvfp4"), 5, N), te ? "te" : NULL, levels[i],
                        &r);
}

/* Tests results of all magnitudes, NaN, Inf and zeros. */
static void test_special_values(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp8", "mxfp4", "mxfp6_e2m3", "nvfp4", "fp8_block128"};
    static const fill fills[] = {FILL_EXTREME, FILL_SPECIAL};
    rng r = {35};
    test_gpu_need();
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(fills); j++) {
            fixture f;
            bsmm_format format = format_named(formats[i]);
            fixture_make(&f, describe(format_named("mxfp8"), 9, K), describe(format, 9, N),
                         fills[j], level_of(format), &r);
            check_product(&f);
            float zero = 0;
            f.desc.alpha = &zero;
            check_product(&f);
            fixture_free(&f);
        }
}

static void test_alpha_beta_and_bias(void **state) {
    (void)state;
    rng r = {36};
    test_gpu_need();
    fixture f;
    float alpha = -0.75f, beta = 3;
    fixture_make(&f, describe(format_named("bf16"), M, K), describe(format_named("mxfp8"), M, N),
                 FILL_ORDINARY, 0, &r);
    for (int j = 0; j < N; j++)
        f.bias[j] = (float)(j % 7) - 3;
    f.desc.alpha = &alpha;
    f.desc.beta = &beta;
    f.desc.c = &f.c.m;
    f.desc.bias = f.bias;
    f.desc.bias_elem = BSMM_ELEM_F32;
    check_product(&f);
    fixture_free(&f);
}

/* Fills an operand of e4m3 elements with 0, 1 and -1, and its e8m0 scales with 1. */
static void fill_units(test_matrix *t, rng *r) {
    static const uint8_t codes[] = {0, 0x38, 0xb8};
    for (uint64_t i = 0; i < t->data_bytes; i++)
        ((uint8_t *)t->m.data)[i] = codes[rng_below(r, BSMM_COUNT(codes))];
    memset(t->m.scales, 127, t->scale_bytes);
}

/* Tests a D of 133 rows that the library computes in portions of 128 rows, one after another. A and
 * C are divided in the same way. The order of additions depends on the number of rows of a portion.
 * All values are small integers, so all sums are exact, and the order changes no bit. */
static void test_portions(void **state) {
    (void)state;
    static const struct {
        const char *format;
        uint32_t layout, order, a_layout;
    } cases[] = {
        {"nvfp4", BSMM_LAYOUT_ROW_MAJOR, BSMM_ORDER_ROW, BSMM_LAYOUT_ROW_MAJOR},
        {"mxfp8", BSMM_LAYOUT_COL_MAJOR, BSMM_ORDER_ROW, BSMM_LAYOUT_NV_128X4},
        {"mxfp8", BSMM_LAYOUT_NV_128X4, BSMM_ORDER_COL, BSMM_LAYOUT_COL_MAJOR},
        {"fp8_group128", BSMM_LAYOUT_CUBLAS_VEC128, BSMM_ORDER_ROW, BSMM_LAYOUT_CDNA4_MFMA32},
    };
    static const uint16_t numbers[] = {0x3f80, 0x4000, 0xc000}; /* These are 1, 2 and -2 in bf16. */
    enum { ROWS = 128 + 5 };
    const float beta = 2;
    rng r = {37};
    test_gpu_need();
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        fixture f;
        bsmm_matrix a = describe(format_named("mxfp8"), ROWS, K);
        bsmm_matrix d = describe(format_named(cases[i].format), ROWS, N);
        a.scale_layout = cases[i].a_layout;
        d.scale_layout = cases[i].layout;
        d.order = cases[i].order;
        fixture_make(&f, a, d, FILL_ORDINARY, level_of(d.format), &r);
        fill_units(&f.a, &r);
        fill_units(&f.b, &r);
        for (int64_t j = 0; j < (int64_t)ROWS * N; j++)
            ((uint16_t *)f.c.m.data)[j] = numbers[rng_below(&r, BSMM_COUNT(numbers))];
        f.desc.c = &f.c.m;
        f.desc.beta = &beta;
        bsmm_portion_pretend_most_bytes(1);
        check_product(&f);
        bsmm_portion_pretend_most_bytes(0);
        fixture_free(&f);
    }
}

/* D has SHIFTED_M x SHIFTED_N elements. In each tested format, a row of D has at least 64 bytes and
 * a multiple of 32 bytes, so all rows have the alignment of D's address. The buffer of D has room
 * for MOST_SHIFT more bytes, so that a run can move D by up to so many bytes. */
enum { SHIFTED_M = 5, SHIFTED_N = 128, MOST_SHIFT = 16 };
/* Holds the matrices of a product in memory of a device. */
typedef struct shifted {
    const char *device;
    test_matrix host[3]; /* Holds A, B and D. */
    bsmm_matrix on[3];
    bsmm_plan *plan;
    void *workspace;
} shifted;

static void shifted_make(shifted *s, const char *device, const char *format, rng *r) {
    const bsmm_matrix matrices[] = {describe(format_named("bf16"), SHIFTED_M, K),
                                    describe(format_named("mxfp8"), SHIFTED_N, K),
                                    describe(format_named(format), SHIFTED_M, SHIFTED_N)};
    *s = (shifted){.device = device};
    for (int i = 0; i < 3; i++) {
        test_matrix *const host = &s->host[i];
        test_matrix_make(host, matrices[i], FILL_ORDINARY, r);
        s->on[i] = host->m;
        s->on[i].data = test_gpu_new(device, NULL, host->data_bytes + MOST_SHIFT);
        s->on[i].scales =
            host->scale_bytes ? test_gpu_new(device, NULL, host->scale_bytes + MOST_SHIFT) : NULL;
        test_gpu_write(device, s->on[i].data, host->m.data, host->data_bytes);
        if (host->scale_bytes)
            test_gpu_write(device, s->on[i].scales, host->m.scales, host->scale_bytes);
    }
    const bsmm_matmul_desc desc = {
        .struct_size = sizeof desc,
        .a = &s->on[0],
        .b = &s->on[1],
        .d = &s->on[2],
        .device = device,
        /* Other CUDA kernels take aligned addresses only. */
        .kernel = strstr(device, "gfx") || strstr(device, "hip") ? NULL : "cuda_sm80_bf16"};
    if (bsmm_plan_create(&desc, &s->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    s->workspace = test_gpu_new(device, NULL, bsmm_plan_workspace_bytes(s->plan));
}

static void shifted_free(shifted *s) {
    bsmm_plan_destroy(s->plan);
    test_gpu_free(s->device, s->workspace);
    for (int i = 0; i < 3; i++) {
        test_gpu_free(s->device, s->on[i].data);
        test_gpu_free(s->device, s->on[i].scales);
        test_matrix_free(&s->host[i]);
    }
}

/* Runs the plan with a D whose data and scales begin `shift` bytes after aligned addresses. Copies
 * D's data and then its scales to `bytes`. */
static void shifted_run(const shifted *s, int shift, uint8_t *bytes) {
    const bsmm_exec exec = {.struct_size = sizeof exec, .device = s->device};
    const test_matrix *const d = &s->host[2];
    uint8_t *const data = (uint8_t *)s->on[2].data + shift, *const scales =
                                                                (uint8_t *)s->on[2].scales + shift;
    const bsmm_buffers buffers = {.struct_size = sizeof buffers,
                                  .a = s->on[0].data,
                                  .b = s->on[1].data,
                                  .b_scales = s->on[1].scales,
                                  .d = data,
                                  .d_scales = scales,
                                  .workspace = s->workspace,
                                  .workspace_bytes = bsmm_plan_workspace_bytes(s->plan)};
    if (bsmm_plan_run(s->plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    assert_int_equal(bsmm_synchronize_stream(&exec), BSMM_OK);
    test_gpu_read(s->device, bytes, data, d->data_bytes);
    test_gpu_read(s->device, bytes + d->data_bytes, scales, d->scale_bytes);
}

/* Tests addresses of D that are less aligned than the plan assumes. When a plan chooses the kernel
 * that quantizes D, it assumes that D's addresses are aligned. A run with other addresses must give
 * D the same bytes. */
static void test_unaligned_addresses_of_d(void **state) {
    (void)state;
    static const char *const formats[] = {"mxfp8", "mxfp6_e2m3", "mxfp4", "nvfp4"};
    static const int shifts[] = {1, 2, 4, 8};
    rng r = {38};
    test_gpu_need();
    for (uint32_t i = 0; test_gpu_at(i); i++)
        for (size_t j = 0; j < BSMM_COUNT(formats); j++) {
            uint8_t want[SHIFTED_M * SHIFTED_N * 2], got[sizeof want];
            shifted s;
            shifted_make(&s, test_gpu_at(i), formats[j], &r);
            const size_t bytes = s.host[2].data_bytes + s.host[2].scale_bytes;
            assert_true(bytes <= sizeof want);
            shifted_run(&s, 0, want);
            for (size_t k = 0; k < BSMM_COUNT(shifts); k++) {
                shifted_run(&s, shifts[k], got);
                if (memcmp(got, want, bytes) != 0)
                    fail_msg("%s on %s: other bytes of D at an address that is %d bytes further",
                             formats[j], s.device, shifts[k]);
            }
            shifted_free(&s);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_preset),   cmocka_unit_test(test_every_scale_layout),
        cmocka_unit_test(test_named_recipes),  cmocka_unit_test(test_extreme_levels),
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_alpha_beta_and_bias),
        cmocka_unit_test(test_portions),       cmocka_unit_test(test_unaligned_addresses_of_d),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
