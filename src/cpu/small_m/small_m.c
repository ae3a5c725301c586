/* This file has the loops of the small-M kernels (few rows of A) over panels of B, over scales and
 * over threads, and handles the ends of rows. Threads take work units, whose number of columns of D
 * does not depend on the number of threads. The results therefore do not depend on it either. */
#include "cpu/small_m/small_m.h"

#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES, COLUMNS = BSMM_SMALL_M_COLUMNS };

/* `ahead` is the prefetch distance in bytes, summed over the rows of B that are read side by side.
 * It is large enough to cover the latency of memory. */
static const int64_t ahead = 16384;

/* `strip_ahead` is the prefetch distance in bytes if B is in compact order, i.e. if 16 rows of B
 * are stored together. Half and twice this distance were slower on a Sapphire Rapids. */
static const int64_t strip_ahead = 8192;

typedef struct product_run {
    const bsmm_small_m *m;
    const bsmm_small_m_engine *d; /* `d` holds the functions and sizes of the engine. */
    const bsmm_product *p;
    /* `is_direct` is true if the whole epilogue runs in one pass (bsmm_cpu_epilogue_is_direct). */
    bool is_direct;
    /* The members below point to memory that all threads share. */
    uint8_t *a;
    double *a_factors;
    uint8_t *a_wide;
    /* `scale_columns` has an offset for each scale unit (a range of K with one gathered scale). The
     * offset of a scale in memory is the sum of this offset and a second offset, which depends on
     * the scale's row. */
    uint64_t *scale_columns;
    /* `run` is the number of consecutive scale units (ranges of K with one gathered scale) whose
     * codes are adjacent in memory: 16, 4 or 1. */
    int64_t run;
    uint8_t *scratch; /* `scratch` has one buffer of scratch memory for each thread. */
} product_run;

/* Points to the arrays in a thread's scratch memory. */
typedef struct scratch {
    float *acc; /* `acc` holds accumulators in the order [row of A][COLUMNS]. */
    /* A chunk is a range of K that is summed by itself. `part` keeps the sums of an incomplete
     * chunk for the next call, in the order [row of A's tile][COLUMNS]. */
    float *part;
    double *values; /* `values` holds the results of one row of D, COLUMNS values. */
    /* `factors` holds the factors that are divided out of the rows of B, one for each column of
     * D. */
    double *factors;
    uint8_t *wide; /* `wide` tells how far the scales in each row of B are apart. */
    /* A scale unit is a range of K with one gathered scale per row. `codes` holds scale codes in
     * the order [panel of 16 rows][scale unit][row of the panel]. */
    uint8_t *codes;
    /* `scales` holds fp32 scales: [panel of 16 rows of B][range of K with one scale][row]. */
    float *scales;
    uint8_t *packed; /* `packed` holds one packed panel of B. */
    /* `gates` holds the values of the gates in the order [row of A][COLUMNS], if the gates of a
     * gated activation are the first half of the columns of A x B^T. */
    double *gates;
} scratch;

static bool has_float_scales(const bsmm_product *p) {
    return p->b.m.format.scale == BSMM_SCALE_F32;
}

static uint64_t scale_bytes(const bsmm_small_m *m, const bsmm_product *p) {
    uint64_t count = (uint64_t)(m->d.panels * m->scale_units * LANES);
    return bsmm_align64(count * (has_float_scales(p) ? sizeof(float) : 1));
}

static uint64_t acc_bytes(const bsmm_small_m *m) {
    return (uint64_t)(m->tiles * m->d.width * COLUMNS) * sizeof(float);
}

static uint64_t part_bytes(const bsmm_small_m *m) {
    return m->chunk_steps ? (uint64_t)(m->d.width * COLUMNS) * sizeof(float) : 0;
}

static uint64_t gate_bytes(const bsmm_small_m *m) {
    return m->is_split ? (uint64_t)(m->tiles * m->d.width * COLUMNS) * sizeof(double) : 0;
}

static uint64_t shared_bytes(const bsmm_small_m *m) {
    uint64_t rows = (uint64_t)(m->tiles * m->d.width);
    return bsmm_align64((uint64_t)m->tiles * m->tile_bytes) + bsmm_align64(rows * sizeof(double)) +
           bsmm_align64(rows) + bsmm_align64((uint64_t)m->scale_units * sizeof(uint64_t));
}

