/* Runs every kernel (PTX entry) of the library at least once on a simulated GPU, and checks the
 * results. If a kernel is not run, this program fails and prints its name. The shapes are small,
 * because the simulator is slow. */
#include "cuda.h"
#include "cuda/host/wgmma.h"
#include "gpu/images.h"
#include "gpu_conversions.h"
#include "operand.h"
#include "walk.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* N and K are sizes of products. Operands have one of three storage orders: the two orders of
 * bsmm.h, and PADDED, which means row-major with gaps between the rows. */
enum { N = 40, K = 160, PADDED = 2 };
/* `columns` is the number of columns of D, and `depth` is the number of columns of A. Only a few
 * tests change them. */
static int64_t columns = N, depth = K;

/* If `pads_a` is true, A is PADDED whatever the storage order of the other operands is. */
static bool pads_a;

/* `device` is the name of the simulated GPU on which the functions below run kernels. */
static const char *device;

static void run_on(const char *name) {
    if (!test_cuda_is_built()) skip();
    device = name;
}

/* Returns the format of this name. "fp8_row" has one fp32 scale for each row. "e5m2_128" and
 * "e5m2_tile" are fp8_group128 and fp8_block128 with e5m2 elements. */
static bsmm_format named(const char *name) {
    static const struct {
        const char *name;
        bsmm_format format;
    } others[] = {{"fp8_row", {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, K}},
                  {"e5m2_128", {BSMM_ELEM_E5M2, BSMM_SCALE_F32, 1, 128}},
                  {"e5m2_tile", {BSMM_ELEM_E5M2, BSMM_SCALE_F32, 128, 128}}};
    for (size_t i = 0; i < BSMM_COUNT(others); i++)
        if (strcmp(others[i].name, name) == 0) return others[i].format;
    return format_named(name);
}

static test_matrix operand(const char *name, int64_t rows, uint32_t order, rng *r) {
    test_matrix t;
    bsmm_matrix shape = describe(named(name), rows, depth);
    shape.order = order % 2;
    shape.ld = order == PADDED ? depth + 4 : 0;
    test_matrix_make(&t, shape, FILL_ORDINARY, r);
    uint8_t *codes = t.m.scales;
    for (uint64_t i = 0; shape.format.scale == BSMM_SCALE_E8M0 && i < t.scale_bytes; i++)
        /* These e8m0 scales are so similar that e4m3 can represent the products of elements and
         * scales. */
        codes[i] = (uint8_t)(126 + rng_below(r, 3));
    return t;
}

static void check_result(const bsmm_matmul_desc *desc, const test_matrix *a, const test_matrix *b,
                         double bound) {
    const float *d = desc->d->data;
    const int64_t inner = desc->a->cols;
    double *left = test_matrix_values(a), *right = test_matrix_values(b);
    for (int64_t i = 0; i < desc->d->rows; i++)
        for (int64_t j = 0; j < desc->d->cols; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < inner; k++) {
                const double term = left[i * inner + k] * right[j * inner + k];
                sum += term, magnitude += fabs(term);
            }
            const double got = (double)d[i * desc->d->cols + j],
                         slack =
                             (bound + (double)inner * 0x1p-53) * magnitude + fabs(sum) * 0x1p-24;
            if (!(fabs(got - sum) <= slack))
                fail_msg("%s, %s x %s, at (%lld, %lld): got %a, want %a, slack %a", desc->kernel,
                         bsmm_format_name(a->m.format), bsmm_format_name(b->m.format), (long long)i,
                         (long long)j, got, sum, slack);
        }
    free(left);
    free(right);
}

/* Returns the error bound of a kernel for a product, or a negative number if the kernel refuses
 * the product. */
