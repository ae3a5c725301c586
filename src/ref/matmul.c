/* This file has the reference kernel. Together with core/epilogue.c it defines the correct result
 * of a product. It accepts all formats, orders and layouts. It decodes every element to double, in
 * which element * scale is exact, sums in double, and rounds once to D's format.
 *
 * The kernel decodes a group of 64 rows of A at a time. For each group it decodes every row of B
 * once and multiplies it by the rows of the group. If D is block-scaled, a group has more rows if
 * necessary, because it must consist of whole scale blocks of D. The threads divide the rows of B
 * among them. One thread computes each sum over K in a fixed order, so results do not depend on the
 * number of threads. */
#include "base/threads.h"
#include "core/epilogue.h"

enum { GROUP = 64 };

/* This struct holds the sizes of the arrays in the workspace, as numbers of values. In the comments
 * below, `rows` is the number of rows of A that are decoded at a time. */
typedef struct sizes {
    uint64_t a;   /* `a` counts the doubles of the decoded rows of A, rows x K. */
    uint64_t b;   /* `b` counts the doubles of one decoded row of B per thread, threads x K. */
    uint64_t acc; /* `acc` counts the accumulators, which are rows x N doubles. */
    /* If D is block-scaled, the results of `rows` rows of D are stored in fp32 before they are
     * quantized to D. `values` is the number of these results, rows x N. Otherwise it is 0. */
    uint64_t values;
} sizes;

static int64_t group_rows(const bsmm_product *p) {
    int64_t block = p->recipe ? p->d.m.format.block_rows : 1;
    return bsmm_min_i64(bsmm_round_up(GROUP, block), p->d.m.rows);
}

static int count_threads(const bsmm_product *p) {
    return (int)bsmm_min_i64(p->threads, p->b.m.rows);
}

static sizes measure(const bsmm_product *p) {
    uint64_t group = (uint64_t)group_rows(p), k = (uint64_t)p->a.m.cols;
    uint64_t n = (uint64_t)p->b.m.rows;
    return (sizes){
        .a = group * k,
        .b = (uint64_t)count_threads(p) * k,
        .acc = group * n,
        .values = p->recipe ? group * (uint64_t)p->d.m.cols : 0,
    };
}

/* Returns the size of the workspace in bytes. If it exceeds 2^60 bytes, the function returns
 * UINT64_MAX, because the integer arithmetic of `measure` may have overflowed. The estimate in
 * double cannot overflow. */
static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)state;
    double k = (double)p->a.m.cols, n = (double)p->b.m.rows, group = (double)group_rows(p);
    if (8 * ((group + p->threads) * k + 2 * group * n) > 0x1p60) return UINT64_MAX;
    sizes s = measure(p);
    return sizeof(double) * (s.a + s.b + s.acc) + sizeof(float) * s.values;
}

typedef struct scratch {
    double *a, *b, *acc;
    float *values;
} scratch;

static scratch lay_out(const bsmm_product *p, void *workspace) {
    sizes size = measure(p);
    scratch s = {.a = workspace};
    s.b = s.a + size.a;
    s.acc = s.b + size.b;
    s.values = (float *)(s.acc + size.acc);
    return s;
}

static double dot(const double *a, const double *b, int64_t k) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < k; i++)
        sum += a[i] * b[i];
    return sum;
}

/* `group_run` is one group of decoded rows of A, which all threads multiply by rows of B. */
typedef struct group_run {
    const bsmm_product *p;
    const scratch *s;
    int64_t rows;
} group_run;

static void multiply_columns(const void *context, int64_t first, int64_t end, int worker) {
    const group_run *g = context;
    int64_t k = g->p->a.m.cols, n = g->p->b.m.rows;
    double *b = g->s->b + worker * k;
    for (int64_t j = first; j < end; j++) {
        bsmm_operand_decode_row(&g->p->b, j, 0, k, b);
        for (int64_t r = 0; r < g->rows; r++)
            g->s->acc[r * n + j] = dot(g->s->a + r * k, b, k);
    }
}

static bsmm_status multiply_group(const bsmm_product *p, const scratch *s, int64_t row,
                                  int64_t rows) {
    int64_t k = p->a.m.cols;
    for (int64_t r = 0; r < rows; r++)
        bsmm_operand_decode_row(&p->a, row + r, 0, k, s->a + r * k);
    const group_run g = {p, s, rows};
    const bsmm_loop loop = {
        .threads = count_threads(p), .count = p->b.m.rows, .body = multiply_columns, .context = &g};
    return bsmm_loop_run(&loop, &p->pool);
}

/* Describes the accumulators of the decoded rows of A for the epilogue. A row has one accumulator
 * for each row of B. With a gated activation, gates and ups alternate or fill two halves of the
 * row. */
static bsmm_sums sums_of(const bsmm_product *p, const scratch *s) {
    bool interleaved = p->epilogue && p->epilogue->interleaved;
    return (bsmm_sums){.acc = s->acc,
                       .pitch = p->b.m.rows,
                       .step = interleaved ? 2 : 1,
                       .up = interleaved ? 1 : p->d.m.cols};
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    (void)state;
    scratch s = lay_out(p, workspace);
    bsmm_sums sums = sums_of(p, &s);
    int64_t m = p->d.m.rows, n = p->d.m.cols, group = group_rows(p);
    for (int64_t row = 0; row < m; row += group) {
        int64_t rows = bsmm_min_i64(group, m - row);
        BSMM_TRY(multiply_group(p, &s, row, rows));
        if (p->recipe)
            bsmm_epilogue_quantize(p, row, rows, &sums, s.values);
        else
            bsmm_epilogue_store(p, row, rows, 0, n, &sums);
    }
    if (p->recipe) bsmm_recipe_pad(&p->d);
    return BSMM_OK;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    (void)p, (void)state, (void)why, (void)size;
    return NULL;
}

/* Returns the error bound of a result before its last rounding, relative to the sum of |a * b| over
 * K. Each of the K additions in double rounds once. Eight more roundings are allowed for the
 * multiplications: of an element of A and of B by their scales, of the two values with each other,
 * and of the sum by alpha. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return ((double)p->a.m.cols + 8) * 0x1p-53;
}

const bsmm_kernel bsmm_kernel_ref = {
    .name = "ref",
    .device = "cpu",
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .run = run,
    .features = BSMM_FEATURE_EPILOGUE | BSMM_FEATURE_INVARIANT | BSMM_FEATURE_COMPACT,
};
