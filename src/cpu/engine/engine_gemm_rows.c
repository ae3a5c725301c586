/* Runs the epilogue row by row. If the values of a row of A and of a row of B differ so much in
 * magnitude that fp32 sums of their products may be wrong, the two rows are a wide pair
 * (engine_gemm.h). The result of a wide pair is summed again in double from the operands
 * themselves. */
#include "cpu/engine/engine_gemm.h"

#include <math.h>
#include <string.h>

enum { EXACT_RUN = 128, EXACT_COLUMNS = 8 };

/* Compilers turn arithmetic on this vector type into vector instructions even if they optimize
 * little. In a build with sanitizers, which check every load, a vector is one load. */
typedef double pair_of_doubles __attribute__((vector_size(2 * sizeof(double))));

static pair_of_doubles load_pair(const double *from) {
    pair_of_doubles pair;
    memcpy(&pair, from, sizeof pair);
    return pair;
}

/* Adds n products to each of EXACT_COLUMNS sums in double, in ascending order of K. `a` holds n
 * elements of a row of A, and b[c] holds the same range of K of a row of B. sums[c] is the sum for
 * that row of B. The sums do not depend on each other, so several additions are in flight at once.
 */
static void add_products(const double *a, const double b[EXACT_COLUMNS][EXACT_RUN], int64_t n,
                         double *sums) {
    pair_of_doubles totals[EXACT_COLUMNS / 2];
    memcpy(totals, sums, sizeof totals);
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
        const pair_of_doubles left = load_pair(a + i);
        for (int c = 0; c < EXACT_COLUMNS; c += 2) {
            const pair_of_doubles x = left * load_pair(b[c] + i),
                                  y = left * load_pair(b[c + 1] + i);
            totals[c / 2] += (pair_of_doubles){x[0], y[0]};
            totals[c / 2] += (pair_of_doubles){x[1], y[1]};
        }
    }
    memcpy(sums, totals, sizeof totals);
    for (; i < n; i++)
        for (int c = 0; c < EXACT_COLUMNS; c++)
            sums[c] += a[i] * b[c][i];
}

/* Computes results of row r of A and `count` rows of B, whose numbers are in `columns`, and stores
 * them to `sums`. The function decodes the operands, multiplies each element by its scales, and
 * sums in double. It is slow. It is therefore called only for wide pairs, i.e. pairs of rows whose
 * fp32 sums may be wrong (engine_gemm.h). */
static void sum_exactly(const bsmm_product *p, int64_t r, const int64_t *columns, int count,
                        double *sums) {
    double a[EXACT_RUN], b[EXACT_COLUMNS][EXACT_RUN] = {0};
    for (int c = 0; c < EXACT_COLUMNS; c++)
        sums[c] = 0;
    for (int64_t k = 0; k < p->a.m.cols; k += EXACT_RUN) {
        int64_t n = bsmm_min_i64(EXACT_RUN, p->a.m.cols - k);
        bsmm_operand_decode_row(&p->a, r, k, n, a);
        for (int c = 0; c < count; c++)
            bsmm_operand_decode_row(&p->b, columns[c], k, n, b[c]);
        add_products(a, (const double(*)[EXACT_RUN])b, n, sums);
    }
}

int bsmm_gemm_widest(const uint8_t *wide, int64_t n) {
    uint8_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = wide[i] > most ? wide[i] : most;
    return most;
}

static void replace_wide(const bsmm_product *p, const bsmm_gemm_row *row, double *values) {
    for (int64_t i = 0; i < row->cols;) {
        int64_t columns[EXACT_COLUMNS];
        double sums[EXACT_COLUMNS];
        int count = 0;
        for (; i < row->cols && count < EXACT_COLUMNS; i++)
            if (row->wide + row->column_wide[i] > row->wide_limit) columns[count++] = row->col + i;
        if (count) sum_exactly(p, row->r, columns, count, sums);
        for (int c = 0; c < count; c++)
            values[columns[c] - row->col] = sums[c];
    }
}

/* Replaces every NaN by the same NaN, because the bits of a NaN would otherwise depend on the
 * compiler. If an instruction has several NaN operands, it returns the first one, and the compiler
 * chooses the order of the operands. */
static void make_nan_one(int64_t cols, double *values) {
    for (int64_t i = 0; i < cols; i++)
        values[i] = values[i] == values[i] ? values[i] : (double)NAN;
}

static bool has_wide(const bsmm_gemm_row *row) {
    return row->wide + bsmm_gemm_widest(row->column_wide, row->cols) > row->wide_limit;
}

