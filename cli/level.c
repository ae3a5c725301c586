#include "level.h"
#include "common.h"
#include "device.h"
#include "files.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns true if an entry of the table of measured errors holds for operands of these formats. */
static bool holds_for(const bench_family_level *f, const bsmm_format formats[2]) {
    const uint32_t a_bits = cli_level_bits_of(formats[0]), b_bits = cli_level_bits_of(formats[1]);
    const bool alike = formats[0].scale == formats[1].scale && formats[0].scale != BSMM_SCALE_E8M0;
    if (f->scaled_bytes) return a_bits <= 8 && formats[1].scale == BSMM_SCALE_E8M0;
    return !f->fp8_pairs || (alike && a_bits == 8 && b_bits == 8);
}

/* Finds the kernel's family in the table of measured errors for this kind of device. A family
 * contains the kernels that add in the same order. Returns NULL if the table has no such family. */
static const bench_family_level *find(const char *device, const char *kernel,
                                      const bsmm_format formats[2]) {
    const bench_family_level *f = bench_device_kind_of(device)->levels;
    for (; f && f->kernel; f++)
        if (begins(kernel, f->kernel) && (!f->device || begins(device, f->device)) &&
            holds_for(f, formats))
            return f;
    return NULL;
}

/* Returns the number of parts into which a kernel divides K of this product. */
static int64_t count_parts(const bsmm_matmul_desc *desc, const char *kernel) {
    bsmm_explanation row = BSMM_INIT(bsmm_explanation);
    bsmm_matmul_desc any = *desc;
    any.kernel = NULL;
    for (uint32_t i = 0; !bsmm_explain(&any, i, &row); i++)
        if (row.accepts && strcmp(kernel, row.kernel) == 0) return row.k_parts;
    return 1;
}

static cli_level_adder adder_of(const bsmm_matmul_desc *desc, const char *kernel) {
    const bsmm_format formats[2] = {desc->a->format, desc->b->format};
    cli_level_adder adder = {kernel ? find(desc->device, kernel, formats) : NULL, 1};
    if (adder.family && adder.family->k_parts) adder.parts = count_parts(desc, kernel);
    return adder;
}

cli_level_model cli_level_model_of(const bsmm_matmul_desc *desc, const char *kernel) {
    cli_level_model model = {.own = adder_of(desc, kernel)};
    const bench_family_level *family = model.own.family;
    if (!family) return model;
    const bool scaled =
        cli_level_has_floats(desc->a->format) || cli_level_has_floats(desc->b->format);
    model.fallback = adder_of(desc, scaled ? family->scaled_fallback : family->fallback);
    if (model.fallback.family && model.fallback.family->generic) family = model.fallback.family;
    model.generic = adder_of(desc, family->generic);
    return model;
}

/* Chooses the stride between the outputs that are checked, so that the check takes about 2^27
 * multiply-adds. The stride is odd, so that it has no common factor with tile sizes, which are
 * powers of two. The check then covers every lane of a tile. */
static int64_t choose_stride(int64_t outputs, int64_t k) {
    int64_t affordable = ((int64_t)1 << 27) / (k > 0 ? k : 1) + 1;
    return (outputs / affordable + 1) | 1;
}

static cli_level_row row_at(const cli_level_row *of, int64_t row, int64_t k) {
    return (cli_level_row){of->elements + row * k, of->scales ? of->scales + row * k : NULL};
}

/* Results of a product, and the operands from which they were computed. */
typedef struct results {
    const bsmm_matrix *a, *b;
    const cli_level_row *values; /* `values` holds the decoded rows of A and those of B. */
    const float *d;
} results;

/* Holds a comparison of results with the sums of a model. */
typedef struct comparison {
    const bench_family_level *family;
    /* `level` is the error level (cli_level_run), or NAN if too few results have errors. */
    double level;
    /* `alike` counts the results that have the same rounding error as the model's sum, and `unlike`
     * those that have another one. Correctly rounded results are not counted, because a kernel that
     * computes a result again in double also rounds correctly. */
    int64_t alike, unlike;
} comparison;

/* The typical error is the root mean square of relative errors. The function computes it for the
 * results and for the sums of the kernel that `adder` describes, and divides the first by the
 * second. Each family of kernels has a measured value of this quotient (family->level). The error
 * level is the quotient divided by this value. */
