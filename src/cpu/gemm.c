/* Packing, cache blocks and threads for every packed engine. D is cut into blocks of mc x nc; a
 * block takes K in chunks, so that a chunk of both operands' panels stays in the second-level
 * cache, and sums in fp32 in the thread's scratch. Chunks have a fixed length: the bits of a result
 * depend on K and on its two rows, never on M, N or the number of threads. */
#include "cpu/gemm.h"

#include "base/cpu.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* One operand, packed. */
typedef struct side {
    int64_t rows, panels, width;
    uint64_t panel_bytes;
    uint8_t *units;
    double *factors;
    uint8_t *wide;
} side;

typedef struct gemm {
    const bsmm_engine *engine;
    const bsmm_product *p;
    side a, b;
    int64_t units;  /* along K */
    int64_t mc, nc; /* of this run: smaller where there are few blocks for the threads */
    int threads;
    uint8_t *scratch; /* one per thread */
} gemm;

static uint64_t align64(uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static side measure_side(int64_t rows, int64_t width, int64_t units, uint64_t unit_bytes) {
    side s = {.rows = rows, .panels = bsmm_ceil_div(rows, width), .width = width};
    s.panel_bytes = (uint64_t)units * unit_bytes;
    return s;
}

static uint64_t side_bytes(const side *s) {
    uint64_t padded = (uint64_t)(s->panels * s->width);
    return (uint64_t)s->panels * s->panel_bytes + align64(padded * sizeof(double)) +
           align64(padded);
}

static uint8_t *place_side(side *s, uint8_t *at) {
    uint64_t padded = (uint64_t)(s->panels * s->width);
    s->units = at;
    at += (uint64_t)s->panels * s->panel_bytes;
    s->factors = (double *)(void *)at;
    at += align64(padded * sizeof(double));
    s->wide = at;
    return at + align64(padded);
}

/* A thread's scratch: mc x nc floats of sums (which become the values of a block-scaled D), then a
 * row of doubles. */
static uint64_t scratch_bytes(const bsmm_engine *e) {
    return (uint64_t)(e->mc * e->nc) * sizeof(float) + (uint64_t)e->nc * sizeof(double);
}

static bool halve(int64_t *length, int64_t tile) {
    bool even = *length / 2 >= tile && *length / 2 % tile == 0;
    if (even) *length /= 2;
    return even;
}

/* What a block touches: a chunk of both operands' panels, and its sums. */
static uint64_t block_bytes(const gemm *g) {
    const bsmm_engine *e = g->engine;
    uint64_t units = (uint64_t)bsmm_min_i64(e->chunk, g->units);
    return units * ((uint64_t)(g->mc / e->mr) * e->a_unit_bytes +
                    (uint64_t)(g->nc / e->nr) * e->b_unit_bytes) +
           (uint64_t)(g->mc * g->nc) * sizeof(float);
}

/* Blocks are halved, but not below one panel, until the second-level cache holds one and every
 * thread has a few; whole ones hold whole blocks of a block-scaled D. */
static void choose_blocks(gemm *g) {
    const bsmm_engine *e = g->engine;
    uint64_t cache = bsmm_cpu_l2_bytes();
    g->mc = e->mc;
    g->nc = e->nc;
    if (g->p->recipe) return;
    while (cache && block_bytes(g) > cache && (halve(&g->nc, e->nr) || halve(&g->mc, e->mr)))
        continue;
    int64_t wanted = g->threads > 1 ? (int64_t)g->threads * 4 : 1;
    while (bsmm_ceil_div(g->a.rows, g->mc) * bsmm_ceil_div(g->b.rows, g->nc) < wanted &&
           (halve(&g->nc, e->nr) || halve(&g->mc, e->mr)))
        continue;
}

static gemm measure(const bsmm_engine *engine, const bsmm_product *p) {
    gemm g = {.engine = engine, .p = p, .threads = p->threads};
    g.units = bsmm_ceil_div(p->a.m.cols, engine->unit);
    g.a = measure_side(p->a.m.rows, engine->mr, g.units, engine->a_unit_bytes);
    g.b = measure_side(p->b.m.rows, engine->nr, g.units, engine->b_unit_bytes);
    int64_t most = bsmm_ceil_div(g.a.rows, engine->mr) * bsmm_ceil_div(g.b.rows, engine->nr);
    if (g.threads > most) g.threads = most > 0 ? (int)most : 1;
    choose_blocks(&g);
    return g;
}

uint64_t bsmm_gemm_workspace_bytes(const bsmm_engine *engine, const bsmm_product *p) {
    gemm g = measure(engine, p);
    return side_bytes(&g.a) + (p->b_packed ? 0 : side_bytes(&g.b)) +
           (uint64_t)g.threads * scratch_bytes(engine);
}

uint64_t bsmm_gemm_packed_b_bytes(const bsmm_engine *engine, const bsmm_product *p) {
    gemm g = measure(engine, p);
    return side_bytes(&g.b);
}

static void pack_panel(const gemm *g, const side *s, bool is_b, int64_t panel) {
    int64_t row = panel * s->width;
    bsmm_panel to = {s->units + (uint64_t)panel * s->panel_bytes, s->factors + row, s->wide + row};
    for (int64_t i = 0; i < s->width; i++) {
        to.factors[i] = 1;
        to.wide[i] = 0;
    }
    g->engine->pack(g->p, is_b, row, bsmm_min_i64(s->width, s->rows - row), &to);
}

/* ---- one block of D ---- */

typedef struct block {
    int64_t row, rows, col, cols;
    float *acc;     /* nc from row to row */
    double *values; /* one row */
} block;

/* One panel of B, columns col + j on, times the block's panels of A, over units from k on. */
static void multiply_strip(const gemm *g, const block *b, int64_t j, int64_t k, float *acc,
                           int64_t pitch) {
    const bsmm_engine *e = g->engine;
    int64_t units = bsmm_min_i64(e->chunk, g->units - k);
    for (int64_t i = 0; i < b->rows; i += e->mr)
        e->multiply(g->a.units + (uint64_t)((b->row + i) / e->mr) * g->a.panel_bytes +
                        (uint64_t)k * e->a_unit_bytes,
                    g->b.units + (uint64_t)((b->col + j) / e->nr) * g->b.panel_bytes +
                        (uint64_t)k * e->b_unit_bytes,
                    units, acc + i * pitch, pitch, k > 0);
}

static void multiply_block(const gemm *g, const block *b) {
    if (g->units == 0) memset(b->acc, 0, (size_t)(g->mc * g->nc) * sizeof(float));
    for (int64_t k = 0; k < g->units; k += g->engine->chunk)
        for (int64_t j = 0; j < b->cols; j += g->engine->nr)
            multiply_strip(g, b, j, k, b->acc + j, g->nc);
}

enum { EXACT_RUN = 128, EXACT_COLUMNS = 8 };

/* Sums of several columns side by side, none of which waits for another's additions. */
static void add_products(const double *a, const double b[EXACT_COLUMNS][EXACT_RUN], int64_t n,
                         double *sums) {
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < EXACT_COLUMNS; c++)
            sums[c] += a[i] * b[c][i];
}

