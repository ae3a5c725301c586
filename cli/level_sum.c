#include "level_sum.h"
#include <math.h>
#include <string.h>

/* MOST_UNIT is the largest number of products that one instruction of any kernel adds at once. */
enum { MOST_UNIT = 32 };

/* NO_EXPONENT is the exponent of 0. It is far below those of all products of fp32 numbers. */
enum { NO_EXPONENT = -4000 };

/* Holds the numbers that one instruction multiplies: a[i] of A by b[i] of B, for `count` indices i.
 * `a` and `b` point to `copies` or to rows of operands. */
typedef struct products {
    const float *a, *b;
    int64_t count;
    float copies[2][MOST_UNIT];
} products;

/* If each element is split into several bf16 numbers, a kernel multiplies pairs of these numbers,
 * one from an element of A and one from an element of B. of[0] says which number of A's element is
 * in the pair, and of[1] which number of B's. Number 0 has the largest magnitude. */
typedef struct pair {
    int of[2];
} pair;

static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static float add_exactly(const products *p, float sum) {
    double part = 0;
    for (int64_t i = 0; i < p->count; i++)
        part += (double)p->a[i] * (double)p->b[i];
    return (float)((double)sum + part);
}

/* Returns the exponent of the leading bit of x, which is 0 or a normal number. */
static int exponent_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != 0 ? (int)(bits >> 52 & 2047) - 1023 : NO_EXPONENT;
}

