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

/* Returns the number of bits of an element, or 0 for an unknown format. */
static uint32_t bits_of(bsmm_format format) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++)
        if (info.elem == format.elem) return info.bits;
    return 0;
}

/* Returns true if an entry of the table of measured errors holds for operands of these formats. */
static bool holds_for(const bench_family_level *f, const bsmm_format formats[2]) {
    return !f->scaled_bytes || (bits_of(formats[0]) <= 8 && formats[1].scale == BSMM_SCALE_E8M0);
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

const bench_family_level *cli_level_of(const char *device, const char *kernel,
                                       const bsmm_format formats[2]) {
    const bool exact = is_exact_in_bf16(formats[0]) && is_exact_in_bf16(formats[1]);
    const bench_family_level *family = find(device, kernel, formats);
    return !family || family->level == 0 || (family->exact_in_bf16 && !exact) ? NULL : family;
}

static float add_exactly(const float *a, const float *b, int64_t n, float sum) {
    double part = 0;
    for (int64_t i = 0; i < n; i++)
        part += (double)a[i] * (double)b[i];
    return (float)((double)sum + part);
}

/* Returns the exponent of x's leading bit, or INT_MIN if x is 0. */
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

/* Holds the factors of the products that one instruction adds. `a` and `b` point to the rows
 * themselves, or to `room` if the factors are not adjacent. */
typedef struct products {
    const float *a, *b;
    int64_t count;
    float room[2][MOST_UNIT];
} products;

/* Collects the `unit` products that one instruction adds. `first` is the number of the
 * instruction's first product. If `run` is 0, the products are adjacent along K. Otherwise K is
 * divided into groups of four runs of `run` elements. An instruction takes a quarter of its
 * products from each run of a group, in ascending order of K. */
static void collect(products *p, int64_t first, int64_t unit, int64_t run, const float *a,
                    const float *b, int64_t k) {
    p->a = a + first;
    p->b = b + first;
    p->count = k - first < unit ? k - first : unit;
    if (!run) return;
    const int64_t each = unit / 4, begin = first / (4 * run) * (4 * run);
    const int64_t place = begin + (first - begin) / unit * each;
    p->a = p->room[0];
    p->b = p->room[1];
    p->count = 0;
    for (int64_t i = 0; i < unit; i++) {
        const int64_t at = place + i / each * run + i % each;
        if (at >= k) continue;
        p->room[0][p->count] = a[at];
        p->room[1][p->count++] = b[at];
    }
}

/* Returns the leading 8 bits of an f16 number, without rounding. bf16 holds them exactly, and also
 * the rest of the number. */
static double leading_bits(float x) {
    return x != 0 ? truncate_at((double)x, exponent_of((double)x) - 7) : 0;
}

/* Adds products to a sum and rounds after each of them. If `split` is true, elements of A are split
 * into two bf16 numbers, and products of the leading bits are added before those of the rests. */
static float add_one_by_one(const products *p, bool split, float sum) {
    for (int64_t i = 0; i < p->count; i++) {
        const double x = split ? leading_bits(p->a[i]) : (double)p->a[i];
        sum = (float)((double)sum + x * (double)p->b[i]);
    }
    for (int64_t i = 0; split && i < p->count; i++) {
        const double rest = (double)p->a[i] - leading_bits(p->a[i]);
        sum = (float)((double)sum + rest * (double)p->b[i]);
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

static bool is_float_scaled(bsmm_format format) {
    return format.scale == BSMM_SCALE_F32;
}

/* Returns the length of the segments into which a kernel divides each part of K. A segment ends
 * where an fp32 scale changes. */
static int64_t segment_of(const bench_family_level *family, const bsmm_format formats[2],
                          int64_t k) {
    if (family->chunk && !is_float_scaled(formats[0]) && !is_float_scaled(formats[1]))
        return even_segment(bits_of(formats[1]) <= 8 ? family->chunk : family->wide_chunk, k);
    int64_t segment = family->segment;
    for (int i = 0; i < 2; i++) {
        const bool changes = is_float_scaled(formats[i]) && formats[i].block_cols < k;
        if (changes || (family->ends_at_scales && formats[i].scale != BSMM_SCALE_NONE))
            segment = gcd(segment, formats[i].block_cols);
    }
    return segment ? segment : k;
}

/* Describes the order in which a kernel adds the products of two rows. Parts of K contain segments,
 * and segments contain blocks (family_level.h). */
typedef struct order {
    const bench_family_level *family;
    int64_t part, segment, block, unit, run;
    bool split;
} order;

/* Returns the length of the runs from which an instruction takes its products, or 0 if they are
 * adjacent (collect). */
static int64_t run_of(const bench_family_level *family, const bsmm_format formats[2]) {
    if (!family->spread || family->run) return family->run;
    return bits_of(formats[1]) < 8 ? 32 : 16;
}

static order order_of(const bench_family_level *family, const bsmm_format formats[2], int64_t parts,
                      int64_t k) {
    return (order){
        .family = family,
        .part = family->k_parts ? part_of(parts, k) : k,
        .segment = segment_of(family, formats, k),
        .block = family->block,
        .split = family->splits_f16 && formats[0].elem == BSMM_ELEM_F16,
        .unit = unit_of(family, formats),
        .run = run_of(family, formats),
    };
}

/* Rounds a total as the kernel does. */
static double round_total(const order *o, double total) {
    return o->family->total_in_double ? total : (double)(float)total;
}

/* Returns the sum of one block, in the order of the kernel's family. A block is a part of a segment
 * (range of K) whose products are summed separately. */
static float sum_block(const order *o, const float *a, const float *b, int64_t k) {
    const int fraction = o->family->fraction;
    const int64_t whole = o->run ? (k + 4 * o->run - 1) / (4 * o->run) * (4 * o->run) : k;
    float sum = 0;
    products p; /* The array in `p` is large, so it is neither copied nor set to 0. */
    for (int64_t i = 0; i < whole; i += o->unit) {
        collect(&p, i, o->unit, o->run, a, b, k);
        if (o->family->rounds_each)
            sum = add_one_by_one(&p, o->split, sum);
        else
            sum = fraction ? add_truncated(p.a, p.b, p.count, sum, fraction)
                           : add_exactly(p.a, p.b, p.count, sum);
    }
    return sum;
}

/* Returns the sum of one segment, i.e. of a range of K in which the fp32 scales do not change. The
 * products of elements are added without these scales. */
static float sum_segment(const order *o, const float *a, const float *b, int64_t k) {
    const int64_t block = o->block ? o->block : k;
    float sum = 0;
    for (int64_t i = 0; i < k; i += block)
        sum += sum_block(o, a + i, b + i, k - i < block ? k - i : block);
    return sum;
}

static double scale_at(const cli_level_row *row, int64_t i) {
    return row->scales ? (double)row->scales[i] : 1;
}

/* Multiplies the sum of a segment (a range of K) by the fp32 scales of A and B. The result of the
 * second multiplication is not rounded, because the kernel multiplies and adds to the total in one
 * FMA. */
static double scale_sum(const order *o, float sum, double a, double b) {
    if (o->family->a_scale_first) return round_total(o, (double)sum * a) * b;
    return (double)sum * round_total(o, a * b);
}

/* Returns the sum of the products [begin, end) of K, which are one part of K. */
static double sum_part(const order *o, const cli_level_row rows[2], int64_t begin, int64_t end) {
    double total = 0;
    for (int64_t i = begin; i < end; i += o->segment) {
        const int64_t n = end - i < o->segment ? end - i : o->segment;
        const float sum = sum_segment(o, rows[0].elements + i, rows[1].elements + i, n);
        total =
            round_total(o, total + scale_sum(o, sum, scale_at(&rows[0], i), scale_at(&rows[1], i)));
    }
    return total;
}

cli_sums cli_level_sum(const bench_family_level *family, const bsmm_format formats[2],
                       int64_t parts, const cli_level_row rows[2], int64_t k) {
    const order o = order_of(family, formats, parts, k);
    cli_sums sums = {0};
    for (int64_t i = 0; i < k; i += o.part)
        sums.rounded =
            round_total(&o, sums.rounded + sum_part(&o, rows, i, k - i < o.part ? k : i + o.part));
    sums.rounded = (double)(float)sums.rounded;
    for (int64_t i = 0; i < k; i++) {
        const double scale = scale_at(&rows[0], i) * scale_at(&rows[1], i);
        const double product = (double)rows[0].elements[i] * (double)rows[1].elements[i] * scale;
        sums.exact += product;
        sums.magnitude += fabs(product);
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

static cli_level_row row_at(const cli_level_row *of, int64_t row, int64_t k) {
    return (cli_level_row){of->elements + row * k, of->scales ? of->scales + row * k : NULL};
}

double cli_level_compare(const bench_family_level *family, int64_t parts, const bsmm_matrix *a,
                         const bsmm_matrix *b, const cli_level_row values[2], const float *d) {
    enum { LEAST = 128 };
    const bsmm_format formats[2] = {a->format, b->format};
    double ours = 0, typical = 0;
    int64_t k = a->cols, outputs = a->rows * b->rows, with_error = 0, with_expected = 0;
    for (int64_t i = 0; i < outputs; i += choose_stride(outputs, k)) {
        const cli_level_row rows[2] = {row_at(&values[0], i / b->rows, k),
                                       row_at(&values[1], i % b->rows, k)};
        cli_sums sums = cli_level_sum(family, formats, parts, rows, k);
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

bool cli_level_decode(const bsmm_matrix *m, cli_level_row *to) {
    bsmm_matrix plain = *m;
    float *scales = NULL;
    plain.global_scale = NULL;
    *to = (cli_level_row){0};
    if (is_float_scaled(m->format)) {
        const bsmm_matrix none = BSMM_INIT(bsmm_matrix);
        plain.format = (bsmm_format){.elem = m->format.elem};
        plain.scales = NULL;
        plain.scale_bytes = 0;
        plain.scale_layout = none.scale_layout;
        plain.scale_tile_rows = plain.scale_tile_cols = 0;
        plain.scale_ld = 0;
        if (!(scales = decode_scales(m))) return false;
    }
    *to = (cli_level_row){decode_values(&plain), scales};
    if (to->elements) return true;
    cli_level_free(to);
    return false;
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
    plain p = {.a = *desc->a, .b = *desc->b, .d = wide(desc->a->rows, desc->b->rows)};
    p.a.global_scale = p.b.global_scale = NULL;
    bsmm_matmul_desc product;
    describe_plain(desc, kernel, &p, &product);
    bool done = decode(&p) && multiply(&product, context);
    if (done)
        *level =
            cli_level_compare(family, cli_level_parts(&product), &p.a, &p.b, p.values, p.d.data);
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