/* The sums for row r of A and `count` rows of B, in double, term by term, scales included: what
 * wide rows take. */
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

static int widest(const uint8_t *wide, int64_t n) {
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

/* Which of several NaN an instruction hands on depends on the order of its operands, which
 * compilers choose. */
static void make_nan_one(int64_t cols, double *values) {
    for (int64_t i = 0; i < cols; i++)
        values[i] = values[i] == values[i] ? values[i] : (double)NAN;
}

static bool has_wide(const bsmm_gemm_row *row) {
    return row->wide + widest(row->column_wide, row->cols) > row->wide_limit;
}

void bsmm_gemm_finish_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values) {
    bsmm_finish_scale(row->acc, row->factor, row->column_factors, row->cols, values);
    if (has_wide(row)) replace_wide(p, row, values);
    bsmm_finish_add(p, row->r, row->col, row->cols, values);
    make_nan_one(row->cols, values);
}

void bsmm_gemm_store_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values) {
    const bsmm_finish_tile tile = {.acc = row->acc,
                                   .factors = &row->factor,
                                   .column_factors = row->column_factors,
                                   .rows = 1,
                                   .cols = row->cols};
    if (!has_wide(row) && bsmm_finish_is_direct(p) && bsmm_finish_direct(p, row->r, row->col, tile))
        return;
    bsmm_gemm_finish_row(p, row, values);
    bsmm_finish_store(p, row->r, row->col, row->cols, values);
}

static void round_row(const double *values, int64_t cols, float *to) {
    for (int64_t i = 0; i < cols; i++)
        to[i] = (float)values[i];
}

static bsmm_gemm_row row_of(const gemm *g, const block *b, int64_t i) {
    int64_t r = b->row + i;
    return (bsmm_gemm_row){.r = r,
                           .col = b->col,
                           .cols = b->cols,
                           .acc = b->acc + i * g->nc,
                           .factor = g->a.factors[r],
                           .wide = g->a.wide[r],
                           .wide_limit = g->engine->wide_limit,
                           .column_factors = g->b.factors + b->col,
                           .column_wide = g->b.wide + b->col};
}

static void finish_block(const gemm *g, const block *b) {
    for (int64_t i = 0; i < b->rows; i++) {
        bsmm_gemm_row row = row_of(g, b, i);
        if (!g->p->recipe) {
            bsmm_gemm_store_row(g->p, &row, b->values);
            continue;
        }
        bsmm_gemm_finish_row(g->p, &row, b->values);
        round_row(b->values, b->cols, b->acc + i * g->nc);
    }
    if (g->p->recipe)
        bsmm_recipe_store(g->p->recipe, &g->p->d, b->row, b->rows, b->col, b->cols, b->acc, g->nc,
                          (float)bsmm_operand_global(&g->p->d));
}

