#include "level.h"
#include "common.h"
#include "device.h"
#include "files.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_exact_in_bf16(bsmm_format format) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++)
        if (info.elem == format.elem)
            return format.scale != BSMM_SCALE_F32 && info.mantissa_bits <= 7;
    return false;
}

static bool begins(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Finds the kernel's family in the table of measured errors for this kind of device. A family
 * contains the kernels that add in the same order. Returns NULL if the table has no such family. */
static const bench_family_level *find(const char *device, const char *kernel) {
    const bench_family_level *f = bench_device_kind_of(device)->levels;
    for (; f && f->kernel; f++)
        if (begins(kernel, f->kernel) && (!f->device || begins(device, f->device))) return f;
    return NULL;
}

const bench_family_level *cli_level_of(const char *device, const char *kernel,
                                       const bsmm_format formats[2]) {
    const bool exact = is_exact_in_bf16(formats[0]) && is_exact_in_bf16(formats[1]);
    const bench_family_level *family = find(device, kernel);
    return !family || family->level == 0 || (family->exact_in_bf16 && !exact) ? NULL : family;
}

static float add_exactly(const float *a, const float *b, int64_t n, float sum) {
    double part = 0;
    for (int64_t i = 0; i < n; i++)
        part += (double)a[i] * (double)b[i];
    return (float)((double)sum + part);
}

/* Returns the exponent of the leading bit, or INT_MIN for 0. */
static int exponent_of(double x) {
    return x != 0 ? ilogb(x) : INT_MIN;
}

/* Truncates x towards zero to a multiple of 2^least. */
static double truncate_at(double x, int least) {
    return ldexp(trunc(ldexp(x, -least)), least);
}

/* Adds products as a tensor core does. The function truncates all terms to multiples of 2^(e -
 * fraction), where e is the exponent of the largest term, and adds them. It then truncates the sum
 * to `fraction` bits, or to 23 if that is less, after the sum's leading bit. */
static float add_truncated(const float *a, const float *b, int64_t n, float sum, int fraction) {
    int top = exponent_of((double)sum);
    for (int64_t i = 0; i < n; i++) {
        int e = exponent_of((double)a[i] * (double)b[i]);
        top = e > top ? e : top;
    }
    if (top == INT_MIN) return 0;
    double total = truncate_at((double)sum, top - fraction);
    for (int64_t i = 0; i < n; i++)
        total += truncate_at((double)a[i] * (double)b[i], top - fraction);
    if (total == 0 || !isfinite(total)) return (float)total;
    const int kept = fraction < 23 ? fraction : 23;
    return (float)truncate_at(total, exponent_of(total) - kept);
}

/* MOST_UNIT is the largest number of products that one instruction of any kernel adds at once. */
enum { MOST_UNIT = 32 };

/* Holds the factors of the products that one instruction adds. */
typedef struct products {
    float a[MOST_UNIT], b[MOST_UNIT];
    int64_t count;
} products;

/* Collects the `unit` products that one instruction adds. `first` is the number of the
 * instruction's first product. If `run` is 0, the products are adjacent along K. Otherwise K is
 * divided into groups of four runs of `run` elements. An instruction takes a quarter of its
 * products from each run of a group, in ascending order of K. */
static products collect(int64_t first, int64_t unit, int64_t run, const float *a, const float *b,
                        int64_t k) {
    products p = {.count = 0};
    for (int64_t i = 0; i < unit; i++) {
        int64_t at = first + i;
        if (run) {
            const int64_t each = unit / 4, begin = first / (4 * run) * (4 * run);
            at = begin + i / each * run + (first - begin) / unit * each + i % each;
        }
        if (at >= k) continue;
        p.a[p.count] = a[at];
        p.b[p.count++] = b[at];
    }
    return p;
}

/* Returns the sum of one segment of K in the order of the kernel's family, which adds `unit`
 * products at a time. `run` is the length of the runs from which an instruction takes its products,
 * or 0 if they are adjacent (collect). */
static float sum_segment(const bench_family_level *family, int64_t unit, int64_t run,
                         const float *a, const float *b, int64_t k) {
    float sum = 0;
    const int64_t whole = run ? (k + 4 * run - 1) / (4 * run) * (4 * run) : k;
    for (int64_t i = 0; i < whole; i += unit) {
        const products p = collect(i, unit, run, a, b, k);
        sum = family->fraction ? add_truncated(p.a, p.b, p.count, sum, family->fraction)
                               : add_exactly(p.a, p.b, p.count, sum);
    }
    return sum;
}

static int64_t unit_of(const bench_family_level *family, const bsmm_format formats[2]) {
    bool e8m0 = formats[0].scale == BSMM_SCALE_E8M0 && formats[1].scale == BSMM_SCALE_E8M0;
    return family->unit ? family->unit : e8m0 ? 32 : 16;
}

static int64_t gcd(int64_t x, int64_t y) {
    return y ? gcd(y, x % y) : x;
}

/* Returns the number of bits of an element, or 0 for an unknown format. */
static uint32_t bits_of(bsmm_format format) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++)
        if (info.elem == format.elem) return info.bits;
    return 0;
}