static double bound_of(const bsmm_matmul_desc *desc) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    bsmm_matmul_desc all = *desc;
    all.kernel = NULL;
    for (uint32_t i = 0; bsmm_explain(&all, i, &e) == BSMM_OK; i++)
        if (strcmp(e.kernel, desc->kernel) == 0) return e.accepts ? e.bound : -1;
    fail_msg("there is no kernel %s", desc->kernel);
    return -1;
}

/* PLAIN is a product without C. WITH_C is a product with C, for which some kernels take another
 * code path. */
enum { PLAIN, WITH_C };

/* Multiplies by the named kernel and checks the result. If the kernel refuses the product, only
 * returns false. */
static bool multiply(const char *kernel, const char *a, const char *b, int64_t m, uint32_t order,
                     uint32_t compute, int extra) {
    rng r = {(uint64_t)m + order};
    test_matrix left = operand(a, m, pads_a ? PADDED : order, &r),
                right = operand(b, columns, order, &r);
    bsmm_matrix d = describe(format_named("f32"), m, columns);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &left.m,
                             .b = &right.m,
                             .d = &d,
                             .compute = compute,
                             .device = device,
                             .kernel = kernel};
    bsmm_matrix c = d;
    static const float one = 1;
    c.data = calloc((size_t)(m * columns), sizeof(float));
    d.data = calloc((size_t)(m * columns), sizeof(float));
    if (extra == WITH_C) desc.c = &c, desc.beta = &one;
    const double bound = bound_of(&desc);
    if (bound >= 0) {
        if (test_multiply(&desc) != BSMM_OK)
            fail_msg("%s, %s x %s: %s", kernel, a, b, bsmm_error_message());
        check_result(&desc, &left, &right, bound);
    }
    free(c.data);
    free(d.data);
    test_matrix_free(&left);
    test_matrix_free(&right);
    return bound >= 0;
}