/* Returns 2^e. The result must be a normal number. */
static double power(int e) {
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adds products and `sum` as a tensor core does. Let e be the largest exponent of a term, where the
 * exponent of a product is the sum of the exponents of its factors. The function truncates all
 * terms to multiples of 2^(e - fraction), and adds them exactly. It then truncates the total after
 * its leading bit: to `fraction` further bits, or to 23 if that is less. */
static float add_truncated(const products *p, float sum, int fraction) {
    int top = exponent_of((double)sum);
    for (int64_t i = 0; i < p->count; i++) {
        const int e = exponent_of((double)p->a[i]) + exponent_of((double)p->b[i]);
        top = e > top ? e : top;
    }
    if (top < NO_EXPONENT / 2) return 0;
    if (top > 256) return NAN; /* A term is Inf or NaN. */
    const double scale = power(fraction - top);
    double total = trunc((double)sum * scale);
    for (int64_t i = 0; i < p->count; i++)
        total += trunc((double)p->a[i] * (double)p->b[i] * scale);
    if (total == 0) return 0;
    const int cut = exponent_of(total) - (fraction < 23 ? fraction : 23);
    if (cut > 0) total = trunc(total * power(-cut)) * power(cut);
    return (float)(total * power(top - fraction));
}

/* Returns the leading 8 bits of a number, without rounding. bf16 holds these 8 bits exactly. If the
 * number was f16, bf16 also holds the remaining bits exactly. */
static float leading_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns number `which` of the `count` bf16 numbers whose sum is x. Number 0 is the largest. */
static float take_bf16(float x, int count, int which) {
    float taken = x;
    for (int i = 0; i <= which && count > 1; i++) {
        taken = leading_bits(x);
        x -= taken;
    }
    return taken;
}

static float factor_at(const cli_level_order *o, const cli_level_row rows[2], int side, int64_t i,
                       pair which) {
    const cli_level_row *row = &rows[side];
    const float scale = o->by_elements && row->scales ? row->scales[i] : 1;
    return take_bf16(row->elements[i] * scale, o->bf16_parts[side], which.of[side]);
}

/* Collects the order->unit products that one instruction adds: products number first, first + 1 and
 * so on in the kernel's order of additions. If order->run is 0, product number i multiplies the
 * elements of A and B with index begin + i along K. Otherwise it multiplies those with index begin
 * + order->places[i]. Products of elements with index `end` or more are left out. */
static void collect(const cli_level_order *o, const cli_level_row rows[2], pair which,
                    int64_t first, int64_t begin, int64_t end, products *to) {
    to->a = to->copies[0];
    to->b = to->copies[1];
    to->count = 0;
    for (int64_t i = first; i < first + o->unit; i++) {
        const int64_t at = begin + (o->run ? o->places[i] : i);
        if (at >= end) continue;
        to->copies[0][to->count] = factor_at(o, rows, 0, at, which);
        to->copies[1][to->count++] = factor_at(o, rows, 1, at, which);
    }
}

/* Returns true if the kernel multiplies elements as they are, i.e. if they are not split into bf16
 * numbers and not multiplied by scales first, and if one instruction multiplies adjacent elements
 * of K. */
static bool is_plain(const cli_level_order *o) {
    return !o->run && !o->by_elements && o->bf16_parts[0] * o->bf16_parts[1] == 1;
}

/* Adds the products of one instruction to a sum, and rounds the sum to fp32 after each addition. If
 * `split` is true, each element of A is first split into two bf16 numbers: its leading bits and the
 * rest. The function then adds the products of all leading bits, and after them the products of all
 * rests. */
static float add_one_by_one(const products *p, bool split, float sum) {
    for (int64_t i = 0; i < p->count; i++) {
        const float x = split ? leading_bits(p->a[i]) : p->a[i];
        sum = (float)((double)sum + (double)x * (double)p->b[i]);
    }
    for (int64_t i = 0; split && i < p->count; i++) {
        const float rest = p->a[i] - leading_bits(p->a[i]);
        sum = (float)((double)sum + (double)rest * (double)p->b[i]);
    }
    return sum;
}

static float add_unit(const cli_level_order *o, const products *p, float sum) {
    if (o->family->rounds_each) return add_one_by_one(p, o->splits_f16, sum);
    return o->family->fraction ? add_truncated(p, sum, o->family->fraction) : add_exactly(p, sum);
}

/* Adds the products of the elements [begin, end) along K to a sum, in the order of the kernel's
 * instructions. */
static float add_products(const cli_level_order *o, const cli_level_row rows[2], pair which,
                          int64_t begin, int64_t end, float sum) {
    const int64_t all = o->run ? o->runs * o->run : o->unit;
    const bool plain = is_plain(o);
    products p;
    for (int64_t k = begin; k < end; k += all)
        for (int64_t i = 0; i < all; i += o->unit) {
            if (plain) {
                p.a = rows[0].elements + k;
                p.b = rows[1].elements + k;
                p.count = least(o->unit, end - k);
            } else {
                collect(o, rows, which, i, k, end, &p);
            }
            sum = add_unit(o, &p, sum);
        }
    return sum;
}

/* Rounds a total as the kernel does. */
static double round_total(const cli_level_order *o, double total) {
    return o->family->total_in_double ? total : (double)(float)total;
}

static double scale_at(const cli_level_row *row, int64_t i) {
    return row->scales ? (double)row->scales[i] : 1;
}

/* Multiplies a sum by the fp32 scales of A and B at index `at` along K. The result is a double that
 * is not rounded: the kernel makes the last multiplication and the addition to its total by one
 * FMA, which rounds only once. */
static double multiply_by_scales(const cli_level_order *o, const cli_level_row rows[2], int64_t at,
                                 double sum) {
    const double a = scale_at(&rows[0], at), b = scale_at(&rows[1], at);
    if (o->family->a_scale_first) return round_total(o, sum * a) * b;
    return sum * round_total(o, a * b);
}

/* A segment is a range of K in which the fp32 scales do not change. Multiplies the sum of a segment
 * by the fp32 scales of A and B at index `at` along K. It returns the sum unchanged if the kernel
 * multiplies elements or the complete sum by these scales. */
static double scale_sum(const cli_level_order *o, const cli_level_row rows[2], int64_t at,
                        double sum) {
    if (o->by_elements || o->scales_last) return sum;
    return multiply_by_scales(o, rows, at, sum);
}

/* Returns the sum of one segment, i.e. of a range of K in which the fp32 scales do not change. The
 * products of elements are added without these scales. */
static float sum_segment(const cli_level_order *o, const cli_level_row rows[2], pair which,
                         int64_t begin, int64_t end) {
    float sum = 0;
    for (int64_t i = begin; i < end; i += o->block)
        sum += add_products(o, rows, which, i, least(i + o->block, end), 0);
    return sum;
}

/* Returns the sum of the products of one part of K, i.e. of the elements [begin, end) along K. */
static double sum_part(const cli_level_order *o, const cli_level_row rows[2], pair which,
                       int64_t begin, int64_t end) {
    double total = 0;
    for (int64_t i = begin; i < end; i += o->segment) {
        const float sum = sum_segment(o, rows, which, i, least(i + o->segment, end));
        total = round_total(o, total + scale_sum(o, rows, i, (double)sum));
    }
    return total;
}

/* Returns the sum of one part of K if the accumulators hold the sum divided by the scale of the
 * current segment (bench_family_level.divides). */
static double sum_part_divided(const cli_level_order *o, const cli_level_row rows[2], pair which,
                               int64_t begin, int64_t end) {
    float sum = 0;
    double last = 1;
    for (int64_t i = begin; i < end; i += o->segment) {
        const double scale = scale_at(&rows[0], i) * scale_at(&rows[1], i);
        if (scale == 0) continue; /* A segment with a scale of 0 adds nothing. */
        if (i > begin) sum *= (float)(last / scale);
        sum = add_products(o, rows, which, i, least(i + o->segment, end), sum);
        last = scale;
    }
    return (double)sum * last;
}

/* Returns the sum of all products of a row of A and a row of B, rounded as the kernel rounds. An
 * element of A may be split into several bf16 numbers. The function then makes one sum over K with
 * the first bf16 number of each element, one with the second and so on, and adds these sums at the
 * end. */
static double sum_segments(const cli_level_order *o, const cli_level_row rows[2]) {
    double total = 0;
    for (int n = 0; n < o->bf16_parts[0]; n++) {
        const pair which = {{n, 0}};
        double sum = 0;
        for (int64_t i = 0; i < o->k; i += o->part) {
            const int64_t end = least(i + o->part, o->k);
            const double part = o->family->divides ? sum_part_divided(o, rows, which, i, end)
                                                   : sum_part(o, rows, which, i, end);
            sum = round_total(o, sum + part);
        }
        total = round_total(o, total + sum);
    }
    return o->scales_last ? multiply_by_scales(o, rows, 0, total) : total;
}

/* An element of A or B may be the sum of several bf16 numbers. A k block multiplies one of the
 * numbers of A's elements by one of the numbers of B's elements, over CLI_LEVEL_K_BLOCK elements of
 * K. For the same elements of K there is one k block for each such pair of numbers. In their order,
 * the number of A changes first. Returns the sum of the k blocks [begin, end). */
static double sum_k_blocks(const cli_level_order *o, const cli_level_row rows[2], int64_t begin,
                           int64_t end) {
    const int64_t pairs = (int64_t)o->bf16_parts[0] * o->bf16_parts[1];
    float sum = 0;
    double total = 0;
    for (int64_t n = begin; n < end; n++) {
        const int64_t number = n % pairs, at = n / pairs * CLI_LEVEL_K_BLOCK;
        const pair which = {{(int)(number % o->bf16_parts[0]), (int)(number / o->bf16_parts[0])}};
        sum = add_products(o, rows, which, at, least(at + CLI_LEVEL_K_BLOCK, o->k), sum);
        if (!o->promoted || ((n + 1) % o->promoted && n + 1 < end)) continue;
        total = round_total(o, total + scale_sum(o, rows, at, (double)sum));
        sum = 0;
    }
    return o->promoted ? total : (double)sum;
}

/* Adds the parts of K as Hopper's kernels for many rows do, i.e. from the last one to the first. */
static double sum_parts_of_k_blocks(const cli_level_order *o, const cli_level_row rows[2]) {
    const int64_t pairs = (int64_t)o->bf16_parts[0] * o->bf16_parts[1];
    const int64_t blocks = (o->k + CLI_LEVEL_K_BLOCK - 1) / CLI_LEVEL_K_BLOCK * pairs;
    double total = 0;
    for (int64_t i = o->parts - 1; i >= 0; i--)
        total = round_total(
            o, total + sum_k_blocks(o, rows, i * blocks / o->parts, (i + 1) * blocks / o->parts));
    return o->promoted ? total : scale_sum(o, rows, 0, total);
}

/* Adds products as the generic GEMM does. If elements are sums of several bf16 numbers, the
 * products of the leading (largest) numbers of A and B have an accumulator of their own. The
 * products of other pairs of numbers are added to a second accumulator, or to the same one for
 * kernels for which the field `joins` says so. Pairs whose product is far below an ulp are left
 * out. */
static double sum_steps(const cli_level_order *o, const cli_level_row rows[2]) {
    const int a_parts = o->bf16_parts[0], b_parts = o->bf16_parts[1];
    const int others = o->family->joins && a_parts + b_parts > 4 ? 0 : 1;
    float sums[2] = {0, 0};
    for (int64_t k = 0; k < o->k; k += CLI_LEVEL_STEP)
        for (int j = 0; j < b_parts; j++)
            for (int i = 0; i < a_parts && i + j <= 2; i++) {
                float *const sum = &sums[i + j ? others : 0];
                *sum =
                    add_products(o, rows, (pair){{i, j}}, k, least(k + CLI_LEVEL_STEP, o->k), *sum);
            }
    return (double)(sums[0] + sums[1]);
}

static double sum_rounded(const cli_level_order *o, const cli_level_row rows[2]) {
    if (o->family->way == BENCH_IN_K_BLOCKS) return sum_parts_of_k_blocks(o, rows);
    if (o->bf16_parts[0] * o->bf16_parts[1] > 1 && o->family->way == BENCH_IN_STEPS)
        return sum_steps(o, rows);
    return sum_segments(o, rows);
}

cli_sums cli_level_sum(const cli_level_order *o, const cli_level_row rows[2]) {
    cli_sums sums = {.rounded = (double)(float)sum_rounded(o, rows)};
    for (int64_t i = 0; i < o->k; i++) {
        const double scale = scale_at(&rows[0], i) * scale_at(&rows[1], i);
        const double product = (double)rows[0].elements[i] * (double)rows[1].elements[i] * scale;
        sums.exact += product;
        sums.magnitude += fabs(product);
    }
    return sums;
}