/* Divides K into the fewest segments of at most `longest` elements whose lengths are multiples of
 * 128, and returns the length of all segments but the last. */
static int64_t even_segment(int64_t longest, int64_t k) {
    int64_t pieces = (k + 127) / 128, most = longest / 128, count = (pieces + most - 1) / most;
    return count > 1 ? (pieces + count - 1) / count * 128 : k;
}

/* Returns the length of all parts but the last if K is divided into `parts` parts of nearly equal
 * length. Lengths are multiples of 128 elements. */
static int64_t part_of(int64_t parts, int64_t k) {
    const int64_t steps = (k + 127) / 128;
    return (steps + parts - 1) / parts * 128;
}

static int64_t segment_of(const bench_family_level *family, const bsmm_format formats[2],
                          int64_t parts, int64_t k) {
    if (family->k_parts) return part_of(parts, k);
    bool f32 = formats[0].scale == BSMM_SCALE_F32 || formats[1].scale == BSMM_SCALE_F32;
    int64_t segment = family->segment;
    if (!segment) return k;
    if (family->chunk && !f32)
        return even_segment(bits_of(formats[1]) <= 8 ? family->chunk : family->wide_chunk, k);
    for (int i = 0; i < 2 && !family->fraction; i++)
        if (formats[i].scale != BSMM_SCALE_NONE) segment = gcd(segment, formats[i].block_cols);
    return segment;
}

cli_sums cli_level_sum(const bench_family_level *family, const bsmm_format formats[2],
                       int64_t parts, const float *a, const float *b, int64_t k) {
    int64_t unit = unit_of(family, formats), step = segment_of(family, formats, parts, k);
    const int64_t run = !family->spread ? 0 : bits_of(formats[1]) < 8 ? 32 : 16;
    cli_sums sums = {0};
    for (int64_t i = 0; i < k; i += step) {
        int64_t n = k - i < step ? k - i : step;
        double part = (double)sum_segment(family, unit, run, a + i, b + i, n);
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

/* Chooses the stride between the outputs that are checked, so that the check takes about 2^27
 * multiply-adds. The stride is odd, so that it has no common factor with tile sizes, which are
 * powers of two. The check then covers every lane of a tile. */
static int64_t choose_stride(int64_t outputs, int64_t k) {
    int64_t affordable = ((int64_t)1 << 27) / (k > 0 ? k : 1) + 1;
    return (outputs / affordable + 1) | 1;
}

double cli_level_compare(const bench_family_level *family, int64_t parts, const bsmm_matrix *a,
                         const bsmm_matrix *b, const float *a_values, const float *b_values,
                         const float *d) {
    enum { LEAST = 128 };
    const bsmm_format formats[2] = {a->format, b->format};
    double ours = 0, typical = 0;
    int64_t k = a->cols, outputs = a->rows * b->rows, with_error = 0, with_expected = 0;
    for (int64_t i = 0; i < outputs; i += choose_stride(outputs, k)) {
        cli_sums sums = cli_level_sum(family, formats, parts, a_values + i / b->rows * k,
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

/* Describes and allocates a matrix of fp32 values. Its data is NULL if there is no memory. */
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

/* Decodes both operands to fp32. Fails if the memory for the decoded operands could not be
 * allocated. */
static bool decode(plain *p) {
    if (!p->a_values.data || !p->b_values.data || !p->d.data) {
        cli_fail("check: out of memory");
        return false;
    }
    if (bsmm_dequantize(&p->a, &p->a_values) || bsmm_dequantize(&p->b, &p->b_values)) {
        cli_fail_library("check");
        return false;
    }
    return true;
}

int64_t cli_level_parts(const bsmm_matmul_desc *desc) {
    bsmm_explanation row = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(desc, i, &row); i++)
        if (row.accepts && strcmp(desc->kernel, row.kernel) == 0) return row.k_parts;
    return 1;
}

bool cli_level_run(const bsmm_matmul_desc *desc, const char *kernel, cli_multiply *multiply,
                   void *context, double *level) {
    const bsmm_format formats[2] = {desc->a->format, desc->b->format};
    const bench_family_level *family = cli_level_of(desc->device, kernel, formats);
    *level = (double)NAN;
    if (!family) return true;
    int64_t k = desc->a->cols;
    plain p = {.a = *desc->a,
               .b = *desc->b,
               .a_values = wide(desc->a->rows, k),
               .b_values = wide(desc->b->rows, k),
               .d = wide(desc->a->rows, desc->b->rows)};
    p.a.global_scale = p.b.global_scale = NULL;
    bsmm_matmul_desc product;
    describe_plain(desc, kernel, &p, &product);
    bool done = decode(&p) && multiply(&product, context);
    if (done)
        *level = cli_level_compare(family, cli_level_parts(&product), &p.a, &p.b, p.a_values.data,
                                   p.b_values.data, p.d.data);
    free(p.a_values.data);
    free(p.b_values.data);
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
