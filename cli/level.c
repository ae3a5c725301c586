#include "level.h"
#include "files.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The measured error levels of the kernel families (level.h). Each is the largest that
 * tests/unit/test_cli_level.c found on a Xeon of the Sapphire Rapids generation, over eight pairs
 * of formats, K from 256 to 4096, and operands with mixed signs, with one sign and with growing
 * values. The test fails if a kernel exceeds its level. The kernels of GPUs have not been
 * measured. */
static const cli_family_level families[] = {
    {"cpu_avx512_int8dot", .unit = 0, .level = 1.01},
    {"cpu_avx2_int8dot", .unit = 0, .level = 1.01},
    {"cpu_avx512_bf16dot", .unit = 1, .segment = 128, .segments_by_f32 = true, .level = 1.15},
    {"cpu_avx512_f32", .unit = 1, .segment = 128, .segments_by_f32 = true, .level = 1.01},
    {"cpu_avx2_f32", .unit = 1, .segment = 128, .segments_by_f32 = true, .level = 1.01},
    {"cpu_f32", .unit = 1, .segment = 128, .total_in_double = true, .level = 1.06},
};

const cli_family_level *cli_level_of(const char *kernel) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(kernel, families[i].kernel, strlen(families[i].kernel)) == 0)
            return &families[i];
    return NULL;
}

/* Returns the sum of one segment, added and rounded in the order of the kernel family: `unit` exact
 * products at a time. */
static float sum_segment(int64_t unit, const float *a, const float *b, int64_t k, float sum) {
    for (int64_t i = 0; i < k; i += unit) {
        double part = 0;
        for (int64_t j = i; j < k && j < i + unit; j++)
            part += (double)a[j] * (double)b[j];
        sum = (float)((double)sum + part);
    }
    return sum;
}

static int64_t unit_of(const cli_family_level *family, const bsmm_format formats[2]) {
    bool e8m0 = formats[0].scale == BSMM_SCALE_E8M0 && formats[1].scale == BSMM_SCALE_E8M0;
    return family->unit ? family->unit : e8m0 ? 32 : 16;
}

static int64_t gcd(int64_t x, int64_t y) {
    return y ? gcd(y, x % y) : x;
}

static int64_t segment_of(const cli_family_level *family, const bsmm_format formats[2], int64_t k) {
    bool f32 = formats[0].scale == BSMM_SCALE_F32 || formats[1].scale == BSMM_SCALE_F32;
    int64_t segment = family->segment;
    if (!segment || (family->segments_by_f32 && !f32)) return k;
    for (int i = 0; i < 2; i++)
        if (formats[i].scale != BSMM_SCALE_NONE) segment = gcd(segment, formats[i].block_cols);
    return segment;
}

cli_sums cli_level_sum(const cli_family_level *family, const bsmm_format formats[2], const float *a,
                       const float *b, int64_t k) {
    int64_t unit = unit_of(family, formats), step = segment_of(family, formats, k);
    cli_sums sums = {0};
    for (int64_t i = 0; i < k; i += step) {
        int64_t n = k - i < step ? k - i : step;
        double part = (double)sum_segment(unit, a + i, b + i, n, 0);
        sums.rounded =
            family->total_in_double ? sums.rounded + part : (double)(float)(sums.rounded + part);
    }
    if (family->total_in_double) sums.rounded = (double)(float)sums.rounded;
    for (int64_t i = 0; i < k; i++) {
        sums.exact += (double)a[i] * (double)b[i];
        sums.magnitude += fabs((double)a[i] * (double)b[i]);
    }
    return sums;
}

/* Chooses the distance between the outputs that are checked, so that their sums take about 2^27
 * multiply-adds. The outputs are spread evenly. The distance is odd, so that it shares no factor
 * with tile sizes that are powers of two, and every lane of a tile is checked. */
static int64_t choose_stride(int64_t outputs, int64_t k) {
    int64_t affordable = ((int64_t)1 << 27) / (k > 0 ? k : 1) + 1;
    return (outputs / affordable + 1) | 1;
}

double cli_level_compare(const cli_family_level *family, const bsmm_matrix *a, const bsmm_matrix *b,
                         const float *a_values, const float *b_values, const float *d) {
    enum { LEAST = 128 };
    const bsmm_format formats[2] = {a->format, b->format};
    double ours = 0, typical = 0;
    int64_t k = a->cols, outputs = a->rows * b->rows, with_error = 0, with_expected = 0;
    for (int64_t i = 0; i < outputs; i += choose_stride(outputs, k)) {
        cli_sums sums = cli_level_sum(family, formats, a_values + i / b->rows * k,
                                      b_values + i % b->rows * k, k);
        double error = ((double)d[i] - sums.exact) / sums.magnitude;
        double expected = (sums.rounded - sums.exact) / sums.magnitude;
        if (!isfinite(error) || !isfinite(expected)) continue;
        ours += error * error;
        typical += expected * expected;
        with_error += error != 0;
        with_expected += expected != 0;
    }
    if (with_error < LEAST && with_expected < LEAST) return (double)NAN;
    return sqrt(ours / typical) / family->level;
}

/* Allocates a matrix of fp32 values. Its data is NULL if there is no memory. */
static bsmm_matrix wide(int64_t rows, int64_t cols) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    m.format.elem = BSMM_ELEM_F32;
    m.rows = rows;
    m.cols = cols;
    m.data = cli_matrix_allocate(&m);
    return m;
}

typedef struct plain {
    bsmm_matrix a, b, a_values, b_values, d;
} plain;

static bool multiply_plain(const bsmm_matmul_desc *desc, const char *kernel, plain *p) {
    bsmm_matmul_desc product = BSMM_INIT(bsmm_matmul_desc);
    product.a = &p->a;
    product.b = &p->b;
    product.d = &p->d;
    product.kernel = kernel;
    product.compute = desc->compute;
    product.threads = desc->threads;
    return p->a_values.data && p->b_values.data && p->d.data &&
           !bsmm_dequantize(&p->a, &p->a_values) && !bsmm_dequantize(&p->b, &p->b_values) &&
           !bsmm_matmul(&product);
}

bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, double *level) {
    const cli_family_level *family = cli_level_of(kernel);
    *level = (double)NAN;
    if (!family) return true;
    int64_t k = desc->a->cols;
    plain p = {.a = *desc->a,
               .b = *desc->b,
               .a_values = wide(desc->a->rows, k),
               .b_values = wide(desc->b->rows, k),
               .d = wide(desc->a->rows, desc->b->rows)};
    p.a.global_scale = p.b.global_scale = NULL;
    bool done = multiply_plain(desc, kernel, &p);
    if (done)
        *level = cli_level_compare(family, &p.a, &p.b, p.a_values.data, p.b_values.data, p.d.data);
    free(p.a_values.data);
    free(p.b_values.data);
    free(p.d.data);
    return done;
}
