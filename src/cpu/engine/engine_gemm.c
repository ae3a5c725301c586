/* This file does the packing and threading for all engines with packed operands. D is divided into
 * cache blocks of mc x nc (engine_gemm_shape.c), and K is divided into chunks. A chunk is so short
 * that its packed panels of A and B for one cache block stay in L2. A thread computes a cache block
 * chunk by chunk, and adds each chunk to fp32 accumulators in its scratch memory. The order in
 * which a result's products are summed depends only on K. Results are therefore bitwise identical
 * for any M, N and number of threads.
 *
 * If B is large and was not packed in advance, it is packed in slabs, i.e. as many panels of B at a
 * time as the workspace holds. All rows of A are multiplied by a slab before the next slab is
 * packed into the same memory. If the rows of B are the gates and then the ups of a gated
 * activation, a slab has some gates and the ups that belong to them. */
#include "cpu/engine/engine_gemm.h"

#include "base/cpu.h"
#include "base/threads.h"

#include <string.h>

typedef bsmm_gemm_side side;
typedef bsmm_gemm gemm;

static uint8_t *place_side(side *s, uint8_t *at) {
    uint64_t padded = (uint64_t)(s->panels * s->width);
    s->units = at;
    at += (uint64_t)s->panels * s->panel_bytes;
    s->factors = (double *)(void *)at;
    at += bsmm_align64(padded * sizeof(double));
    s->wide = at;
    return at + bsmm_align64(padded);
}

/* Makes *g describe one slab of B. A slab is the panels (groups of packed rows of B) that are
 * packed at a time, here to the memory at `to`. The cache blocks of the GEMM divide `cols` columns
 * of D. The slab has the panels for as many of these columns as fit, beginning with column `first`.
 * If these columns are the gates of a gated activation, the slab also has the ups that belong to
 * its gates, after the gates. Normally the ups begin with a new panel. But if all of B is one slab,
 * the panels are those of packed weights, and the first up may be inside a panel. */
static void turn_to_slab(gemm *g, int64_t cols, int64_t first, uint8_t *to) {
    g->b_first = first;
    g->cols = g->b.rows = bsmm_min_i64(cols - first, g->slab * g->b.width);
    g->ups = g->cols;
    g->up_shift = first;
    if (g->is_split) {
        if (!bsmm_gemm_is_one_slab(g)) g->ups = bsmm_round_up(g->cols, g->b.width);
        g->up_shift = cols + first - g->ups;
        g->b.rows = g->ups + g->cols;
    }
    g->b.panels = bsmm_ceil_div(g->b.rows, g->b.width);
    place_side(&g->b, to);
}

/* Sets the members of *g that depend on the operands of one run. *g is a copy of the plan's
 * description of the GEMM. */
static void bind(gemm *g, const bsmm_product *p) {
    g->p = p;
    g->is_direct = bsmm_cpu_epilogue_is_direct(p);
    g->expects = g->is_direct && p->d.data_bytes > bsmm_cpu_l2_bytes() / 4;
}

/* Packs `count` panels of A or B, from panel number `first` on. Row r of the packed operand is row
 * r + shift of the matrix, and rows from `last` on are padding. */
static void pack_rows(const gemm *g, const side *s, int64_t first, int64_t count, int64_t last,
                      int64_t shift) {
    int64_t row = first * s->width, end = row + count * s->width;
    bsmm_panel to = {s->units + (uint64_t)first * s->panel_bytes, s->factors + row, s->wide + row};
    for (int64_t i = 0; i < end - row; i++)
        to.factors[i] = 1;
    memset(to.wide, 0, (size_t)(end - row));
    g->engine->pack(g->p, s == &g->b, row + shift, bsmm_min_i64(end, last) - row, &to);
}

/* Packs `count` panels of A, from panel number `first` on. A slab is the part of B that is packed
 * at a time. Panels of A are packed only together with B's first slab (b_first is 0). They are kept
 * for the later slabs, so a later call does nothing. */
static void pack_a(const gemm *g, int64_t first, int64_t count) {
    if (g->b_first == 0) pack_rows(g, &g->a, first, count, g->a.rows, 0);
}

/* Packs `count` panels (groups of rows) of B's current slab, from panel number `first` on. A slab
 * is the rows of B that are packed at a time. For a gated activation, a slab may have two ranges of
 * B's rows, gates and ups. The ups are then packed after the gates. */