void bsmm_small_m_make(const bsmm_small_m_engine *d, const bsmm_product *p, bsmm_small_m *m) {
    int64_t k = p->a.m.cols, bits = bsmm_elem_row(p->b.m.format.elem)->bits;
    uint32_t group = bsmm_elem_group(p->b.m.format.elem);
    m->d = *d;
    m->tiles = bsmm_ceil_div(p->a.m.rows, d->width);
    m->steps = bsmm_round_up(bsmm_ceil_div(k, BSMM_SMALL_M_STEP), BSMM_SMALL_M_GROUP);
    m->used_steps = bsmm_round_up(bsmm_ceil_div(k, BSMM_SMALL_M_STEP), d->group);
    m->units = m->steps * BSMM_SMALL_M_STEP / d->unit;
    /* The scale codes of each panel (16 rows of B) begin at a multiple of 64 bytes, because they
     * are stored as vectors of 64 codes. */
    m->scale_units = bsmm_round_up(m->used_steps * BSMM_SMALL_M_STEP / d->scale_unit,
                                   has_float_scales(p) ? 1 : 64 / LANES);
    m->chunk_steps =
        d->longest_chunk ? bsmm_gemm_chunk(d->longest_chunk, k) / BSMM_SMALL_M_STEP : 0;
    m->step_bytes = BSMM_SMALL_M_STEP / 8 * bits;
    m->row_bytes = bsmm_round_up(k, group) * bits / 8;
    m->pitch = p->b.m.ld * bits / 8;
    m->whole_steps = k / (d->read_group * BSMM_SMALL_M_STEP) * d->read_group;
    m->used_scales = k / d->scale_unit;
    m->chunk_scales = m->chunk_steps * BSMM_SMALL_M_STEP / d->scale_unit;
    m->strips_ahead = m->pitch ? bsmm_ceil_div(ahead, d->panels * LANES * m->pitch) : 0;
    m->tile_bytes = (uint64_t)m->units * d->a_unit_bytes;
    m->packed_bytes = bsmm_align64((uint64_t)m->units * d->b_unit_bytes);
    m->thread_bytes = acc_bytes(m) + part_bytes(m) + 2 * COLUMNS * sizeof(double) + COLUMNS +
                      scale_bytes(m, p) + m->packed_bytes;
    m->is_split = bsmm_gemm_is_split(p);
    m->thread_bytes += gate_bytes(m);
    m->cols = m->is_split ? p->d.m.cols : p->b.m.rows;
    m->threads = (int)bsmm_min_i64(p->threads, bsmm_ceil_div(m->cols, COLUMNS));
    if (m->threads < 1) m->threads = 1;
    m->workspace_bytes = shared_bytes(m) + (uint64_t)m->threads * m->thread_bytes;
    if (d->make_context) d->make_context(p, m->context);
}

static void place(product_run *x, uint8_t *at) {
    uint64_t rows = (uint64_t)(x->m->tiles * x->d->width);
    x->a = at;
    at += bsmm_align64((uint64_t)x->m->tiles * x->m->tile_bytes);
    x->a_factors = (double *)(void *)at;
    at += bsmm_align64(rows * sizeof(double));
    x->a_wide = at;
    at += bsmm_align64(rows);
    x->scale_columns = (uint64_t *)(void *)at;
    x->scratch = at + bsmm_align64((uint64_t)x->m->scale_units * sizeof(uint64_t));
}

static scratch place_scratch(const product_run *x, int thread) {
    uint8_t *at = x->scratch + (uint64_t)thread * x->m->thread_bytes;
    scratch s = {.acc = (float *)(void *)at};
    s.part = s.acc + acc_bytes(x->m) / sizeof(float);
    at += acc_bytes(x->m) + part_bytes(x->m);
    s.values = (double *)(void *)at;
    s.factors = s.values + COLUMNS;
    s.wide = (uint8_t *)(s.factors + COLUMNS);
    s.codes = s.wide + COLUMNS;
    s.scales = (float *)(void *)s.codes;
    s.packed = s.codes + scale_bytes(x->m, x->p);
    s.gates = (double *)(void *)(s.packed + x->m->packed_bytes);
    return s;
}

static void pack_tile(const product_run *x, int64_t tile) {
    int64_t width = x->d->width, row = tile * width;
    bsmm_panel to = {x->a + (uint64_t)tile * x->m->tile_bytes, x->a_factors + row, x->a_wide + row};
    for (int64_t i = 0; i < width; i++) {
        to.factors[i] = 1;
        to.wide[i] = 0;
    }
    uint64_t used = (uint64_t)bsmm_ceil_div(x->p->a.m.cols, x->d->unit) * x->d->a_unit_bytes;
    memset(to.units + used, 0, x->m->tile_bytes - used);
    x->d->pack_a(x->p, width, row, bsmm_min_i64(width, x->p->a.m.rows - row), &to);
}

