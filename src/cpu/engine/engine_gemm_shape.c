/* Chooses how an engine with packed operands computes a product: the number of threads, the size of
 * the workspace, and three sizes. These are the size of D's cache blocks, the length of a chunk
 * (range of K), and the size of a slab (panels of B that are packed at a time). engine_gemm.c
 * explains the terms. */
#include "cpu/engine/engine_gemm.h"

#include "base/cpu.h"

typedef bsmm_gemm_side side;
typedef bsmm_gemm gemm;

static side measure_side(int64_t rows, int64_t width, int64_t units, uint64_t unit_bytes) {
    side s = {.rows = rows, .panels = bsmm_ceil_div(rows, width), .width = width};
    s.panel_bytes = (uint64_t)units * unit_bytes;
    return s;
}

static uint64_t side_bytes(const side *s) {
    uint64_t padded = (uint64_t)(s->panels * s->width);
    return (uint64_t)s->panels * s->panel_bytes + bsmm_align64(padded * sizeof(double)) +
           bsmm_align64(padded);
}

/* These two constants give the size of the workspace for packed panels of B, as a multiple of the
 * L2 caches of all threads together. With few rows of A (caches_of_few), each thread packs one
 * cache block of B at a time and multiplies it while it is in L2. With many rows of A
 * (caches_of_many), all threads share one slab, i.e. the panels of B that are packed at a time. At
 * the end of each slab they wait for each other, and for the next slab they read all of A again.
 * Slabs should therefore be large. */
static const uint64_t caches_of_few = 1, caches_of_many = 32;

static bool has_few_rows(const gemm *g) {
    return g->a.rows <= g->engine->mc;
}

static uint64_t bytes_of_panel(const gemm *g) {
    side panel = {.panels = 1, .width = g->engine->nr, .panel_bytes = g->b.panel_bytes};
    return side_bytes(&panel);
}

/* Returns the number of workspace bytes for packed panels of B. It is proportional to the total
 * size of the threads' L2 caches, but not less than the minimum below and not more than all panels
 * of B take. The minimum is one panel for each thread if A has few rows, else the panels of one
 * cache block plus one panel for each thread. If D is block-scaled, the minimum is the panels of
 * one cache block for each thread. The number never decreases if M, N, K or the number of threads
 * grows, because a plan's workspace must suffice for a smaller GEMM too.
 *
 * If the gates and the ups of a gated activation are two halves of B's rows, a slab has two ranges
 * of B's rows. The number of panels per thread is then doubled. A narrow range of a column-major B
 * would be slow to read, because it uses a small part of each cache line. With half of this memory,
 * products of two rows of A and a column-major bf16 or mxfp8 B took 1.1 to 1.2 times as long on a
 * Zen 4. */
static uint64_t slab_bytes(const gemm *g, const bsmm_product *p) {
    static const uint64_t unknown = 1 << 20;
    const bsmm_engine *e = g->engine;
    uint64_t cache = bsmm_cpu_l2_bytes() ? bsmm_cpu_l2_bytes() : unknown;
    uint64_t threads = (uint64_t)g->threads, block = (uint64_t)(e->nc / e->nr);
    uint64_t own = threads * (g->is_split ? 2 : 1);
    uint64_t bytes = cache * (has_few_rows(g) ? own * caches_of_few : threads * caches_of_many);
    uint64_t panels = p->recipe ? threads * block : has_few_rows(g) ? own : own + block;
    uint64_t least = panels * bytes_of_panel(g);
    if (bytes < least) bytes = least;
    return bytes < side_bytes(&g->b) ? bsmm_align64(bytes) : side_bytes(&g->b);
}

/* Returns the number of panels of B (nr packed rows each) in a slab, i.e. that are packed at a
 * time. All panels of B form one slab if the memory for packed panels has room for them. Otherwise
 * a slab has as many panels as fit. With few rows of A, each thread packs slabs of its own, so the
 * memory is first divided among the threads. */