static void pack_b(const gemm *g, int64_t first, int64_t count) {
    int64_t gates = 0;
    if (g->up_shift != g->b_first && first * g->b.width < g->ups)
        gates = bsmm_min_i64(count, g->ups / g->b.width - first);
    if (gates) pack_rows(g, &g->b, first, gates, g->cols, g->b_first);
    if (gates < count) pack_rows(g, &g->b, first + gates, count - gates, g->b.rows, g->up_shift);
}

/* Returns the row of B, i.e. the column of A x B^T, that is packed as row `row` of the current
 * slab. */
static int64_t column_of(const gemm *g, int64_t row) {
    return row + (row < g->ups ? g->b_first : g->up_shift);
}

typedef struct block {
    int64_t row, rows, col, cols;
    float *acc;
    /* `pitch` is the stride of acc's rows in floats. Usually it is nc, the number of columns of the
     * cache block. There are two exceptions. It is nc + nr if the gates and the ups of a gated
     * activation are computed one after another. It is nr if K is not divided into chunks and the
     * results are stored panel by panel (a panel is nr rows of B), because all panels then use the
     * same nr columns of acc. */
    int64_t pitch;
    double *values; /* `values` is a buffer for one row of results of D. */
    /* `gates` is used for a gated activation whose gates are the first half of the columns of A x
     * B^T. It keeps the values of the cache block's gates, in the order [rows][nc], until the ups
     * have been multiplied. */
    double *gates;
    uint8_t *widened;
    /* `next_col` is the first column of the cache block that this thread will probably compute
     * next. */
    int64_t next_col;
} block;

static const uint8_t *b_at(const gemm *g, int64_t row, int64_t unit) {
    return g->b.units + (uint64_t)(row / g->engine->nr) * g->b.panel_bytes +
           (uint64_t)unit * g->engine->b_unit_bytes;
}

/* Returns an address in packed B for a prefetch: that of the panel (a group of packed rows of B)
 * and of the chunk (a range of K) that are multiplied next. The current panel begins at column col
 * + j, and the current chunk at unit k, where a unit is a range of K with one scale per row. All
 * panels of a cache block are multiplied for one chunk, then all of them for the next chunk, and so
 * on. The next cache block follows after the last chunk. */
static const uint8_t *next_panel(const gemm *g, const block *b, int64_t j, int64_t k) {
    const bsmm_engine *e = g->engine;
    if (j + e->nr < b->cols) return b_at(g, b->col + j + e->nr, k);
    if (k + g->chunk < g->units) return b_at(g, b->col, k + g->chunk);
    return b_at(g, b->next_col, 0);
}

/* Prefetches the cache lines of D and C that the epilogue of a register tile will access as soon as
 * the tile's accumulators are complete. */
static void expect_tile(const gemm *g, const block *b, int64_t i, int64_t j) {
    if (g->expects)
        bsmm_cpu_epilogue_expect(g->p, b->row + i, bsmm_min_i64(g->engine->mr, b->rows - i),
                                 column_of(g, b->col + j),
                                 bsmm_min_i64(g->engine->nr, b->cols - j));
}

/* Returns the accumulators of the panel of B (nr packed rows) that begins at column col + j of D.
 * If `pitch` is nr, the buffer has room for the accumulators of a single panel, and all panels use
 * it one after another. Otherwise the buffer has separate accumulators for each panel. */
static float *strip_acc(const gemm *g, const block *b, int64_t j) {
    return b->acc + (b->pitch == g->engine->nr ? 0 : j);
}

/* Multiplies one panel of B by all panels of A in the cache block, over one chunk of K. A panel is
 * a group of packed rows: mr rows of A or nr rows of B. The panel of B begins at row b->col + j of
 * packed B. A chunk is the range of K for which all panels are multiplied before the next range. It
 * consists of units (ranges of K with one scale per row) and begins at unit number k. */
static void multiply_strip(const gemm *g, const block *b, int64_t j, int64_t k) {
    const bsmm_engine *e = g->engine;
    float *acc = strip_acc(g, b, j);
    int64_t units = bsmm_min_i64(g->chunk, g->units - k);
    const uint8_t *a =
        g->a.units + (uint64_t)(b->row / e->mr) * g->a.panel_bytes + (uint64_t)k * e->a_unit_bytes;
    const uint8_t *panel = b_at(g, b->col + j, k);
    int64_t tiles = bsmm_ceil_div(b->rows, e->mr);
    /* `left` is the number of bytes of the next panel of B that still have to be prefetched for
     * each unit (a range of K with one scale per row). The register tiles of the current panel
     * share this work: each prefetches a few cache lines. */
    int64_t left = (int64_t)e->b_unit_bytes;
    bsmm_ahead ahead = {next_panel(g, b, j, k),
                        bsmm_ceil_div(left, tiles * BSMM_AHEAD_LINE) * BSMM_AHEAD_LINE};
    if (e->widen) {
        e->widen(panel, units, b->widened);
        panel = b->widened;
    }
    for (int64_t i = 0; i < tiles; i++, a += g->a.panel_bytes) {
        if (k + units == g->units) expect_tile(g, b, i * e->mr, j);
        float *c = acc + i * e->mr * b->pitch;
        if (b->cols - j <= e->narrow_cols)
            e->narrow(a, panel, units, c, b->pitch, k > 0, ahead, b->cols - j);
        else
            e->multiply(a, panel, units, c, b->pitch, k > 0, ahead);
        ahead.at += units * ahead.bytes;
        left -= ahead.bytes;
        ahead.bytes = bsmm_min_i64(ahead.bytes, left);
    }
}