static comparison compare(const cli_level_adder *adder, const results *of) {
    enum { LEAST = 128 };
    const bsmm_format formats[2] = {of->a->format, of->b->format};
    const int64_t k = of->a->cols, b_rows = of->b->rows, outputs = of->a->rows * b_rows;
    const cli_level_order order = cli_level_order_of(adder->family, formats, adder->parts, k);
    comparison c = {.family = adder->family, .level = (double)NAN};
    double ours = 0, typical = 0;
    int64_t with_error = 0, with_expected = 0;
    for (int64_t i = 0; i < outputs; i += choose_stride(outputs, k)) {
        const cli_level_row rows[2] = {row_at(&of->values[0], i / b_rows, k),
                                       row_at(&of->values[1], i % b_rows, k)};
        const cli_sums sums = cli_level_sum(&order, rows);
        const double result = (double)of->d[i];
        const double error = (result - sums.exact) / sums.magnitude;
        const double expected = (sums.rounded - sums.exact) / sums.magnitude;
        if (!isfinite(error) || !isfinite(expected)) continue;
        ours += error * error;
        typical += expected * expected;
        with_error += error != 0;
        with_expected += expected != 0;
        if (of->d[i] == (float)sums.exact) continue;
        c.alike += result == sums.rounded;
        c.unlike += result != sums.rounded;
    }
    if (with_error >= LEAST || with_expected >= LEAST)
        c.level = sqrt(ours / typical) / adder->family->level;
    return c;
}

/* Compares results with the model of the kernel that computes products of usual values. This is the
 * kernel itself, or its fallback if the operands do not fit the kernel's packed form. */
static comparison compare_usual(const cli_level_model *model, const results *of) {
    const cli_level_adder *own = &model->own, *fallback = &model->fallback;
    if (!fallback->family) return compare(own, of);
    if (own->family->shifts_e8m0)
        return compare(cli_level_fits_f16(of->b, &of->values[1]) ? own : fallback, of);
    const comparison c = compare(own, of);
    return c.level < CLI_LEVEL_PASSED_ON ? compare(fallback, of) : c;
}

/* The generic kernel may compute the product only if an operand has unusual values. The rounding
 * errors of the results then show which kernel computed them, because they agree with the model of
 * that kernel. If most errors agree with neither model, one of the kernels is defective. The
 * function then returns the larger of the two levels, so that a defect of either kernel is
 * found. */
double cli_level_compare(const cli_level_model *model, const bsmm_matrix *a, const bsmm_matrix *b,
                         const cli_level_row values[2], const float *d) {
    const results of = {a, b, values, d};
    const comparison usual = compare_usual(model, &of);
    if (!usual.family->generic || !model->generic.family) return usual.level;
    if (cli_level_is_moderate(a, &values[0]) && cli_level_is_moderate(b, &values[1]))
        return usual.level;
    const comparison generic = compare(&model->generic, &of);
    if (usual.alike > usual.unlike) return usual.level;
    if (generic.alike > generic.unlike) return generic.level;
    return usual.level > generic.level ? usual.level : generic.level;
}

/* Describes and allocates a matrix of fp32 values. Its data is NULL if there is no memory. */
static bsmm_matrix wide(int64_t rows, int64_t cols) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    m.format.elem = BSMM_ELEM_F32;
    m.rows = rows;
    m.cols = cols;
    m.data = cli_matrix_allocate(&m);
    return m;
}

/* Decodes a matrix to fp32. Returns NULL after printing an error message. */
static float *decode_values(const bsmm_matrix *m) {
    bsmm_matrix to = wide(m->rows, m->cols);
    if (!to.data)
        cli_fail("check: out of memory");
    else if (bsmm_dequantize(m, &to) == BSMM_OK)
        return to.data;
    else
        cli_fail_library("check");
    free(to.data);
    return NULL;
}

/* Returns the fp32 scale of each element of a matrix. To find the scales, the function decodes a
 * matrix with the same scales whose elements are all 1. Returns NULL after printing an error
 * message. */
static float *decode_scales(const bsmm_matrix *m) {
    bsmm_matrix ones = wide(m->rows, m->cols), scaled = *m;
    scaled.global_scale = NULL;
    if (!ones.data) {
        cli_fail("check: out of memory");
        return NULL;
    }
    float *one = ones.data;
    for (int64_t i = 0; i < m->rows * m->cols; i++)
        one[i] = 1;
    scaled.format.elem = ones.format.elem;
    scaled.order = ones.order;
    scaled.ld = ones.ld;
    scaled.data = ones.data;
    scaled.data_bytes = ones.data_bytes;
    float *scales = decode_values(&scaled);
    free(ones.data);
    return scales;
}

/* Decodes the elements of a matrix and ignores all its scales. Returns NULL after printing an error
 * message. */
static float *decode_elements(const bsmm_matrix *m) {
    const bsmm_matrix none = BSMM_INIT(bsmm_matrix);
    bsmm_matrix plain = *m;
    plain.global_scale = NULL;
    plain.format = (bsmm_format){.elem = m->format.elem};
    plain.scales = NULL;
    plain.scale_bytes = 0;
    plain.scale_layout = none.scale_layout;
    plain.scale_tile_rows = plain.scale_tile_cols = 0;
    plain.scale_ld = 0;
    return decode_values(&plain);
}