/* A strip of B is the panels (16 rows each) that are multiplied side by side. The number of panels
 * depends on the engine, and the last panels may be past the last row of B. */
typedef struct strip {
    /* A work unit is a range of columns of D that one thread computes. `col` is the first column of
     * the work unit. This strip (a few panels of B) begins `at` columns after it. */
    int64_t col, at;
    /* `next` is the first column of the range of D's columns that the thread will compute next. If
     * there is no such range, `next` lies past the last column of D. */
    int64_t next;
    const scratch *to;
    /* Bit p is 1 if panel p must be packed, because scales are NaN, negative or too far apart. */
    uint32_t packed;
} strip;

/* multiply_copied copies at most COPY_BYTES bytes of B at once, so that the copy stays in L1
 * together with the other data of the loop. It copies at least BSMM_SMALL_M_GROUP steps (32
 * elements of K each), i.e. up to MOST_COPY_BYTES bytes with f32, the widest elements. READ_PAST
 * bytes after the copy must be readable, because `multiply` reads several steps at once. */
enum {
    COPY_BYTES = 16384,
    MOST_COPY_BYTES = BSMM_SMALL_M_PANELS * LANES * BSMM_SMALL_M_GROUP * BSMM_SMALL_M_STEP * 4,
    READ_PAST = BSMM_SMALL_M_GROUP * BSMM_SMALL_M_STEP
};
_Static_assert(MOST_COPY_BYTES >= COPY_BYTES, "the copy holds COPY_BYTES");

static bool is_compact(const product_run *x) {
    return x->p->b.m.order == BSMM_ORDER_COMPACT;
}

/* Returns the address of a row of B. In compact order, `row` must be the first of 16 rows that are
 * stored together. */
static const uint8_t *row_at(const product_run *x, int64_t row) {
    return (const uint8_t *)x->p->b.m.data + row * x->m->pitch;
}

/* Returns the number of steps (32 elements of K each) whose codes are copied at once. The number is
 * a multiple of BSMM_SMALL_M_GROUP. */
static int64_t copied_steps(const product_run *x) {
    const int64_t group = x->d->panels * LANES * x->m->step_bytes * BSMM_SMALL_M_GROUP;
    return (group < COPY_BYTES ? COPY_BYTES / group : 1) * BSMM_SMALL_M_GROUP;
}

/* Multiplies the steps (32 elements of K each) from number `step` to the end of K, reading B from a
 * padded copy. The copy is necessary in three cases: a panel (16 rows of B) extends past the last
 * row of B, the steps of K are no multiple of BSMM_SMALL_M_GROUP, or B is in compact order and the
 * multiply loop reads only row order. */
static uint32_t multiply_copied(const product_run *x, const strip *t, int64_t step,
                                const bsmm_small_m_span *whole) {
    _Alignas(64) uint8_t copy[MOST_COPY_BYTES + READ_PAST];
    int64_t at_once = copied_steps(x);
    uint32_t unusual = 0;
    for (; step < x->m->used_steps; step += at_once) {
        int64_t steps = bsmm_min_i64(at_once, x->m->used_steps - step);
        int64_t from = step * x->m->step_bytes, pitch = steps * x->m->step_bytes;
        int64_t bytes = bsmm_min_i64(pitch, x->m->row_bytes - from);
        if (bytes < pitch) memset(copy, 0, (size_t)(x->d->panels * LANES * pitch));
        for (int64_t p = 0; p < x->d->panels; p++)
            bsmm_small_m_copy_panel(&x->p->b,
                                    bsmm_min_i64(t->col + t->at + p * LANES, x->p->b.m.rows - 1),
                                    from, bytes, copy + p * LANES * pitch, pitch);
        int64_t k = step * BSMM_SMALL_M_STEP;
        bsmm_small_m_span span = *whole;
        span.a += (uint64_t)(k / x->d->unit) * x->d->a_unit_bytes;
        span.b = span.next = copy;
        span.compact = false;
        span.pitch = pitch;
        span.panel_pitch = LANES * pitch;
        span.lead = 0;
        span.codes += k / x->d->scale_unit * LANES;
        if (span.scales) span.scales += k / x->d->scale_unit * LANES;
        span.steps = span.row_steps = steps;
        span.first = x->m->chunk_steps ? step % x->m->chunk_steps : 0;
        span.ends = step + steps == x->m->used_steps;
        unusual |= x->d->multiply(&span);
    }
    return unusual;
}