/* Multiplies operands of many formats and storage orders by the named kernel. */
static void multiply_all(const char *kernel) {
    static const char *const formats[] = {"mxfp4", "nvfp4", "e2m1", "mxfp6_e2m3",
                                          "e2m3",  "mxfp8", "e4m3", "fp8_group128",
                                          "f32",   "f16",   "bf16"};
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (uint32_t order = 0; order <= PADDED; order++)
            multiply(kernel, formats[i], "bf16", 20, order, BSMM_COMPUTE_EXACT, PLAIN);
    for (uint32_t order = 0; order < 2; order++) {
        multiply(kernel, "f32", "f32", 20, order, BSMM_COMPUTE_EXACT, WITH_C);
        multiply(kernel, "f16", "f16", 20, order, BSMM_COMPUTE_EXACT, WITH_C);
    }
    multiply(kernel, "f32", "f32", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
    multiply(kernel, "bf16", "f32", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
    multiply(kernel, "fp8_row", "mxfp4", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
    multiply(kernel, "bf16", "fp8_group128", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
}

static void generic_products(void **state) {
    (void)state;
    run_on("sim:sm_80");
    multiply_all("cuda_sm80_bf16");
}

static void bf16_packs(void **state) {
    (void)state;
    run_on("sim:sm_90a");
    multiply_all("cuda_sm90a_bf16");
}

/* Tests the kernels that pack to f16. Operands of an fnuz format are packed to bf16 first, by other
 * kernels. */
static void f16_packs(void **state) {
    static const char *const weights[] = {"mxfp4", "nvfp4", "mxfp8", "e4m3fnuz"};
    (void)state;
    run_on("sim:sm_90a");
    for (size_t i = 0; i < BSMM_COUNT(weights); i++)
        assert_true(
            multiply("cuda_sm90a_f16", "f16", weights[i], 20, 0, BSMM_COMPUTE_EXACT, PLAIN));
}

static void fp8_packs(void **state) {
    (void)state;
    static const char *const folded[] = {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8",
                                         "mxfp8_e5m2"};
    run_on("sim:sm_90a");
    for (uint32_t order = 0; order <= PADDED; order++) {
        for (size_t i = 0; i < BSMM_COUNT(folded); i++)
            for (uint32_t compute = BSMM_COMPUTE_EXACT; compute <= BSMM_COMPUTE_FAST; compute++)
                multiply("cuda_sm90a_fold", folded[i], "mxfp4", 20, order, compute, PLAIN);
        multiply("cuda_sm90a_fp8", "fp8_group128", "fp8_block128", 20, order, BSMM_COMPUTE_EXACT,
                 PLAIN);
    }
}

/* Tests operands whose block scales end where their allocation ends. If a kernel reads past the
 * end, the simulator reports an error. */
static void ends_of_scales(void **state) {
    static const struct {
        const char *kernel;
        bsmm_format a, b;
        int64_t m, n, k;
    } cases[] = {
        {"cuda_sm90a_bf16",
         {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16},
         {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16},
         8,
         9,
         64},
        {"cuda_sm90_small_m",
         {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128},
         {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128},
         21,
         34,
         256},
    };
    (void)state;
    run_on("sim:sm_90a");
    rng r = {9};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        test_matrix a, b, d;
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k;
        test_matrix_make(&a, describe(cases[i].a, m, k), FILL_ORDINARY, &r);
        test_matrix_make(&b, describe(cases[i].b, n, k), FILL_ORDINARY, &r);
        test_matrix_make(&d, describe(format_named("f32"), m, n), FILL_ORDINARY, &r);
        const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                       .a = &a.m,
                                       .b = &b.m,
                                       .d = &d.m,
                                       .device = device,
                                       .kernel = cases[i].kernel};
        const double bound = bound_of(&desc);
        assert_true(bound >= 0);
        if (test_multiply(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        check_result(&desc, &a, &b, bound);
        test_matrix_free(&a);
        test_matrix_free(&b);
        test_matrix_free(&d);
    }
}

/* Tests products of block-scaled operands in each format. Operands with gaps between rows need
 * another kernel, which copies the rows first. */
static void scaled_products(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"},
                             *const devices[][2] = {{"sim:sm_100", "cuda_sm100f_scaled"},
                                                    {"sim:sm_120", "cuda_sm120f_scaled"}};
    (void)state;
    for (size_t d = 0; d < BSMM_COUNT(devices); d++) {
        run_on(devices[d][0]);
        for (size_t i = 0; i < BSMM_COUNT(formats); i++)
            for (uint32_t order = 0; order <= PADDED; order += PADDED)
                multiply(devices[d][1], formats[i], formats[i], 20, order, BSMM_COMPUTE_EXACT,
                         PLAIN);
    }
    run_on("sim:sm_100");
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        multiply("cuda_sm100f_scaled_small_m", formats[i], formats[i], 20, 0, BSMM_COMPUTE_EXACT,
                 PLAIN);
    multiply("cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
}

static void wide_products(void **state) {
    (void)state;
    run_on("sim:sm_100");
    multiply("cuda_sm100f_wide", "bf16", "mxfp4", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
    multiply("cuda_sm100f_wide_groups", "bf16", "fp8_block128", 20, 0, BSMM_COMPUTE_EXACT, PLAIN);
    columns = 768;
    multiply("cuda_sm100f_wide", "f16", "f16", 130, 0, BSMM_COMPUTE_EXACT, PLAIN);
    multiply("cuda_sm100f_wide_groups", "bf16", "fp8_block128", 130, 0, BSMM_COMPUTE_EXACT, PLAIN);
    multiply("cuda_sm100f_fp8", "fp8_group128", "fp8_block128", 130, 0, BSMM_COMPUTE_EXACT, PLAIN);
    columns = N;
}

/* Tests products of three tiles of 256 x 192 results. The simulated device has 6 SMs, and each pair
 * of SMs computes one tile. */
static void pair_products(void **state) {
    static const char *const formats[] = {"mxfp8", "mxfp4", "nvfp4"};
    (void)state;
    run_on("sim:sm_100");
    columns = 576;
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        multiply("cuda_sm100f_scaled", formats[i], formats[i], 130, 0, BSMM_COMPUTE_EXACT, PLAIN);
    columns = N;
}

/* Lists a product for each kind of wgmma kernel and each pair of element types that it
 * multiplies. */
static const struct {
    bsmm_wgmma_kind kind;
    uint32_t elems[2];
    const char *kernel, *a, *b;
} tile_products[] = {
    {BSMM_WGMMA_BF16, {BSMM_ELEM_BF16, BSMM_ELEM_BF16}, "cuda_sm90a_bf16", "bf16", "bf16"},
    {BSMM_WGMMA_BLOCK, {BSMM_ELEM_BF16, BSMM_ELEM_BF16}, "cuda_sm90a_bf16", "bf16", "fp8_block128"},
    {BSMM_WGMMA_BF16, {BSMM_ELEM_F16, BSMM_ELEM_F16}, "cuda_sm90a_f16", "f16", "mxfp6_e2m3"},
    {BSMM_WGMMA_BLOCK, {BSMM_ELEM_F16, BSMM_ELEM_F16}, "cuda_sm90a_f16", "f16", "fp8_block128"},
    {BSMM_WGMMA_ROW, {BSMM_ELEM_BF16, BSMM_ELEM_BF16}, "cuda_sm90a_bf16", "bf16", "fp8_group128"},
#define PAIRS(kind, kernel, a4, a5, b4, b5)                                                        \
    {kind, {BSMM_ELEM_E4M3, BSMM_ELEM_E4M3}, kernel, a4, b4},                                      \
        {kind, {BSMM_ELEM_E4M3, BSMM_ELEM_E5M2}, kernel, a4, b5},                                  \
        {kind, {BSMM_ELEM_E5M2, BSMM_ELEM_E4M3}, kernel, a5, b4}, {                                \
        kind, {BSMM_ELEM_E5M2, BSMM_ELEM_E5M2}, kernel, a5, b5                                     \
    }
    PAIRS(BSMM_WGMMA_BLOCK, "cuda_sm90a_fp8", "fp8_group128", "e5m2_128", "fp8_block128",
          "e5m2_tile"),
    PAIRS(BSMM_WGMMA_ROW, "cuda_sm90a_fp8", "fp8_group128", "e5m2_128", "fp8_group128", "e5m2_128"),
    PAIRS(BSMM_WGMMA_POW2, "cuda_sm90a_fold", "mxfp8", "mxfp8_e5m2", "mxfp8", "mxfp8_e5m2"),
};

static void tiles(void **state) {
    (void)state;
    const bsmm_wgmma_tile *tile;
    run_on("sim:sm_90a");
    for (size_t i = 0; (tile = bsmm_wgmma_tile_at(i)); i++) {
        const char *name = bsmm_wgmma_function(tile)->name;
        setenv("BSMM_TEST_TILE", name, 1);
        for (size_t p = 0; p < BSMM_COUNT(tile_products); p++)
            if (bsmm_wgmma_tile_takes(tile, tile_products[p].kind, tile_products[p].elems[0],
                                      tile_products[p].elems[1]))
                for (uint32_t compute = BSMM_COMPUTE_EXACT; compute <= BSMM_COMPUTE_FAST; compute++)
                    multiply(tile_products[p].kernel, tile_products[p].a, tile_products[p].b, 70, 0,
                             compute, PLAIN);
    }
    unsetenv("BSMM_TEST_TILE");
}

static void multiply_few_rows(const char *name) {
    static const char *const left[] = {"bf16", "fp8_group128", "fp8_row"},
                             *const weights[] = {"mxfp4",      "nvfp4",       "mxfp6_e2m3",
                                                 "mxfp6_e3m2", "mxfp8",       "fp8_block128",
                                                 "fp8_row",    "fp8_group128"};
    static const int64_t rows[] = {3, 12, 24, 50};
    run_on(name);
    for (size_t a = 0; a < BSMM_COUNT(left); a++)
        for (size_t b = 0; b < BSMM_COUNT(weights); b++)
            for (size_t m = 0; m < BSMM_COUNT(rows); m++) {
                multiply("cuda_sm90_small_m", left[a], weights[b], rows[m], 0, BSMM_COMPUTE_EXACT,
                         PLAIN);
                multiply("cuda_sm90a_fp8_small_m", left[a], weights[b], rows[m], 0,
                         BSMM_COMPUTE_EXACT, PLAIN);
            }
}

static void few_rows(void **state) {
    (void)state;
    multiply_few_rows("sim:sm_90a");
    multiply_few_rows("sim:sm_100");
}

/* Tests a ring buffer of A that has only two stages and that several warpgroups share. On the
 * simulated device with six SMs, this product gets such a buffer. It has a C, so the kernel does
 * not divide the rows of A into bands (runs of up to 64 rows). */
static void small_ring(void **state) {
    (void)state;
    run_on("sim:sm_90a");
    columns = 384, depth = 3072;
    assert_true(multiply("cuda_sm90_small_m", "bf16", "mxfp4", 40, 0, BSMM_COMPUTE_EXACT, WITH_C));
    columns = N, depth = K;
}

/* Tests every mixed-input kernel. There is one for each format of weights, each number of columns
 * of a tile, and each of bf16 and f16. With fp32 scales along K there are no tiles of 128 columns.
 */
static void mixed_products(void **state) {
    static const char *const weights[] = {"mxfp4", "nvfp4",   "mxfp6_e2m3",  "mxfp6_e3m2",
                                          "mxfp8", "fp8_row", "fp8_block128"};
    static const char *const divisions[] = {"32,0,0", "64,0,0", "96,0,0", "256,0,0", "128,0,0"};
    (void)state;
    run_on("sim:sm_90a");
    for (size_t d = 0; d < BSMM_COUNT(divisions); d++)
        for (size_t i = 0; i < BSMM_COUNT(weights); i++) {
            const bool exists = d < 4 || strcmp(weights[i], "fp8_block128") != 0;
            setenv("BSMM_TEST_MIXED", divisions[d], 1);
            assert_int_equal(
                multiply("cuda_sm90a_mixed", "bf16", weights[i], 35, 0, BSMM_COMPUTE_EXACT, PLAIN),
                exists);
            assert_int_equal(
                multiply("cuda_sm90a_mixed", "f16", weights[i], 35, 0, BSMM_COMPUTE_EXACT, PLAIN),
                exists);
        }
    /* Before the GEMM kernel, another kernel converts A. There are five such kernels, one for each
     * way to read A. The products above use those for bf16 and f16. The products below use those
     * for e4m3, e2m1 and any A. */
    setenv("BSMM_TEST_MIXED", "0,0,0", 1);
    assert_true(multiply("cuda_sm90a_mixed", "mxfp8", "mxfp4", 35, 0, BSMM_COMPUTE_EXACT, PLAIN));
    assert_true(multiply("cuda_sm90a_mixed", "mxfp4", "mxfp4", 35, 0, BSMM_COMPUTE_EXACT, PLAIN));
    pads_a = true;
    assert_true(multiply("cuda_sm90a_mixed", "bf16", "mxfp4", 35, 0, BSMM_COMPUTE_EXACT, PLAIN));
    pads_a = false;
    unsetenv("BSMM_TEST_MIXED");
}

/* Tests products whose rows of A are divided into bands, i.e. runs of up to 64 rows. The last two
 * bands overlap, so some rows of D are computed twice. With a C in the same memory as D this would
 * be wrong, so the kernel refuses such a product with a C. */
static void bands(void **state) {
    static const struct {
        const char *a, *b;
        int64_t rows;
    } products[] = {{"bf16", "mxfp4", 65},
                    {"bf16", "fp8_block128", 127},
                    {"mxfp8", "nvfp4", 101},
                    {"fp8_row", "mxfp8", 128}};
    (void)state;
    run_on("sim:sm_90a");
    setenv("BSMM_TEST_BANDS", "1", 1);
    for (size_t i = 0; i < BSMM_COUNT(products); i++)
        for (int extra = PLAIN; extra <= WITH_C; extra++)
            assert_int_equal(multiply("cuda_sm90_small_m", products[i].a, products[i].b,
                                      products[i].rows, 0, BSMM_COMPUTE_EXACT, extra),
                             extra == PLAIN);
    unsetenv("BSMM_TEST_BANDS");
}

static void conversions(void **state) {
    (void)state;
    run_on("sim:sm_80");
    gpu_conversions_run(device);
}

typedef const char *list_launched(unsigned number);

static bool was_launched(list_launched *list, const char *target, const char *entry,
                         size_t length) {
    const size_t begin = strlen(target);
    const char *name;
    for (unsigned i = 0; (name = list(i)); i++)
        if (strncmp(name, target, begin) == 0 && name[begin] == ' ' &&
            strlen(name + begin + 1) == length && memcmp(name + begin + 1, entry, length) == 0)
            return true;
    return false;
}

/* Counts the kernels (entries) of a PTX text. Prints the name of each one that was not launched. */
static void check_text(const char *text, const char *target, list_launched *list, int counts[2]) {
    static const char directive[] = ".entry ";
    for (const char *at = text; (at = strstr(at, directive));) {
        at += strlen(directive);
        const size_t length = strcspn(at, "( \n");
        counts[0]++;
        if (was_launched(list, target, at, length)) continue;
        print_message("%s %.*s was not run\n", target, (int)length, at);
        counts[1]++;
    }
}

/* Tests that the tests above have run every kernel in the library's PTX. */
static void every_entry_was_run(void **state) {
    (void)state;
    static const char *const codes[][2] = {{"compute_80", "sm_80"},
                                           {"compute_90a", "sm_90a"},
                                           {"compute_100f", "sm_100f"},
                                           {"compute_120f", "sm_120f"}};
    run_on("sim:sm_90a");
    void *library = dlopen("libbsmm_sim_cuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    void *symbol = dlsym(library, "bsmm_sim_launched");
    list_launched *list;
    memcpy(&list, &symbol, sizeof list);
    int counts[2] = {0, 0};
    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++)
        for (size_t c = 0; c < BSMM_COUNT(codes); c++) {
            bsmm_gpu_unpacked unpacked;
            if (strcmp(i->code, codes[c][0]) != 0) continue;
            assert_int_equal(bsmm_gpu_image_unpack(i, &unpacked), BSMM_OK);
            check_text(unpacked.bytes, codes[c][1], list, counts);
            free(unpacked.memory);
        }
    print_message("%d entries of PTX, %d not run\n", counts[0], counts[1]);
    assert_true(counts[0] > 0);
    assert_int_equal(counts[1], 0);
    dlclose(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generic_products),
        cmocka_unit_test(bf16_packs),
        cmocka_unit_test(ends_of_scales),
        cmocka_unit_test(f16_packs),
        cmocka_unit_test(fp8_packs),
        cmocka_unit_test(scaled_products),
        cmocka_unit_test(pair_products),
        cmocka_unit_test(wide_products),
        cmocka_unit_test(tiles),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(small_ring),
        cmocka_unit_test(mixed_products),
        cmocka_unit_test(bands),
        cmocka_unit_test(conversions),
        cmocka_unit_test(every_entry_was_run),
    };
    /* Persistent kernels launch one thread block for each SM, so the test is faster with few SMs.
     * With BSMM_SIM_REPORT, the simulator prints the errors that it finds. */
    setenv("BSMM_SIM_MULTIPROCESSORS", "6", 1);
    setenv("BSMM_SIM_REPORT", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