static int64_t count_panels(const gemm *g) {
    uint64_t share = has_few_rows(g) ? g->b_bytes / (uint64_t)g->threads : g->b_bytes;
    return bsmm_gemm_is_one_slab(g) ? g->b.panels : (int64_t)(share / bytes_of_panel(g));
}

/* For a gated activation, f(gate) * up, whose gates and ups are the two halves of the columns of A
 * x B^T, a cache block of nc columns has some gates and the ups that belong to them. Returns the
 * number of gates. They fill whole panels of B, about half of the block. The ups may need one panel
 * more than the gates, because the first up may lie inside a panel. */
static int64_t count_gates(const bsmm_engine *e, int64_t nc) {
    int64_t gates = nc / 2 / e->nr * e->nr;
    return gates ? gates : e->nr;
}

static uint64_t count_gate_bytes(const gemm *g) {
    const bsmm_engine *e = g->engine;
    return g->is_split ? (uint64_t)(e->mc * count_gates(e, e->nc)) * sizeof(double) : 0;
}

/* Returns the bytes of a thread's scratch memory, which holds four arrays. The first has mc x nc
 * float accumulators, and later the values of a block-scaled D. The second is one row of doubles.
 * The third has the values of a cache block's gates. It is empty unless the product has a gated
 * activation f(gate) * up whose gates and ups are the two halves of the columns of A x B^T. The
 * fourth is a chunk of a panel of B that `widen` has expanded. A chunk may be longer if K is
 * smaller. The fourth array has room for the longest possible chunk, so that no GEMM needs more
 * workspace than one with a larger K. */
static uint64_t count_scratch(const gemm *g) {
    const bsmm_engine *e = g->engine;
    return (uint64_t)(e->mc * e->nc) * sizeof(float) + (uint64_t)e->nc * sizeof(double) +
           g->gate_bytes +
           (uint64_t)bsmm_min_i64(g->units, e->longest_chunk / e->unit) * e->widened_unit_bytes;
}

static bool halve(int64_t *length, int64_t tile) {
    bool even = *length / 2 >= tile && *length / 2 % tile == 0;
    if (even) *length /= 2;
    return even;
}

/* Returns the number of bytes that a cache block accesses. These are its accumulators and the
 * packed panels of A and B for one chunk, i.e. for the range of K that is multiplied at a time. */
static uint64_t block_bytes(const gemm *g) {
    const bsmm_engine *e = g->engine;
    return (uint64_t)g->chunk * ((uint64_t)(g->mc / e->mr) * e->a_unit_bytes +
                                 (uint64_t)(g->nc / e->nr) * e->b_unit_bytes) +
           (uint64_t)(g->mc * g->nc) * sizeof(float);
}

/* Chooses the size of cache blocks, mc rows of A by nc rows of B. It begins with the engine's sizes
 * and halves them until a block fits into L2 and there are about four blocks for every thread. A
 * block always has at least one panel (several packed rows) of A and one of B. If D is
 * block-scaled, the function keeps the engine's sizes, because a cache block must contain whole
 * scale blocks of D. */
static void choose_blocks(gemm *g, const bsmm_product *p) {
    const bsmm_engine *e = g->engine;
    uint64_t cache = bsmm_cpu_l2_bytes();
    g->mc = e->mc;
    g->nc = e->nc;
    if (p->recipe) return;
    while (cache && block_bytes(g) > cache && (halve(&g->nc, e->nr) || halve(&g->mc, e->mr)))
        continue;
    int64_t wanted = g->threads > 1 && !g->by_rows ? (int64_t)g->threads * 4 : 1;
    int64_t columns = has_few_rows(g) ? g->b.rows : bsmm_min_i64(g->b.rows, g->slab * e->nr);
    while (bsmm_ceil_div(g->a.rows, g->mc) * bsmm_ceil_div(columns, g->nc) < wanted &&
           (halve(&g->nc, e->nr) || halve(&g->mc, e->mr)))
        continue;
}

/* Chooses the number of panels in a slab, i.e. the panels of B that are packed at a time. All slabs
 * get about the same number of cache blocks. A last slab with only few cache blocks would leave
 * threads without work. If the gates and the ups of a gated activation are two halves of B's rows,
 * a slab holds as many ups as gates, and g->slab counts only the panels of the gates. */
