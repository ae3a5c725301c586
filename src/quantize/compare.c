/* Computes the error of a quantized matrix against the original values. */
#include "quantize/recipe.h"

#include "base/threads.h"

#include <math.h>
#include <stdlib.h>

enum { RUN = 256 };

/* Returns the largest magnitude that an element can have in the block that contains element (r, c).
 * It is NaN if the scale of the block is NaN. */
static double block_limit(const bsmm_operand *q, int64_t r, int64_t c) {
    const bsmm_format *f = &q->m.format;
    double limit = bsmm_elem_row(f->elem)->max;
    if (f->scale != BSMM_SCALE_NONE)
        limit *= bsmm_scale_load(f->scale, q->m.scales,
                                 bsmm_scale_map_at(&q->map, r / f->block_rows, c / f->block_cols));
    double level = q->m.global_scale ? (double)*q->m.global_scale : 1;
    /* A value counts as clipped if it is above the limit, i.e. the largest magnitude that the block
     * can hold. The limit must therefore be computed like the decoded values. If the second-level
     * scale is stored as a divisor, decoding divides by it, so the limit is divided too.
     * Multiplying by the rounded reciprocal could make the limit smaller than the largest decoded
     * value of the block, which would then count as clipped. */
    return fabs(q->m.global_kind == BSMM_GLOBAL_DIVISOR ? limit / level : limit * level);
}

/* Returns the larger of two numbers. NaN counts as larger than any number, so that an error of NaN
 * is reported. */
static double larger(double a, double b) {
    return a >= b || isnan(a) ? a : b;
}

static void add_value(bsmm_report_line *line, double x, double q, double limit) {
    double error = fabs(x - q);
    line->signal += x * x;
    line->noise += error * error;
    line->max_error = larger(line->max_error, error);
    line->clipped += fabs(x) > limit;
    line->underflowed += x != 0 && q == 0;
}

/* Adds the errors of columns [c, c + n) of row r to the sums of the row. All n elements must lie in
 * the same block of `quantized`. */
static void add_run(bsmm_report_line *line, const bsmm_operand *src, const bsmm_operand *quantized,
                    int64_t r, int64_t c, int64_t n) {
    double x[RUN], q[RUN], limit = block_limit(quantized, r, c);
    bsmm_values_decode(src, r, c, n, x);
    bsmm_values_decode(quantized, r, c, n, q);
    for (int64_t i = 0; i < n; i++)
        add_value(line, x[i], q[i], limit);
}

static bsmm_report_line report_row(const bsmm_operand *src, const bsmm_operand *quantized,
                                   int64_t r) {
    bsmm_report_line line = {0};
    uint32_t block_cols = quantized->m.format.block_cols;
    int64_t block = block_cols ? block_cols : RUN;
    for (int64_t c = 0, n; c < src->m.cols; c += n) {
        n = bsmm_min_i64(bsmm_min_i64(RUN, block - c % block), src->m.cols - c);
        add_run(&line, src, quantized, r, c, n);
    }
    return line;
}

static double share(int64_t part, int64_t count) {
    return count ? (double)part / (double)count : 0;
}

static bsmm_quantize_report add_up(const bsmm_report_line *lines, int64_t rows, int64_t cols) {
    bsmm_report_line sum = {0};
    for (int64_t r = 0; r < rows; r++) {
        sum.signal += lines[r].signal;
        sum.noise += lines[r].noise;
        sum.max_error = larger(sum.max_error, lines[r].max_error);
        sum.clipped += lines[r].clipped;
        sum.underflowed += lines[r].underflowed;
    }
    int64_t count = rows * cols;
    return (bsmm_quantize_report){
        .sqnr_db = sum.noise == 0 ? INFINITY : 10 * log10(sum.signal / sum.noise),
        .max_error = sum.max_error,
        .clipped = share(sum.clipped, count),
        .underflowed = share(sum.underflowed, count),
        .signal = sum.signal,
        .noise = sum.noise,
        .count = count,
    };
}

typedef struct report_run {
    const bsmm_operand *src, *quantized;
    bsmm_report_line *lines;
} report_run;

static void report_rows(const void *context, int64_t first, int64_t end, int worker) {
    const report_run *x = context;
    (void)worker;
    for (int64_t r = first; r < end; r++)
        x->lines[r] = report_row(x->src, x->quantized, r);
}

bsmm_status bsmm_report_make(const bsmm_operand *src, const bsmm_operand *quantized,
                             const bsmm_place *place, bsmm_report_line *lines,
                             bsmm_quantize_report *report) {
    const report_run x = {src, quantized, lines};
    const bsmm_loop loop = {
        .threads = place->threads, .count = src->m.rows, .body = report_rows, .context = &x};
    BSMM_TRY(bsmm_loop_run(&loop, &place->pool));
    *report = add_up(lines, src->m.rows, src->m.cols);
    return BSMM_OK;
}

bsmm_status bsmm_compare_on(const bsmm_exec *exec, const bsmm_matrix *src,
                            const bsmm_matrix *quantized, bsmm_quantize_report *report) {
    bsmm_place place;
    bsmm_operand from, other;
    BSMM_TRY(bsmm_place_take(exec, &place));
    BSMM_TRY(bsmm_check_host(&place, "comparison"));
    BSMM_TRY(bsmm_operand_take(src, "src", &from));
    BSMM_TRY(bsmm_operand_take(quantized, "quantized", &other));
    BSMM_TRY(bsmm_check_shape(&from, &other));
    BSMM_TRY(bsmm_operand_check_memory(&from, "src"));
    BSMM_TRY(bsmm_operand_check_memory(&other, "quantized"));
    bsmm_report_line *lines = calloc((size_t)from.m.rows + 1, sizeof *lines);
    if (!lines)
        return bsmm_fail(BSMM_E_MEMORY,
                         "src.rows: value is %lld; out of memory for one record per row",
                         (long long)from.m.rows);
    bsmm_quantize_report result;
    bsmm_status status = bsmm_report_make(&from, &other, &place, lines, &result);
    free(lines);
    BSMM_TRY(status);
    return bsmm_give_struct(report, &result, sizeof result, "report");
}

bsmm_status bsmm_compare(const bsmm_matrix *src, const bsmm_matrix *quantized,
                         bsmm_quantize_report *report) {
    return bsmm_compare_on(NULL, src, quantized, report);
}