/* A strip is the panels that the thread multiplies side by side. Returns the first row of B of the
 * strip that the thread will multiply `count` strips later, or that of the current strip if there
 * is no such strip. */
static int64_t later_row(const product_run *x, const strip *t, int64_t count) {
    int64_t rows = x->d->panels * LANES, at = t->at + count * rows;
    int64_t row = at < COLUMNS ? t->col + at : t->next + at - COLUMNS;
    return row + rows <= x->p->b.m.rows ? row : t->col + t->at;
}

static uint32_t multiply_stored(const product_run *x, const strip *t) {
    int64_t row = t->col + t->at;
    bool compact = is_compact(x), whole = row + x->d->panels * LANES <= x->p->b.m.rows;
    /* In compact order, rows 16 i to 16 i + 15 of B are stored together. A panel (16 rows) that
     * begins at another row is copied to row order first. Such a panel can occur if the ups of a
     * gated activation, f(gate) * up, are the second half of B's rows. */
    whole = whole && (!compact || (x->d->reads_compact && row % LANES == 0));
    int64_t direct = whole ? x->m->whole_steps : 0;
    /* The loop prefetches rows of a later strip (the panels that are multiplied side by side). With
     * short rows, a prefetch of the next strip would come too late. */
    int64_t rows = x->d->panels * LANES;
    int64_t row_bytes = direct * x->m->step_bytes * (compact ? LANES : 1);
    int64_t later = later_row(x, t, x->m->strips_ahead);
    uint32_t unusual = 0;
    for (int64_t tile = 0; tile < x->m->tiles; tile++) {
        bsmm_small_m_span span = {
            .a = x->a + (uint64_t)tile * x->m->tile_bytes,
            .b = row_at(x, row),
            .compact = compact,
            .pitch = compact ? BSMM_SMALL_M_GROUP * x->m->step_bytes : x->m->pitch,
            .panel_pitch = LANES * x->m->pitch,
            .next = row_at(x, later),
            .lead = bsmm_min_i64(compact ? strip_ahead / x->d->panels : ahead / rows, row_bytes),
            .codes = t->to->codes,
            .scales = has_float_scales(x->p) ? t->to->scales : NULL,
            .scale_pitch = x->m->scale_units * LANES,
            .steps = direct,
            .row_steps = direct,
            .chunk_steps = x->m->chunk_steps,
            .ends = direct == x->m->used_steps,
            .context = x->m->context,
            .acc = t->to->acc + tile * x->d->width * COLUMNS + t->at,
            .part = t->to->part};
        if (direct > 0) unusual |= x->d->multiply(&span);
        if (direct < x->m->used_steps) unusual |= multiply_copied(x, t, direct, &span);
    }
    return unusual;
}

/* Multiplies one tile of A by the packed panel of B in to->packed. Adds the products to `acc`, the
 * accumulators of the panel's 16 columns of D. If K is divided into chunks, the function first sums
 * each chunk from 0 in to->part, and then adds this sum to `acc`. */
static void multiply_packed_tile(const product_run *x, const scratch *to, const uint8_t *a,
                                 float *acc) {
    int64_t units = bsmm_ceil_div(x->p->a.m.cols, x->d->unit), width = x->d->width;
    int64_t chunk = x->m->chunk_steps * BSMM_SMALL_M_STEP / x->d->unit;
    if (!chunk) {
        x->d->multiply_packed(a, to->packed, width, units, acc);
        return;
    }
    for (int64_t u = 0; u < units; u += chunk) {
        memset(to->part, 0, part_bytes(x->m));
        x->d->multiply_packed(a + (uint64_t)u * x->d->a_unit_bytes,
                              to->packed + (uint64_t)u * x->d->b_unit_bytes, width,
                              bsmm_min_i64(chunk, units - u), to->part);
        for (int64_t r = 0; r < width; r++)
            for (int64_t lane = 0; lane < LANES; lane++)
                acc[r * COLUMNS + lane] += to->part[r * COLUMNS + lane];
    }
}

