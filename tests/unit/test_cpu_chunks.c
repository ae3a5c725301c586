/* Tests the order of sums that docs/NUMERICS.md documents for the engines f32fma and bf16dot
 * without fp32 scales. Each chunk of K is summed separately in fp32, and then the sums of the
 * chunks are added. The test computes the same sums by the C function fmaf. The results must be
 * bitwise identical. */
#include "cpu_hooks.h"
#include "product.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 5, N = 37, STEP = 128 };

static const struct {
    const char *kernel;
    /* `narrow` and `wide` are the largest number of elements in a chunk of K: `narrow` if elements
     * of B have at most 8 bits, else `wide`. */
    int64_t narrow, wide;
    /* If `pairs` is true, the engine takes the elements of K in pairs, as vdpbf16ps does. It adds
     * the product of the second (odd) element of a pair before that of the first. */
    bool pairs;
} engines[] = {
    {"cpu_avx2_f32", 512, 128, false},
    {"cpu_avx2_f32_small_m", 512, 128, false},
    {"cpu_avx512_f32", 512, 128, false},
    {"cpu_avx512_bf16dot", 512, 512, true},
    {"cpu_avx512_bf16dot_small_m", 512, 512, true},
};

/* Returns the length of a chunk, a range of K that a kernel sums by itself. The kernel divides K
 * into as few chunks as possible. A chunk has a multiple of 128 elements and at most `longest`
 * elements. The last chunk may be shorter. */
static int64_t chunk_of(int64_t longest, int64_t k) {
    int64_t count = 1;
    while (count * longest < k)
        count++;
    int64_t chunk = STEP;
    while (chunk * count < k)
        chunk += STEP;
    return chunk;
}

static float sum_chunk(const double *a, const double *b, int64_t from, int64_t end, bool pairs) {
    float sum = 0;
    for (int64_t i = from; i < end + end % 2; i++) {
        int64_t k = pairs ? i ^ 1 : i;
        if (k < end) sum = fmaf((float)a[k], (float)b[k], sum);
    }
    return sum;
}

static float sum_row(const double *a, const double *b, int64_t k, int64_t chunk, bool pairs) {
    float total = 0;
    for (int64_t from = 0; from < k; from += chunk) {
        float sum = sum_chunk(a, b, from, bsmm_min_i64(from + chunk, k), pairs);
        total = from ? total + sum : sum;
    }
    return total;
}

/* Compares the results of a kernel with sums in the documented order. Returns false if the kernel
 * refuses the product. */
static bool check_kernel(product *p, size_t engine, const double *a, const double *b) {
    const int64_t k = p->a.m.cols;
    const bool narrow = bsmm_elem_row(p->b.m.format.elem)->bits <= 8;
    const int64_t chunk = chunk_of(narrow ? engines[engine].narrow : engines[engine].wide, k);
    const char *kernel = engines[engine].kernel;
    bsmm_explanation e = {.struct_size = sizeof e};
    bool accepts = false;
    for (uint32_t i = 0; !bsmm_explain(&p->desc, i, &e); i++)
        accepts |= e.accepts && strcmp(e.kernel, kernel) == 0;
    if (!accepts) return false;
    float *d = result_of(p, kernel);
    for (int64_t i = 0; i < M * N; i++) {
        float sum = sum_row(a + i / N * k, b + i % N * k, k, chunk, engines[engine].pairs);
        if (memcmp(&sum, &d[i], sizeof sum) != 0)
            fail_msg("%s: K = %d, B has %d bits: element %d is %a, documented is %a", kernel,
                     (int)k, (int)bsmm_elem_row(p->b.m.format.elem)->bits, (int)i, (double)d[i],
                     (double)sum);
    }
    free(d);
    return true;
}

static void check_order(void) {
    static const char *const bs[] = {"mxfp8", "e5m2", "mxfp6_e2m3", "mxfp4", "nvfp4", "bf16"};
    /* These values of K are just below, at and just above the ends of chunks (ranges of K that are
     * summed by themselves). K = 516 is divided into two chunks, of 384 and 132 elements. */
    static const int64_t lengths[] = {4,   124, 128,  132,  380,  508,  512, 516,
                                      640, 768, 1020, 1024, 1028, 1540, 2564};
    rng r = {91};
    size_t tested[BSMM_COUNT(engines)] = {0};
    for (size_t i = 0; i < BSMM_COUNT(bs) * BSMM_COUNT(lengths); i++) {
        product p;
        product_make(&p, "bf16", bs[i % BSMM_COUNT(bs)], M, N, lengths[i / BSMM_COUNT(bs)],
                     FILL_ORDINARY, &r);
        double *a = test_matrix_values(&p.a), *b = test_matrix_values(&p.b);
        for (size_t e = 0; e < BSMM_COUNT(engines); e++)
            tested[e] += check_kernel(&p, e, a, b);
        free(a);
        free(b);
        product_free(&p);
    }
    for (size_t e = 0; e < BSMM_COUNT(engines); e++) {
        bool exists =
            bsmm_cpu_features() & (strstr(engines[e].kernel, "bf16dot")  ? BSMM_CPU_AVX512_BF16
                                   : strstr(engines[e].kernel, "avx512") ? BSMM_CPU_AVX512
                                                                         : BSMM_CPU_AVX2);
        if (exists && tested[e] < 5 * BSMM_COUNT(lengths))
            fail_msg("%s: only %zu products were tested", engines[e].kernel, tested[e]);
    }
}

static void test_order(void **state) {
    (void)state;
    check_order();
}

/* Tests the loops of bf16dot for processors on which FMA instructions replace vdpbf16ps. */
static void test_order_of_fmas(void **state) {
    (void)state;
    bsmm_cpu_add_features(BSMM_CPU_TWO_PORTS);
    check_order();
    bsmm_cpu_add_features(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_order_of_fmas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
