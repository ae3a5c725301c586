/* The two builds' times, run after run of the one and of the other. */
#include "compare.h"
#include "cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct timed {
    const char *formats[3]; /* of A, B, D */
    int64_t sizes[3];       /* M, N, K */
    bool packed, host;      /* host: on a GPU, what a run costs its caller */
} timed;

#define PRODUCT(a, b, d, m, n, k) .formats = {a, b, d}, .sizes = {m, n, k}
#define TINY(a, b)                                                                                 \
    {PRODUCT(a, b, "f32", 8, 8, 32), .host = true},                                                \
        {PRODUCT(a, b, "f32", 16, 64, 64), .host = true}, {                                        \
        PRODUCT(a, b, "f32", 128, 128, 128), .host = true                                          \
    }
#define FEW_ROWS(a, b)                                                                             \
    {PRODUCT(a, b, "bf16", 1, 1024, 2048)}, {                                                      \
        PRODUCT(a, b, "bf16", 8, 1024, 2048)                                                       \
    }
static const timed rows[] = {
    TINY("mxfp8", "mxfp8"),
    TINY("mxfp4", "mxfp4"),
    TINY("nvfp4", "nvfp4"),
    TINY("bf16", "mxfp4"),
    TINY("fp8_group128", "fp8_block128"),
    TINY("f32", "f32"),
    FEW_ROWS("bf16", "mxfp4"),
    FEW_ROWS("bf16", "nvfp4"),
    FEW_ROWS("bf16", "fp8_block128"),
    FEW_ROWS("mxfp8", "mxfp4"),
    FEW_ROWS("mxfp8", "mxfp8"),
    {PRODUCT("mxfp4", "mxfp4", "f32", 256, 512, 512)},
    {PRODUCT("mxfp6_e2m3", "mxfp6_e2m3", "f32", 256, 512, 512)},
    {PRODUCT("mxfp6_e3m2", "mxfp6_e3m2", "f32", 256, 512, 512)},
    {PRODUCT("mxfp8", "mxfp8", "f32", 256, 512, 512)},
    {PRODUCT("mxfp8_e5m2", "mxfp8_e5m2", "f32", 256, 512, 512)},
    {PRODUCT("nvfp4", "nvfp4", "bf16", 256, 512, 512)},
    {PRODUCT("fp8_group128", "fp8_block128", "bf16", 256, 512, 512)},
    {PRODUCT("mxfp8", "mxfp4", "bf16", 256, 512, 512)},
    {PRODUCT("bf16", "bf16", "bf16", 256, 512, 512)},
    {PRODUCT("f32", "f32", "f32", 256, 512, 512)},
    {PRODUCT("bf16", "mxfp8", "bf16", 256, 512, 512)},
    {PRODUCT("bf16", "mxfp4", "bf16", 256, 512, 512), .packed = true},
    {PRODUCT("mxfp8", "mxfp8", "mxfp8", 256, 512, 512)},
    {PRODUCT("mxfp4", "mxfp4", "f32", 1024, 1024, 1024)},
    {PRODUCT("mxfp8", "mxfp8", "bf16", 1024, 1024, 1024)},
};

/* ---- batches ---- */

typedef struct contender {
    session *s;
    prepared plan;
    size_t runs;            /* of a batch */
    bench_cuda_graph graph; /* of a GPU, if not the host is timed */
} contender;

static bool queue_run(void *context, size_t turn) {
    contender *c = context;
    (void)turn;
    return c->plan.build->plan_run(c->plan.plan, &c->plan.buffers) == BSMM_OK;
}

/* Seconds of a run; 0: it failed. */
static double time_batch(contender *c, bool graph) {
    if (graph) {
        bench_samples seconds = {0};
        bool done = bench_cuda_time(memory_cuda(c->s->memory), &c->graph, &seconds);
        double took = done ? seconds.values[0] : 0;
        bench_samples_destroy(&seconds);
        return took;
    }
    bool done = true;
    double began = bench_now();
    for (size_t i = 0; i < c->runs && done; i++)
        done = queue_run(c, i);
    double took = bench_now() - began;
    if (memory_cuda(c->s->memory)) bench_cuda_wait(memory_cuda(c->s->memory));
    return done ? took / (double)c->runs : 0;
}