static void multiply_packed(const product_run *x, const scratch *to, int64_t col, int64_t at) {
    bsmm_panel panel = {to->packed, to->factors + at, to->wide + at};
    int64_t rows = bsmm_min_i64(LANES, x->p->b.m.rows - col - at);
    for (int64_t lane = 0; lane < LANES; lane++)
        panel.factors[lane] = 1;
    x->d->pack_b(x->p, col + at, rows, &panel);
    for (int64_t r = 0; r < x->m->tiles * x->d->width; r++)
        memset(to->acc + r * COLUMNS + at, 0, LANES * sizeof(float));
    for (int64_t tile = 0; tile < x->m->tiles; tile++)
        multiply_packed_tile(x, to, x->a + (uint64_t)tile * x->m->tile_bytes,
                             to->acc + tile * x->d->width * COLUMNS + at);
}

/* Gathers the scales of one panel (16 rows of B) and checks them. Returns false if the panel must
 * be packed, because its scales are, for example, NaN, negative or too far apart. */
static bool prepare_panel(const product_run *x, const scratch *to, int64_t col, int64_t at,
                          int64_t p) {
    int64_t begin = p * x->m->scale_units * LANES;
    bsmm_small_m_scales s = {.p = x->p,
                             .row = col + at,
                             .rows = bsmm_min_i64(LANES, x->p->b.m.rows - col - at),
                             .units = x->m->scale_units,
                             .used = x->m->used_scales,
                             .chunk = x->m->chunk_scales,
                             .codes = to->codes + begin,
                             .scales = to->scales + begin,
                             .factors = to->factors + at,
                             .wide = to->wide + at,
                             .a_wide = bsmm_gemm_widest(x->a_wide, x->p->a.m.rows)};
    double global = bsmm_operand_global(&x->p->b);
    for (int64_t lane = 0; lane < LANES; lane++) {
        s.factors[lane] = global;
        to->wide[at + lane] = 0;
    }
    if (x->p->b.m.format.scale != BSMM_SCALE_NONE)
        bsmm_small_m_gather(&s, x->scale_columns, x->run);
    return isfinite(global) && x->d->prepare(&s);
}

/* A panel of B whose scales are NaN, negative or too far apart is packed and multiplied later.
 * Until then it is multiplied as it is stored, together with the panels beside it, and its results
 * are discarded. Sets the panel's scales to 0, so that these results raise no floating-point
 * exceptions. */
static void clear_scales(const product_run *x, const scratch *to, int64_t p) {
    int64_t count = x->m->scale_units * LANES;
    if (has_float_scales(x->p))
        memset(to->scales + p * count, 0, (size_t)count * sizeof(float));
    else
        memset(to->codes + p * count, 0, (size_t)count);
}

static void run_strip(const product_run *x, const scratch *to, int64_t col, int64_t next,
                      int64_t at) {
    strip t = {.col = col, .at = at, .next = next, .to = to};
    int64_t panels = bsmm_min_i64(x->d->panels, bsmm_ceil_div(x->p->b.m.rows - col - at, LANES));
    for (int64_t p = 0; p < x->d->panels; p++) {
        bool there = p < panels && prepare_panel(x, to, col, at + p * LANES, p);
        if (there) continue;
        clear_scales(x, to, p);
        if (p < panels) t.packed |= 1u << p;
    }
    if (t.packed != (1u << panels) - 1) t.packed |= multiply_stored(x, &t);
    for (int64_t p = 0; p < panels; p++)
        if (t.packed & 1u << p) multiply_packed(x, to, col, at + p * LANES);
}

/* Sets the first `cols` accumulators of each row of A to 0. */
static void clear_columns(const bsmm_small_m *m, int64_t cols, float *acc) {
    if (cols == COLUMNS) {
        memset(acc, 0, acc_bytes(m));
        return;
    }
    for (int64_t r = 0; r < m->tiles * m->d.width; r++, acc += COLUMNS)
        for (int64_t i = 0; i < cols; i += LANES)
            memset(acc + i, 0, LANES * sizeof *acc);
}

static void multiply_columns(const product_run *x, const scratch *to, int64_t col, int64_t cols,
                             int64_t next) {
    int64_t rows = x->d->panels * LANES;
    clear_columns(x->m, bsmm_min_i64(bsmm_round_up(cols, rows), COLUMNS), to->acc);
    for (int64_t at = 0; at < cols; at += rows)
        run_strip(x, to, col, next, at);
}

/* Runs the epilogue of a work unit (a range of columns) if the gates and ups of a gated activation,
 * f(gate) * up, are two halves of the columns of A x B^T. For a range of gates, the function only
 * computes the gates and keeps them for the ups. */