static void round_row(const double *values, int64_t cols, float *to) {
    for (int64_t i = 0; i < cols; i++)
        to[i] = (float)values[i];
}

static bsmm_gemm_row row_of(const gemm *g, const block *b, int64_t i) {
    int64_t r = b->row + i;
    return (bsmm_gemm_row){.r = r,
                           .col = column_of(g, b->col),
                           .cols = b->cols,
                           .acc = b->acc + i * b->pitch,
                           .factor = g->a.factors[r],
                           .wide = g->a.wide[r],
                           .wide_limit = g->engine->wide_limit,
                           .column_factors = g->b.factors + b->col,
                           .column_wide = g->b.wide + b->col};
}

static void store_block(const gemm *g, const block *b) {
    bsmm_gemm_columns d = bsmm_gemm_columns_of_d(g->p, column_of(g, b->col), b->cols);
    for (int64_t i = 0; i < b->rows; i++) {
        bsmm_gemm_row row = row_of(g, b, i);
        if (g->is_split) row.gates = b->gates + i * g->nc;
        if (!g->p->recipe) {
            bsmm_gemm_store_row(g->p, &row, b->values);
            continue;
        }
        bsmm_gemm_apply_epilogue(g->p, &row, b->values);
        round_row(b->values, d.cols, b->acc + i * b->pitch);
    }
    if (g->p->recipe)
        bsmm_recipe_store(g->p->recipe, &g->p->d, b->row, b->rows, d.col, d.cols, b->acc, b->pitch,
                          (float)bsmm_operand_global(&g->p->d));
}

/* Runs the epilogue on the columns of D that belong to one panel of B (nr rows of B). It is called
 * as soon as the accumulators of these columns are complete, while they are still in L1 or L2. */
static void store_strip(const gemm *g, block strip, int64_t j) {
    strip.acc = strip_acc(g, &strip, j);
    strip.col += j;
    strip.cols = bsmm_min_i64(g->engine->nr, strip.cols - j);
    const bsmm_gemm_row row = row_of(g, &strip, 0);
    const bsmm_gemm_rows rows = {.rows = strip.rows,
                                 .pitch = strip.pitch,
                                 .factors = g->a.factors + strip.row,
                                 .wide = g->a.wide + strip.row,
                                 .are_direct = true};
    bsmm_gemm_store_rows(g->p, &row, &rows, strip.values);
}

static void multiply_block(const gemm *g, const block *b) {
    int64_t pitch = b->pitch > g->nc ? b->pitch : g->nc;
    if (g->units == 0) memset(b->acc, 0, (size_t)(g->mc * pitch) * sizeof(float));
    for (int64_t k = 0; k < g->units; k += g->chunk)
        for (int64_t j = 0; j < b->cols; j += g->engine->nr) {
            multiply_strip(g, b, j, k);
            if (g->is_direct && k + g->chunk >= g->units) store_strip(g, *b, j);
        }
}

/* Computes a cache block of D for a gated activation: a result of D is f(gate) * up. A x B^T has
 * twice as many columns as D. The first half of them are the gates, and the second half are the
 * ups. The function first multiplies the columns of the block's gates and keeps their values. Then
 * it multiplies the columns of the ups that belong to these gates. The first of these ups may lie
 * in the middle of a panel of B. The columns before it in the panel are then computed too, but not
 * used. */
static void run_halves(const gemm *g, const block *gates) {
    int64_t first = g->ups + gates->col, panel = first / g->engine->nr * g->engine->nr;
    block b = *gates;
    b.pitch = g->nc + g->engine->nr;
    b.next_col = panel;
    multiply_block(g, &b);
    for (int64_t i = 0; i < b.rows; i++) {
        bsmm_gemm_row row = row_of(g, &b, i);
        bsmm_gemm_sum_row(g->p, &row, b.gates + i * g->nc);
    }
    b.next_col = gates->next_col;
    b.col = panel;
    b.cols += first - panel;
    multiply_block(g, &b);
    b.acc += first - panel;
    b.col = first;
    b.cols = gates->cols;
    store_block(g, &b);
}