static void choose_slabs(gemm *g) {
    int64_t nr = g->engine->nr;
    if (bsmm_gemm_is_one_slab(g)) return;
    if (g->is_split) g->slab /= 2;
    g->by_slabs = has_few_rows(g) && g->threads > 1 && !g->by_rows;
    g->nc = bsmm_min_i64(g->nc, g->slab * nr);
    int64_t block = g->nc / nr, blocks = bsmm_ceil_div(g->cols, g->nc);
    int64_t slabs = g->by_slabs ? blocks : bsmm_ceil_div(blocks, g->slab / block);
    g->slab = bsmm_ceil_div(blocks, slabs) * block;
}

/* Both limits count multiply-adds of a GEMM. The number of threads is so small that each of them
 * has at least least_of_thread, because waking a thread takes about a microsecond. A GEMM of at
 * most most_by_rows is divided by rows: each thread gets an equal part of A's rows. In a larger
 * GEMM, each thread takes the next cache block when it is free. This balances the load better, but
 * it needs barriers and moves cache lines between cores. */
static const double least_of_thread = 1 << 18, most_by_rows = 1 << 27;

static void choose_threads(gemm *g, const bsmm_product *p) {
    double work = (double)g->a.rows * (double)g->b.rows * (double)p->a.m.cols;
    int64_t tiles = g->a.panels * g->b.panels;
    int64_t most = bsmm_min_i64(tiles, (int64_t)(work / least_of_thread));
    if (g->threads > most) g->threads = most > 0 ? (int)most : 1;
    int64_t longest = bsmm_ceil_div(g->a.panels, g->threads) * g->threads;
    g->by_rows =
        g->threads > 1 && !p->recipe && work <= most_by_rows && longest * 7 <= g->a.panels * 8;
}

gemm bsmm_gemm_make(const bsmm_engine *engine, const bsmm_product *p) {
    gemm g = {.engine = engine, .threads = p->threads, .is_split = bsmm_gemm_is_split(p)};
    g.cols = g.is_split ? p->d.m.cols : p->b.m.rows;
    g.units = bsmm_ceil_div(p->a.m.cols, engine->unit);
    g.chunk = bsmm_gemm_chunk(engine->longest_chunk, p->a.m.cols) / engine->unit;
    g.chunk = bsmm_min_i64(g.chunk, g.units);
    g.a = measure_side(p->a.m.rows, engine->mr, g.units, engine->a_unit_bytes);
    g.b = measure_side(p->b.m.rows, engine->nr, g.units, engine->b_unit_bytes);
    choose_threads(&g, p);
    g.packed_b_bytes = side_bytes(&g.b);
    g.b_bytes = p->b_packed ? g.packed_b_bytes : slab_bytes(&g, p);
    g.slab = count_panels(&g);
    choose_blocks(&g, p);
    if (g.is_split) g.nc = count_gates(engine, g.nc);
    choose_slabs(&g);
    g.gate_bytes = count_gate_bytes(&g);
    g.scratch_bytes = count_scratch(&g);
    g.workspace_bytes =
        side_bytes(&g.a) + (p->b_packed ? 0 : g.b_bytes) + (uint64_t)g.threads * g.scratch_bytes;
    return g;
}

const char *bsmm_gemm_refuse_output(const bsmm_engine *engine, const bsmm_product *p, char *why,
                                    size_t size) {
    const bsmm_format *f = &p->d.m.format;
    int64_t cols = !bsmm_is_gated(p)          ? engine->nc
                   : p->epilogue->interleaved ? engine->nc / 2
                                              : count_gates(engine, engine->nc);
    if (!p->recipe || (engine->mc % f->block_rows == 0 && cols % f->block_cols == 0)) return NULL;
    return bsmm_reason(why, size,
                       "D's blocks of %u x %u do not divide its cache blocks of %lld x %lld",
                       f->block_rows, f->block_cols, (long long)engine->mc, (long long)cols);
}