static void store_half(const product_run *x, const scratch *to, bsmm_gemm_row row, bool are_gates) {
    for (int64_t r = 0; r < x->p->a.m.rows; r++, row.r++, row.acc += COLUMNS) {
        double *gates = to->gates + r * COLUMNS;
        row.factor = x->a_factors[r];
        row.wide = x->a_wide[r];
        row.gates = gates;
        if (are_gates)
            bsmm_gemm_sum_row(x->p, &row, gates);
        else
            bsmm_gemm_store_row(x->p, &row, to->values);
    }
}

static void store_columns(const product_run *x, const scratch *to, int64_t col, int64_t cols,
                          bool are_gates) {
    const bsmm_gemm_row row = {.col = col,
                               .cols = cols,
                               .acc = to->acc,
                               .wide_limit = x->d->wide_limit,
                               .column_factors = to->factors,
                               .column_wide = to->wide};
    const bsmm_gemm_rows rows = {.rows = x->p->a.m.rows,
                                 .pitch = COLUMNS,
                                 .factors = x->a_factors,
                                 .wide = x->a_wide,
                                 .are_direct = x->is_direct};
    if (x->m->is_split)
        store_half(x, to, row, are_gates);
    else
        bsmm_gemm_store_rows(x->p, &row, &rows, to->values);
}

/* Computes a work unit, i.e. a fixed number of columns of D. A gated activation f(gate) * up may
 * have its gates in the first half of the columns of A x B^T and its ups in the second half. The
 * function then multiplies the unit's gates first and the ups that belong to them after that. */
static void run_columns(const product_run *x, int thread, int64_t col, int64_t next) {
    const scratch to = place_scratch(x, thread);
    int64_t cols = bsmm_min_i64(COLUMNS, x->m->cols - col), ups = x->m->cols + col;
    for (bool are_gates = x->m->is_split;; are_gates = false, col = ups) {
        multiply_columns(x, &to, col, cols, are_gates ? ups : next);
        store_columns(x, &to, col, cols, are_gates);
        if (!are_gates) return;
    }
}

/* This struct describes a product that several threads compute, and has the counters from which
 * they take tiles of A to pack and work units (ranges of columns of D) to compute. */
typedef struct shared_run {
    const product_run *x;
    bsmm_items *tiles_taken, *columns_taken;
} shared_run;

static void pack_free_tiles(const shared_run *s) {
    for (int64_t i; (i = bsmm_items_take(s->tiles_taken, 1)) < s->x->m->tiles;)
        pack_tile(s->x, i);
}

/* Computes work units (ranges of D's columns) until none is left. A thread takes its next unit
 * before it computes the current one, so that it can prefetch the next unit's rows of B. */
static void run_free_columns(const shared_run *s, int worker) {
    int64_t col = bsmm_items_take(s->columns_taken, COLUMNS);
    while (col < s->x->m->cols) {
        int64_t next = bsmm_items_take(s->columns_taken, COLUMNS);
        run_columns(s->x, worker, col, next);
        col = next;
    }
}

/* Does one thread's work. In phase 0 the threads pack A. In phase 1 each thread takes one work unit
 * (range of columns of D) after another. */
static void work(const void *context, int phase, int worker) {
    if (phase == 0)
        pack_free_tiles(context);
    else
        run_free_columns(context, worker);
}

static bsmm_status run_shared(const product_run *x) {
    bsmm_items taken[2] = {0};
    const shared_run s = {x, &taken[0], &taken[1]};
    const bsmm_job job = {.threads = x->m->threads, .phases = 2, .work = work, .context = &s};
    return bsmm_job_run(&job, &x->p->pool);
}

static void run_alone(const product_run *x) {
    for (int64_t i = 0; i < x->m->tiles; i++)
        pack_tile(x, i);
    for (int64_t col = 0; col < x->m->cols; col += COLUMNS)
        run_columns(x, 0, col, col + COLUMNS);
}

bsmm_status bsmm_small_m_run(const bsmm_small_m *m, const bsmm_product *p, void *workspace) {
    if (m->d.multiply_tiny && m->d.multiply_tiny(p, m->context)) return BSMM_OK;
    product_run x = {.m = m, .d = &m->d, .p = p, .is_direct = bsmm_cpu_epilogue_is_direct(p)};
    place(&x, workspace);
    if (p->b.m.format.scale != BSMM_SCALE_NONE)
        x.run = bsmm_small_m_find_columns(p, m->d.scale_unit, m->scale_units, x.scale_columns);
    if (m->threads > 1) return run_shared(&x);
    run_alone(&x);
    return BSMM_OK;
}
