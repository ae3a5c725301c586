/* Compares the results of all CUDA kernels bit for bit with those of an H200. An emulated GPU must
 * give the same bits, because it adds as the tensor cores of compute capability 9.0 do
 * (sim/common/tensor_core.h). On an H200, `test_cuda_bits print` writes
 * tests/golden/data/h200_bits.txt. */
#include "cuda.h"
#include "shaped.h"
#include "walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN BSMM_GOLDEN_DIR "/data/h200_bits.txt"

enum { N = 40, MOST_LINE = 256, LEAST_LINES = 900 };

typedef struct result_case {
    char formats[2][32];
    int64_t m, k;
    test_shape shape;
    char kernel[40];
} result_case;

/* Returns the FNV-1a hash of some bytes. */
static uint64_t hash_of(const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ from[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t result_of(const result_case *c) {
    const char *const pair[2] = {c->formats[0], c->formats[1]};
    const size_t bytes = (size_t)(c->m * N) * sizeof(float);
    test_matrix a, b;
    test_shaped_make(&a, &b, pair, c->m, N, c->k, c->shape);
    bsmm_matrix d = describe(format_named("f32"), c->m, N);
    d.data = malloc(bytes);
    memset(d.data, 0xa5, bytes);
    bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                             .a = &a.m,
                             .b = &b.m,
                             .d = &d,
                             .device = "cuda:0",
                             .kernel = c->kernel};
    if (test_multiply(&desc) != BSMM_OK)
        fail_msg("%s, %s x %s: %s", c->kernel, pair[0], pair[1], bsmm_error_message());
    const uint64_t hash = hash_of(d.data, bytes);
    free(d.data);
    test_matrix_free(&a);
    test_matrix_free(&b);
    return hash;
}

static bool read_case(const char *line, result_case *c, uint64_t *hash) {
    long long m, k;
    int shape;
    unsigned long long value;
    if (sscanf(line, "%31s %31s %lld %lld %d %39s %llx", c->formats[0], c->formats[1], &m, &k,
               &shape, c->kernel, &value) != 7)
        return false;
    c->m = m, c->k = k, c->shape = (test_shape)shape, *hash = value;
    return true;
}

static void test_same_bits_as_an_h200(void **state) {
    (void)state;
    const bsmm_cuda_device *device = test_cuda_device();
    if (device->capability != 90) skip();
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    char line[MOST_LINE];
    int count = 0, different = 0;
    while (fgets(line, sizeof line, file)) {
        result_case c;
        uint64_t expected = 0;
        if (line[0] == '#') continue;
        assert_true(read_case(line, &c, &expected));
        if (result_of(&c) != expected) {
            print_message("different: %s", line);
            different++;
        }
        count++;
    }
    fclose(file);
    print_message("%d results compared, %d different\n", count, different);
    assert_true(count >= LEAST_LINES);
    assert_int_equal(different, 0);
}

static const char *const pairs[][2] = {
    {"mxfp4", "mxfp4"},
    {"nvfp4", "nvfp4"},
    {"mxfp8", "mxfp4"},
    {"bf16", "mxfp4"},
    {"bf16", "nvfp4"},
    {"mxfp8", "mxfp8"},
    {"f32", "f32"},
    {"bf16", "bf16"},
    {"fp8_group128", "fp8_block128"},
    {"f16", "mxfp8"},
    {"f16", "fp8_block128"},
    {"fp8_group128", "mxfp4"},
    {"bf16", "fp8_block128"},
    {"f16", "f16"},
    {"mxfp6_e2m3", "mxfp4"},
    {"mxfp8_e5m2", "mxfp8"},
    {"mxfp8_e5m2", "mxfp4"},
    {"mxfp6_e3m2", "mxfp6_e3m2"},
    {"f32", "mxfp4"},
    {"f32", "fp8_block128"},
    {"fp8_group128", "fp8_group128"},
    {"fp8_group128", "nvfp4"},
    {"fp8_group128", "mxfp8"},
    {"bf16", "mxfp8"},
};

static void print_kernels(result_case *c) {
    test_matrix a, b;
    const char *const pair[2] = {c->formats[0], c->formats[1]};
    test_shaped_make(&a, &b, pair, c->m, N, c->k, c->shape);
    bsmm_matrix d = describe(format_named("f32"), c->m, N);
    bsmm_matmul_desc desc = {
        .struct_size = sizeof desc, .a = &a.m, .b = &b.m, .d = &d, .device = "cuda:0"};
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(&desc, i, &e); i++) {
        if (!e.accepts) continue;
        snprintf(c->kernel, sizeof c->kernel, "%s", e.kernel);
        printf("%s %s %lld %lld %d %s %016llx\n", pair[0], pair[1], (long long)c->m,
               (long long)c->k, (int)c->shape, c->kernel, (unsigned long long)result_of(c));
    }
    test_matrix_free(&a);
    test_matrix_free(&b);
}

static void print_all(void) {
    static const int64_t rows[] = {8, 17}, lengths[] = {256, 768};
    printf("# Results of an NVIDIA H200, which test_cuda_bits compares: `test_cuda_bits print` "
           "writes this file.\n# formats of A and B, M, K, shape of the values "
           "(tests/support/shaped.h), kernel, FNV-1a hash of D (f32, N = %d)\n",
           N);
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < BSMM_COUNT(rows) * BSMM_COUNT(lengths); j++)
            for (test_shape shape = SHAPE_MIXED; shape < SHAPES; shape++) {
                result_case c = {.m = rows[j / 2], .k = lengths[j % 2], .shape = shape};
                for (int side = 0; side < 2; side++)
                    snprintf(c.formats[side], sizeof c.formats[side], "%s", pairs[i][side]);
                print_kernels(&c);
            }
}

int main(int argc, char **argv) {
    /* The library would choose the number of parts of K (split-K) by the number of SMs. The test
     * sets it to 1, so that all GPUs give the same bits. */
    setenv("BSMM_TEST_SPLITS", "1", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits_as_an_h200)};
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        print_all();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