/* As many runs as take 2 ms; on a GPU whose host is timed no more than its queue holds. */
static bool calibrate(contender *c, contender *other) {
    static const double wanted = 2e-3;
    enum { MOST = 1 << 16, QUEUE = 256 };
    double took = 0;
    c->runs = 1;
    for (int i = 0; i < 3; i++)
        if ((took = time_batch(c, false)) <= 0) return false;
    double runs = wanted / took;
    size_t most = memory_cuda(c->s->memory) ? QUEUE : MOST;
    c->runs = runs < 1 ? 1 : runs > (double)most ? most : (size_t)runs;
    other->runs = c->runs;
    return true;
}

/* ---- pairs ---- */

typedef struct verdict {
    double seconds[BUILDS], ratio, error; /* medians; of new / old */
    size_t kept;
} verdict;

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *sorted, size_t count, double q) {
    return count ? sorted[(size_t)(q * (double)(count - 1) + 0.5)] : 0;
}

static double median_of(const double *values, size_t count) {
    double *sorted = malloc((count + 1) * sizeof *sorted), middle;
    if (!sorted) exit(2);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    middle = quantile(sorted, count, 0.5);
    free(sorted);
    return middle;
}

/* A pair of which a half took a tenth longer than such halves do was disturbed. */
static verdict judge(double *seconds[BUILDS], size_t count) {
    verdict v = {.kept = 0};
    double *ratios = malloc((count + 1) * sizeof *ratios);
    if (!ratios) exit(2);
    for (int i = 0; i < BUILDS; i++)
        v.seconds[i] = median_of(seconds[i], count);
    for (size_t i = 0; i < count; i++)
        if (seconds[OLD][i] < 1.1 * v.seconds[OLD] && seconds[NEW][i] < 1.1 * v.seconds[NEW])
            ratios[v.kept++] = seconds[NEW][i] / seconds[OLD][i];
    qsort(ratios, v.kept, sizeof *ratios, compare_doubles);
    v.ratio = quantile(ratios, v.kept, 0.5);
    /* Of a median: 1.25 standard deviations of a value, here from the quartiles, over sqrt(n). */
    v.error = 1.25 * (quantile(ratios, v.kept, 0.75) - quantile(ratios, v.kept, 0.25)) / 1.35 /
              sqrt((double)v.kept + 1e-9);
    free(ratios);
    return v;
}

static bool time_pairs(contender *both, bool graph, int pairs, verdict *v) {
    double *seconds[BUILDS];
    bool done = true;
    for (int i = 0; i < BUILDS; i++)
        if (!(seconds[i] = malloc((size_t)pairs * sizeof **seconds))) exit(2);
    for (int i = 0; i < pairs && done; i++)
        for (int turn = 0; turn < BUILDS && done; turn++) {
            int build = (turn + i) % BUILDS; /* each is as often the first */
            seconds[build][i] = time_batch(&both[build], graph);
            done = seconds[build][i] > 0;
        }
    if (done) *v = judge(seconds, (size_t)pairs);
    for (int i = 0; i < BUILDS; i++)
        free(seconds[i]);
    return done;
}

/* ---- rows of the table ---- */

static bool prepare_graphs(session *s, contender *both) {
    bench_cuda *cuda = memory_cuda(s->memory);
    if (!bench_cuda_record_sets(cuda, queue_run, &both[OLD], 1, &both[OLD].graph)) return false;
    return bench_cuda_record(cuda, queue_run, &both[NEW], both[OLD].graph.turns, &both[NEW].graph);
}