/* Computes a cache block of D: rows [row, row + rows) and the nc columns from `col` on, or fewer
 * columns at the right edge of D. */
static void run_block(const gemm *g, int thread, int64_t row, int64_t rows, int64_t col) {
    uint64_t tile = (uint64_t)(g->engine->mc * g->engine->nc) * sizeof(float);
    uint8_t *scratch = g->scratch + (uint64_t)thread * g->scratch_bytes;
    block b = {.row = row, .rows = rows, .col = col};
    b.cols = bsmm_min_i64(g->nc, g->cols - col);
    b.acc = (float *)(void *)scratch;
    b.values = (double *)(void *)(scratch + tile);
    b.gates = b.values + g->engine->nc;
    b.widened = (uint8_t *)b.gates + g->gate_bytes;
    b.next_col = col + (g->by_rows ? 1 : g->threads) * g->nc;
    if (b.next_col >= g->cols) b.next_col = 0;
    if (g->is_split) {
        run_halves(g, &b);
        return;
    }
    b.pitch = g->is_direct && g->units == g->chunk ? g->engine->nr : g->nc;
    multiply_block(g, &b);
    if (!g->is_direct || g->units == 0) store_block(g, &b);
}

static void pack_b_part(const void *context, int64_t first, int64_t end, int worker) {
    const gemm *g = context;
    (void)worker;
    pack_b(g, first, end - first);
}

bsmm_status bsmm_gemm_pack_b(const gemm *made, const bsmm_product *p, void *packed) {
    gemm g = *made;
    bind(&g, p);
    g.b_bytes = g.packed_b_bytes;
    g.slab = g.b.panels;
    turn_to_slab(&g, g.cols, 0, packed);
    /* The alignment gaps after the arrays `factors` and `wide` of packed B are set to zero too. A
     * caller may write packed weights to a file, whose bytes must not depend on the memory's old
     * contents. */
    uint64_t padded = (uint64_t)(g.b.panels * g.b.width);
    memset(g.b.factors, 0, bsmm_align64(padded * sizeof(double)));
    memset(g.b.wide, 0, bsmm_align64(padded));
    const bsmm_loop loop = {.threads = p->threads,
                            .count = g.b.panels,
                            .at_a_time = 1,
                            .body = pack_b_part,
                            .context = &g};
    return bsmm_loop_run(&loop, &p->pool);
}

/* Computes the rows of D that belong to one thread. The thread packs the panels (groups of rows) of
 * A that it needs, so it waits for no other thread. */
static void run_rows(const gemm *g, int thread, int threads) {
    int64_t mr = g->engine->mr;
    int64_t end = bsmm_min_i64(g->a.rows, g->a.panels * (thread + 1) / threads * mr);
    for (int64_t row = g->a.panels * thread / threads * mr; row < end; row += g->mc) {
        int64_t rows = bsmm_min_i64(g->mc, end - row);
        pack_a(g, row / mr, bsmm_ceil_div(rows, mr));
        for (int64_t col = 0; col < g->cols; col += g->nc)
            run_block(g, thread, row, rows, col);
    }
}

/* This struct describes a GEMM that several threads compute, and has the counters from which they
 * take panels and cache blocks. */
typedef struct shared_run {
    const gemm *g;
    /* `b_panels` is the number of panels of B to pack. It is 0 if B is packed already. */
    int64_t b_panels;
    bsmm_items *a_taken, *b_taken, *blocks_taken;
} shared_run;

static void pack_free_b(const shared_run *s) {
    for (int64_t i; (i = bsmm_items_take(s->b_taken, 1)) < s->b_panels;)
        pack_b(s->g, i, 1);
}

/* Does one thread's work if each thread gets a range of A's rows. In phase 0 the threads pack B. In
 * phase 1 each thread packs its rows of A and multiplies them. */
static void work_by_rows(const void *context, int phase, int worker) {
    const shared_run *s = context;
    if (phase == 0)
        pack_free_b(s);
    else
        run_rows(s->g, worker, s->g->threads);
}

/* Threads take panels of A to pack from a shared counter. Returns the number of panels that a
 * thread takes at once. If A is in column order, a cache line has elements of several adjacent
 * panels, so it is better that one thread packs more of them. The number is therefore larger then,
 * unless there are too few panels for all threads. */