bool cli_level_decode(const bsmm_matrix *m, cli_level_row *to) {
    bsmm_matrix plain = *m;
    plain.global_scale = NULL;
    *to = (cli_level_row){0};
    if (cli_level_has_floats(m->format) && !(to->scales = decode_scales(m))) return false;
    to->elements = to->scales ? decode_elements(m) : decode_values(&plain);
    if (to->elements) return true;
    cli_level_free(to);
    return false;
}

bool cli_level_fits_f16(const bsmm_matrix *m, const cli_level_row *values) {
    enum { LEAST = -24, MOST = 16, TOP = 3 };
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info) && info.elem != m->format.elem;)
        i++;
    if (m->format.scale != BSMM_SCALE_E8M0) return true;
    float *elements = decode_elements(m);
    int low = 0, high = INT_MIN;
    for (int64_t i = 0; elements && i < m->rows * m->cols; i++) {
        if (elements[i] == 0 || !isfinite(values->elements[i])) continue;
        const int e = ilogb((double)values->elements[i] / (double)elements[i]);
        low = e < low ? e : low;
        high = e > high ? e : high;
    }
    free(elements);
    const int shift = MOST - TOP - (ilogb(info.max) + 1);
    return high <= TOP && low + ilogb(info.min_subnormal) + shift >= LEAST;
}

/* The limits are those of bf16 kernels, which multiply elements without their fp32 scales. In a
 * block with an 8-bit scale, an element between 2^-20 and 2^20 may be the largest or the smallest
 * one that the scale allows, so the scale may allow elements up to 2^32 times smaller or larger.
 * All products of two elements that the scales allow are therefore between 2^-104 and 2^104, where
 * these kernels sum in fp32. */
bool cli_level_is_moderate(const bsmm_matrix *m, const cli_level_row *values) {
    const float least = 0x1p-20f, most = 0x1p20f, least_scale = 0x1p-52f, end_scale = 0x1p32f;
    for (int64_t i = 0; i < m->rows * m->cols; i++) {
        const float element = fabsf(values->elements[i]);
        const float scale = values->scales ? fabsf(values->scales[i]) : 1;
        if (element != 0 && !(element >= least && element <= most)) return false;
        if (scale != 0 && !(scale >= least_scale && scale < end_scale)) return false;
    }
    return true;
}

void cli_level_free(cli_level_row *row) {
    free((void *)(uintptr_t)row->elements);
    free((void *)(uintptr_t)row->scales);
    *row = (cli_level_row){0};
}

typedef struct plain {
    bsmm_matrix a, b, d;
    cli_level_row values[2];
} plain;

static void describe_plain(const bsmm_matmul_desc *desc, const char *kernel, const plain *p,
                           bsmm_matmul_desc *product) {
    *product = BSMM_INIT(bsmm_matmul_desc);
    product->a = &p->a;
    product->b = &p->b;
    product->d = &p->d;
    product->kernel = kernel;
    product->device = desc->device;
    product->compute = desc->compute;
    product->threads = desc->threads;
}

/* Decodes both operands to fp32. Fails if there is too little memory. */
static bool decode(plain *p) {
    if (p->d.data)
        return cli_level_decode(&p->a, &p->values[0]) && cli_level_decode(&p->b, &p->values[1]);
    cli_fail("check: out of memory");
    return false;
}

bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, cli_multiply *multiply,
                   void *context, double *level) {
    *level = (double)NAN;
    if (!cli_level_model_of(desc, kernel).own.family) return true;
    plain p = {.a = *desc->a, .b = *desc->b, .d = wide(desc->a->rows, desc->b->rows)};
    p.a.global_scale = p.b.global_scale = NULL;
    bsmm_matmul_desc product;
    describe_plain(desc, kernel, &p, &product);
    bool done = decode(&p) && multiply(&product, context);
    if (done) {
        const cli_level_model model = cli_level_model_of(&product, kernel);
        if (model.own.family) *level = cli_level_compare(&model, &p.a, &p.b, p.values, p.d.data);
    }
    cli_level_free(&p.values[0]);
    cli_level_free(&p.values[1]);
    free(p.d.data);
    return done;
}

bool cli_level_passes(const char *kernel, double level) {
    if (!(level > CLI_LEVEL_MOST)) return true;
    cli_fail("check: the errors of kernel %s are typically %.3g times as large as when it was "
             "measured; up to %.3g times pass",
             kernel, level, CLI_LEVEL_MOST);
    return false;
}