static bool time_both(session *s, contender *both, bool graph, verdict *v) {
    bool done = calibrate(&both[OLD], &both[NEW]) && time_batch(&both[NEW], false) > 0;
    if (done && graph) done = prepare_graphs(s, both);
    if (done) done = time_pairs(both, graph, s->options->pairs, v);
    for (int i = 0; graph && i < BUILDS; i++)
        bench_cuda_forget(memory_cuda(s->memory), &both[i].graph);
    return done;
}

static void print_row(const product_shape *p, bool host, const char *kernel, const verdict *v) {
    char name[96];
    snprintf(name, sizeof name, "%s x %s -> %s%s", bsmm_format_name(p->a.format),
             bsmm_format_name(p->b.format), bsmm_format_name(p->d.format),
             p->b_packed ? ", packed" : "");
    const char *mark = v->ratio - 1 > 0.01 && v->ratio - 1 > 3 * v->error   ? "  SLOWER"
                       : 1 - v->ratio > 0.01 && 1 - v->ratio > 3 * v->error ? "  faster"
                                                                            : "";
    printf("%-36s %5lldx%4lldx%4lld  %u%s %-26s %10.3f %10.3f  %.3f +- %.3f (%zu)%s\n", name,
           (long long)p->m, (long long)p->n, (long long)p->k, p->threads, host ? "h" : " ", kernel,
           v->seconds[OLD] * 1e6, v->seconds[NEW] * 1e6, v->ratio, v->error, v->kept, mark);
    fflush(stdout);
}

static product_shape shape_of(const timed *t, int threads) {
    product_shape p = {.m = t->sizes[0],
                       .n = t->sizes[1],
                       .k = t->sizes[2],
                       .threads = (uint32_t)threads,
                       .seed = 42};
    bsmm_format_from_name(t->formats[0], &p.a.format);
    bsmm_format_from_name(t->formats[1], &p.b.format);
    bsmm_format_from_name(t->formats[2], &p.d.format);
    p.b_packed = t->packed;
    return p;
}

/* Both get the same memory, the workspace too: where it lies changes times. */
static bool prepare_both(session *s, product *p, contender *both) {
    for (int i = 0; i < BUILDS; i++) {
        both[i] = (contender){.s = s};
        if (product_prepare(s, p, i, NULL, &both[i].plan)) return false;
    }
    bsmm_buffers *old = &both[OLD].plan.buffers, *new = &both[NEW].plan.buffers;
    if (old->workspace_bytes >= new->workspace_bytes)
        new->workspace = old->workspace;
    else
        old->workspace = new->workspace;
    return true;
}

static void time_row(session *s, const timed *t, int threads, bool graph) {
    product_shape shape = shape_of(t, threads);
    contender both[BUILDS] = {{.s = s}, {.s = s}};
    product p;
    verdict v;
    if (product_make(s, &shape, &p) && prepare_both(s, &p, both) && time_both(s, both, graph, &v))
        print_row(&shape, memory_cuda(s->memory) && !graph, both[NEW].plan.kernel, &v);
    else
        printf("%s x %s: not timed: %s\n", t->formats[0], t->formats[1],
               s->builds[NEW].error_message());
    for (int i = 0; i < BUILDS; i++)
        if (both[i].plan.plan) prepared_free(&both[i].plan);
    product_free(s, &p);
}

static int64_t operations(const timed *t) {
    return t->sizes[0] * t->sizes[1] * t->sizes[2];
}

void time_products(session *s) {
    bool gpu = memory_cuda(s->memory) != NULL;
    printf("\n%-36s %15s  %2s %-26s %10s %10s  new/old (pairs)\n", "product", "M x N x K", "T",
           "kernel", "old", "new");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int j = 0; j < 2 && s->options->threads[j]; j++) {
            if (gpu && j) continue;
            if (operations(&rows[i]) > s->options->largest) continue;
            time_row(s, &rows[i], s->options->threads[j], gpu);
            if (gpu && rows[i].host) time_row(s, &rows[i], s->options->threads[j], false);
        }
}