static int64_t panels_at_once(const gemm *g) {
    return g->p->a.m.order == BSMM_ORDER_COL && g->a.panels >= 64 * g->threads ? 16 : 4;
}

static void pack_free_a(const shared_run *s) {
    int64_t at_once = panels_at_once(s->g), panels = s->g->a.panels;
    for (int64_t i; (i = bsmm_items_take(s->a_taken, at_once)) < panels;)
        pack_a(s->g, i, bsmm_min_i64(at_once, panels - i));
}

static void run_free_blocks(const shared_run *s, int worker) {
    const gemm *g = s->g;
    int64_t across = bsmm_ceil_div(g->cols, g->nc);
    int64_t blocks = bsmm_ceil_div(g->a.rows, g->mc) * across;
    for (int64_t i; (i = bsmm_items_take(s->blocks_taken, 1)) < blocks;) {
        int64_t row = i / across * g->mc;
        run_block(g, worker, row, bsmm_min_i64(g->mc, g->a.rows - row), i % across * g->nc);
    }
}

/* Does one thread's work if threads take one cache block of D after another. In phase 0 the threads
 * pack A and B; in phase 1 they multiply. */
static void work_by_blocks(const void *context, int phase, int worker) {
    const shared_run *s = context;
    if (phase == 0) {
        pack_free_a(s);
        pack_free_b(s);
    } else {
        run_free_blocks(s, worker);
    }
}

/* Packs a slab, i.e. the panels of B for one cache block, and multiplies all rows of A by it. Each
 * thread has memory of its own for a slab. */
static void run_own_slab(const gemm *g, int thread, int64_t first) {
    gemm own = *g;
    uint64_t share = g->b_bytes / (uint64_t)g->threads / 64 * 64;
    turn_to_slab(&own, g->cols, first, g->b_memory + (uint64_t)thread * share);
    pack_b(&own, 0, own.b.panels);
    for (int64_t row = 0; row < g->a.rows; row += g->mc)
        run_block(&own, thread, row, bsmm_min_i64(g->mc, g->a.rows - row), 0);
}

/* Does the work of one thread if each thread packs its own slabs of B. A slab is the rows of B that
 * are packed at a time; here it is as wide as one cache block of D. In phase 0 the threads pack A.
 * In phase 1 each thread takes one slab of B after another, packs it and multiplies it. */
static void work_by_slabs(const void *context, int phase, int worker) {
    const shared_run *s = context;
    if (phase == 0) {
        pack_free_a(s);
        return;
    }
    for (int64_t i; (i = bsmm_items_take(s->blocks_taken, 1) * s->g->nc) < s->g->cols;)
        run_own_slab(s->g, worker, i);
}

static bsmm_status run_shared(const gemm *g) {
    bsmm_items taken[3] = {0};
    const shared_run s = {.g = g,
                          .b_panels = g->p->b_packed ? 0 : g->b.panels,
                          .a_taken = &taken[0],
                          .b_taken = &taken[1],
                          .blocks_taken = &taken[2]};
    const bsmm_job job = {.threads = g->threads,
                          .phases = 2,
                          .work = g->by_slabs  ? work_by_slabs
                                  : g->by_rows ? work_by_rows
                                               : work_by_blocks,
                          .context = &s};
    return bsmm_job_run(&job, &g->p->pool);
}

static void run_alone(const gemm *g) {
    if (!g->p->b_packed) pack_b(g, 0, g->b.panels);
    run_rows(g, 0, 1);
}

static bsmm_status run_slab(const gemm *g) {
    if (g->threads > 1) return run_shared(g);
    run_alone(g);
    return BSMM_OK;
}

bsmm_status bsmm_gemm_run(const gemm *made, const bsmm_product *p, void *workspace) {
    gemm g = *made;
    bind(&g, p);
    uint8_t *after_a = place_side(&g.a, workspace);
    /* The cast removes const from the address of packed weights. The weights are only read, but
     * their address is stored in the member that otherwise points to writable workspace. */
    g.b_memory = p->b_packed ? (uint8_t *)(uintptr_t)p->packed_b : after_a;
    g.scratch = p->b_packed ? after_a : after_a + g.b_bytes;
    if (g.by_slabs) BSMM_TRY(run_shared(&g));
    int64_t cols = g.cols, first = g.by_slabs ? cols : 0;
    for (; first < cols; first += g.cols) {
        turn_to_slab(&g, cols, first, g.b_memory);
        BSMM_TRY(run_slab(&g));
    }
    if (p->recipe) bsmm_recipe_pad(&p->d);
    return BSMM_OK;
}
