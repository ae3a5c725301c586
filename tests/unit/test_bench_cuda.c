/* bench's parts for GPUs: memory that comes back, graphs that are timed, and cuBLASLt's products,
 * which must be right to be compared with. Skipped without a GPU. */
/* bench belongs to the command, not to a library that tests could link. */
#include "../../bench/cublaslt.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../bench/cuda.c"     /* NOLINT(bugprone-suspicious-include) */
#include "../../bench/data.c"     /* NOLINT(bugprone-suspicious-include) */
#include "../../bench/samples.c"  /* NOLINT(bugprone-suspicious-include) */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bench_cuda *open_or_skip(void) {
    bench_cuda *cuda = bench_cuda_open("cuda:0");
    if (cuda) return cuda;
    printf("skipped: no CUDA device: %s\n", bench_cuda_error());
    skip();
    return NULL;
}

static void names_are_told_apart(void **state) {
    (void)state;
    assert_true(bench_cuda_is("cuda") && bench_cuda_is("cuda:3"));
    assert_false(bench_cuda_is("cpu") || bench_cuda_is("cudax") || bench_cuda_is(NULL));
}

static void memory_comes_back(void **state) {
    (void)state;
    bench_cuda *cuda = open_or_skip();
    uint8_t bytes[1000], got[3 * 1024];
    void *memory;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    assert_true(bench_cuda_new_sets(cuda, bytes, sizeof bytes, 1024, 3, &memory));
    assert_true(bench_cuda_read(cuda, got, memory, sizeof got));
    for (size_t set = 0; set < 3; set++)
        assert_memory_equal(got + set * 1024, bytes, sizeof bytes);
    assert_false(bench_cuda_new(cuda, NULL, UINT64_MAX / 2, &memory));
    assert_non_null(strstr(bench_cuda_error(), "OUT_OF_MEMORY"));
    bench_cuda_close(cuda);
}

static void copies_are_timed(void **state) {
    (void)state;
    bench_cuda *cuda = open_or_skip();
    bench_samples rates = {0};
    assert_true(bench_cuda_time_copy(cuda, &rates) && bench_cuda_time_copy(cuda, &rates));
    printf("copy: %.0f GB/s\n", bench_samples_best(&rates) * 1e-9);
    assert_true(bench_samples_best(&rates) > 1e10);
    bench_samples_destroy(&rates);
    bench_cuda_close(cuda);
}

enum { ROWS = 256, COLS = 384, DEPTH = 512 };

static float *values_of(uint32_t elem, int64_t rows, uint64_t seed) {
    bsmm_matrix m = {0}, wide = {0};
    assert_int_equal(bench_operand_create(&m, &wide, (bsmm_format){.elem = elem},
                                          BSMM_LAYOUT_ROW_MAJOR, rows, DEPTH, seed, 0),
                     BSMM_OK);
    float *values = wide.data;
    wide.data = NULL;
    bench_matrix_destroy(&m);
    bench_matrix_destroy(&wide);
    return values;
}

static void expect_product(const float *got, uint32_t elem, double tolerance) {
    float *a = values_of(elem, ROWS, BENCH_FIRST_SEED);
    float *b = values_of(elem, COLS, BENCH_FIRST_SEED + 1);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            double exact = 0, magnitude = 0;
            for (int k = 0; k < DEPTH; k++) {
                double product = (double)a[r * DEPTH + k] * (double)b[c * DEPTH + k];
                exact += product;
                magnitude += fabs(product);
            }
            if (!(fabs((double)got[r * COLS + c] - exact) <= tolerance * magnitude))
                fail_msg("(%d, %d): got %g, exact %g, magnitude %g", r, c,
                         (double)got[r * COLS + c], exact, magnitude);
        }
    free(a);
    free(b);
}

/* Of sum |a||b|. Fast accumulation cuts the sum to some 13 bits after each 32 of K; with 128-wide
 * scales sums of 128 are added in fp32. */
static const double tolerances[BENCH_LT_KINDS] = {
    [BENCH_LT_FP8] = DEPTH * 0x1p-17,
    [BENCH_LT_VEC128] = 128 * 0x1p-17,
    [BENCH_LT_BF16] = 0x1p-16,
};

static void cublaslt_multiplies(void **state) {
    (void)state;
    bench_cuda *cuda = open_or_skip();
    bench_lt *lt = bench_lt_open();
    if (!lt) {
        print_message("skipped: no cuBLASLt\n");
        skip();
    }
    const bench_lt_shape shape = {ROWS, COLS, DEPTH, BSMM_ELEM_F32, 2};
    float *got = malloc(sizeof *got * ROWS * COLS);
    for (int kind = 0; kind < BENCH_LT_KINDS; kind++) {
        bench_lt_product *p = bench_lt_create(lt, cuda, (bench_lt_kind)kind, &shape);
        print_message("%s: %s\n", bench_lt_infos[kind].name, p ? "there" : "no algorithm");
        if (!p) continue;
        for (size_t turn = 0; turn < 2; turn++) {
            assert_true(bench_lt_run(p, turn) && bench_cuda_wait(cuda));
            assert_true(bench_cuda_read(cuda, got, (char *)p->d + turn * p->d_bytes,
                                        sizeof *got * ROWS * COLS));
            expect_product(got, kind == BENCH_LT_BF16 ? BSMM_ELEM_BF16 : BSMM_ELEM_E4M3,
                           tolerances[kind]);
        }
        bench_lt_destroy(p);
    }
    free(got);
    bench_lt_close(lt);
    bench_cuda_close(cuda);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_apart),
        cmocka_unit_test(memory_comes_back),
        cmocka_unit_test(copies_are_timed),
        cmocka_unit_test(cublaslt_multiplies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