void bsmm_gemm_sum_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values) {
    bsmm_cpu_epilogue_scale(row->acc, row->factor, row->column_factors, row->cols, values);
    if (has_wide(row)) replace_wide(p, row, values);
    bsmm_cpu_epilogue_add(p, row->r, row->col, row->cols, values);
}

bsmm_gemm_columns bsmm_gemm_columns_of_d(const bsmm_product *p, int64_t col, int64_t cols) {
    if (!bsmm_is_gated(p)) return (bsmm_gemm_columns){col, cols};
    if (p->epilogue->interleaved) return (bsmm_gemm_columns){col / 2, cols / 2};
    return (bsmm_gemm_columns){col - p->d.m.cols, cols};
}

void bsmm_gemm_apply_epilogue(const bsmm_product *p, const bsmm_gemm_row *row, double *values) {
    bsmm_gemm_columns d = bsmm_gemm_columns_of_d(p, row->col, row->cols);
    bsmm_gemm_sum_row(p, row, values);
    if (row->gates)
        bsmm_cpu_epilogue_gate(p, row->gates, values, 1, d.cols, values);
    else if (bsmm_is_gated(p))
        bsmm_cpu_epilogue_gate(p, values, values + 1, 2, d.cols, values);
    if (p->epilogue) bsmm_cpu_epilogue_apply(p, row->r, d.col, d.cols, values);
    bsmm_cpu_epilogue_divide(p, d.cols, values);
    make_nan_one(d.cols, values);
}

/* Stores a row by the general epilogue, which works in several passes. The function is not inlined,
 * so that the fast path of its caller needs fewer registers. */
__attribute__((noinline)) static void store_slowly(const bsmm_product *p, const bsmm_gemm_row *row,
                                                   double *values) {
    bsmm_gemm_columns d = bsmm_gemm_columns_of_d(p, row->col, row->cols);
    bsmm_gemm_apply_epilogue(p, row, values);
    bsmm_cpu_epilogue_store(p, row->r, d.col, d.cols, values);
}

void bsmm_gemm_store_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values) {
    const bsmm_cpu_epilogue_tile tile = {.acc = row->acc,
                                         .factors = &row->factor,
                                         .column_factors = row->column_factors,
                                         .rows = 1,
                                         .cols = row->cols};
    if (!has_wide(row) && bsmm_cpu_epilogue_is_direct(p) &&
        bsmm_cpu_epilogue_direct(p, row->r, row->col, tile))
        return;
    store_slowly(p, row, values);
}

/* Each row of A and each column of D has a number `wide`, which measures its dynamic range. A
 * result must be summed in double if the two numbers of its row and column add up to more than
 * `limit` (engine_gemm.h). `widest` is the largest number of all columns. Returns how many
 * consecutive rows, from row `first` on, certainly have no such result. */
static int64_t count_narrow(const bsmm_gemm_rows *rows, int64_t first, int widest, int limit) {
    int64_t i = first;
    while (i < rows->rows && rows->wide[i] + widest <= limit)
        i++;
    return i - first;
}

/* Stores rows, beginning with row i, by the direct loop, which applies the whole epilogue in one
 * pass. Returns the number of stored rows. The function stops at a row with a result that must be
 * summed in double, or that only the slow path rounds correctly. */
static int64_t store_directly(const bsmm_product *p, const bsmm_gemm_row *first,
                              const bsmm_gemm_rows *rows, int64_t i, int widest) {
    const bsmm_cpu_epilogue_tile tile = {.acc = first->acc + i * rows->pitch,
                                         .pitch = rows->pitch,
                                         .factors = rows->factors + i,
                                         .column_factors = first->column_factors,
                                         .rows = count_narrow(rows, i, widest, first->wide_limit),
                                         .cols = first->cols};
    return bsmm_cpu_epilogue_direct(p, first->r + i, first->col, tile);
}

void bsmm_gemm_store_rows(const bsmm_product *p, const bsmm_gemm_row *first,
                          const bsmm_gemm_rows *rows, double *values) {
    int widest = bsmm_gemm_widest(first->column_wide, first->cols);
    for (int64_t i = 0; i < rows->rows; i++) {
        if (rows->are_direct) i += store_directly(p, first, rows, i, widest);
        if (i == rows->rows) return;
        bsmm_gemm_row row = *first;
        row.r += i;
        row.acc += i * rows->pitch;
        row.factor = rows->factors[i];
        row.wide = rows->wide[i];
        bsmm_gemm_store_row(p, &row, values);
    }
}