/* Rows from the first on that are not wide beside `columns`. */
static int64_t narrow_rows(const gemm *g, const block *b, int64_t first, int columns) {
    int64_t i = first;
    while (i < b->rows && g->a.wide[b->row + i] + columns <= g->engine->wide_limit)
        i++;
    return i - first;
}

/* Finishes a block as wide as a panel of B, its sums nr from row to row. */
static void finish_strip(const gemm *g, const block *b) {
    int columns = widest(g->b.wide + b->col, b->cols);
    for (int64_t i = 0; i < b->rows; i++) {
        const bsmm_finish_tile tile = {.acc = b->acc + i * g->engine->nr,
                                       .pitch = g->engine->nr,
                                       .factors = g->a.factors + b->row + i,
                                       .column_factors = g->b.factors + b->col,
                                       .rows = narrow_rows(g, b, i, columns),
                                       .cols = b->cols};
        i += bsmm_finish_direct(g->p, b->row + i, b->col, tile);
        if (i == b->rows) return;
        bsmm_gemm_row row = row_of(g, b, i);
        row.acc = b->acc + i * g->engine->nr;
        bsmm_gemm_store_row(g->p, &row, b->values);
    }
}

/* Sums that are complete at once leave for D strip by strip, from the first-level cache. */
static void run_strips(const gemm *g, const block *b) {
    for (int64_t j = 0; j < b->cols; j += g->engine->nr) {
        block strip = *b;
        strip.col += j;
        strip.cols = bsmm_min_i64(g->engine->nr, b->cols - j);
        multiply_strip(g, b, j, 0, strip.acc, g->engine->nr);
        finish_strip(g, &strip);
    }
}

static void run_block(const gemm *g, int64_t index) {
    int64_t across = bsmm_ceil_div(g->b.rows, g->nc);
    uint64_t tile = (uint64_t)(g->engine->mc * g->engine->nc) * sizeof(float);
    uint8_t *scratch = g->scratch + (uint64_t)omp_get_thread_num() * scratch_bytes(g->engine);
    block b = {.row = index / across * g->mc, .col = index % across * g->nc};
    b.rows = bsmm_min_i64(g->mc, g->a.rows - b.row);
    b.cols = bsmm_min_i64(g->nc, g->b.rows - b.col);
    b.acc = (float *)(void *)scratch;
    b.values = (double *)(void *)(scratch + tile);
    if (g->units > 0 && g->units <= g->engine->chunk && bsmm_finish_is_direct(g->p)) {
        run_strips(g, &b);
        return;
    }
    multiply_block(g, &b);
    finish_block(g, &b);
}

void bsmm_gemm_pack_b(const bsmm_engine *engine, const bsmm_product *p, void *packed) {
    gemm g = measure(engine, p);
    uint8_t *end = place_side(&g.b, packed);
    /* The alignment's gaps too: the bytes may go to a file. */
    uint64_t padded = (uint64_t)(g.b.panels * g.b.width);
    memset(g.b.factors, 0, align64(padded * sizeof(double)));
    memset(g.b.wide, 0, (size_t)(end - g.b.wide));
#pragma omp parallel for num_threads(p->threads) schedule(dynamic)
    for (int64_t i = 0; i < g.b.panels; i++)
        pack_panel(&g, &g.b, true, i);
}

bsmm_status bsmm_gemm_run(const bsmm_engine *engine, const bsmm_product *p, void *workspace) {
    gemm g = measure(engine, p);
    uint8_t *after_a = place_side(&g.a, workspace);
    /* A packed B is only read: it is placed as if it were workspace. */
    g.scratch = p->b_packed ? after_a : place_side(&g.b, after_a);
    if (p->b_packed) place_side(&g.b, (uint8_t *)(uintptr_t)p->packed_b);
    int64_t blocks = bsmm_ceil_div(g.a.rows, g.mc) * bsmm_ceil_div(g.b.rows, g.nc);
#pragma omp parallel num_threads(g.threads)
    {
#pragma omp for schedule(dynamic, 4) nowait
        for (int64_t i = 0; i < g.a.panels; i++)
            pack_panel(&g, &g.a, false, i);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < (p->b_packed ? 0 : g.b.panels); i++)
            pack_panel(&g, &g.b, true, i);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < blocks; i++)
            run_block(&g, i);
    }
    if (p->recipe) bsmm_recipe_pad(&p->d);
    return BSMM_OK;
}

const char *bsmm_gemm_refuse_output(const bsmm_engine *engine, const bsmm_product *p, char *why,
                                    size_t size) {
    const bsmm_format *f = &p->d.m.format;
    if (!p->recipe || (engine->mc % f->block_rows == 0 && engine->nc % f->block_cols == 0))
        return NULL;
    snprintf(why, size, "D's blocks of %u x %u do not divide its cache blocks of %lld x %lld",
             f->block_rows, f->block_cols, (long long)engine->mc, (long long)engine->nc);
    return why;
}
