/* Times two builds of the library. Batches of runs alternate between the two builds. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct timed {
    const char *formats[3]; /* `formats` holds the names of the formats of A, B and D. */
    int64_t sizes[3];       /* `sizes` holds the sizes M, N and K of the GEMM. */
    /* If `packed` is true, B is packed in advance. If `host` is true, the program measures how long
     * the host takes to queue a run on a GPU instead of the GPU's time. */
    bool packed, host;
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

typedef struct contender {
    session *s;
    prepared plan;
    size_t runs; /* `runs` is the number of runs of the plan in a batch. */
    /* A batch is several runs that are timed together. `graph` is a captured graph that contains
     * the runs of one batch on a GPU. It is not used if the host's time is measured. */
    bench_graph graph;
} contender;

static bool queue_run(void *context, size_t turn) {
    contender *c = context;
    (void)turn;
    return c->plan.build->plan_run(c->plan.plan, &c->plan.buffers) == BSMM_OK;
}

/* Times one batch of runs. Returns the time of one run in seconds, or 0 if a run failed. */
static double time_batch(contender *c, bool graph) {
    if (graph) {
        bench_samples seconds = {0};
        bool done = bench_device_time(c->s->device, &c->graph, &seconds);
        double took = done ? seconds.values[0] : 0;
        bench_samples_destroy(&seconds);
        return took;
    }
    bool done = true;
    double began = bench_now();
    for (size_t i = 0; i < c->runs && done; i++)
        done = queue_run(c, i);
    double took = bench_now() - began;
    bench_device_wait(c->s->device);
    return done ? took / (double)c->runs : 0;
}

/* Chooses the number of runs in a batch such that a batch takes 0.2 ms, which is less than a time
 * slice of the scheduler. If the host's time is measured, the length of the GPU's queue limits the
 * number of runs. */
static bool calibrate(contender *c, contender *other) {
    static const double wanted = 2e-4;
    enum { MOST = 1 << 16, QUEUE = 256 };
    double took = 0;
    c->runs = 1;
    for (int i = 0; i < 5; i++) {
        double again = time_batch(c, false);
        if (again <= 0) return false;
        took = i == 0 || again < took ? again : took;
    }
    double runs = wanted / took;
    size_t most = !c->s->device->kind->is_host ? QUEUE : MOST;
    c->runs = runs < 1 ? 1 : runs > (double)most ? most : (size_t)runs;
    other->runs = c->runs;
    return true;
}

typedef struct verdict {
    /* `seconds` has the median time of a run of each build. `ratio` is the new build's time
       divided by the old build's, and `error` is the error of this ratio. */
    double seconds[BUILDS], ratio, error;
    size_t kept;
} verdict;

typedef struct halves {
    double *seconds[BUILDS];
    size_t count;
} halves;

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *new_doubles(size_t count) {
    double *values = calloc(count + 1, sizeof *values);
    if (!values) exit(2);
    return values;
}

static double quantile(const double *values, size_t count, double q) {
    double *sorted = new_doubles(count);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    double value = count ? sorted[(size_t)(q * (double)(count - 1) + 0.5)] : 0;
    free(sorted);
    return value;
}

/* Batches of runs are timed in pairs: one batch of the old build and one of the new build. Other
 * programs sometimes disturb a batch. A batch counts as disturbed if its time is more than
 * `disturbed` times the lower quartile of the times of all batches of its build. The whole pair is
 * then discarded. */
static const double disturbed = 1.15;

static void discard(halves *pairs) {
    double most[BUILDS];
    size_t kept = 0;
    for (int i = 0; i < BUILDS; i++)
        most[i] = disturbed * quantile(pairs->seconds[i], pairs->count, 0.25);
    for (size_t i = 0; i < pairs->count; i++) {
        double old = pairs->seconds[OLD][i], new = pairs->seconds[NEW][i];
        if (old > most[OLD] || new > most[NEW]) continue;
        pairs->seconds[OLD][kept] = old;
        pairs->seconds[NEW][kept++] = new;
    }
    pairs->count = kept;
}

/* Each pair of batches gives a ratio: the new build's time divided by the old build's time.
 * Computes the median time of each build, the median of the n ratios, and the standard error of
 * this median. The standard error is 1.25 times the standard deviation of the ratios, divided by
 * sqrt(n). The standard deviation is estimated from the quartiles of the ratios, which single
 * disturbed batches hardly change. */
static verdict judge(halves *pairs) {
    discard(pairs);
    size_t count = pairs->count;
    verdict v = {.kept = count};
    double *ratios = new_doubles(count);
    for (size_t i = 0; i < count; i++)
        ratios[i] = pairs->seconds[NEW][i] / pairs->seconds[OLD][i];
    for (int i = 0; i < BUILDS; i++)
        v.seconds[i] = quantile(pairs->seconds[i], count, 0.5);
    v.ratio = quantile(ratios, count, 0.5);
    double spread = (quantile(ratios, count, 0.75) - quantile(ratios, count, 0.25)) / 1.35;
    v.error = count ? 1.25 * spread / sqrt((double)count) : 0;
    free(ratios);
    return v;
}

/* Returns the number of times that the scheduler has taken a processor away from a thread of this
 * process. */
static long interruptions(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

/* Times one pair of batches of runs, one with each of the two compared builds of the library.
 * Returns false if a run failed. If the scheduler interrupted a thread, the function discards the
 * times of the pair. */
static bool time_pair(contender *both, bool graph, int first, halves *pairs) {
    long before = interruptions();
    for (int turn = 0; turn < BUILDS; turn++) {
        int build = (turn + first) % BUILDS;
        double took = time_batch(&both[build], graph);
        pairs->seconds[build][pairs->count] = took;
        if (took <= 0) return false;
    }
    pairs->count += interruptions() == before;
    return true;
}

/* Times pairs of batches until `wanted` pairs ran without an interruption, or until a time limit
 * is reached. */
static bool time_pairs(contender *both, bool graph, int wanted, verdict *v) {
    static const double longest = 3;
    halves pairs = {.count = 0};
    bool done = true;
    for (int i = 0; i < BUILDS; i++)
        pairs.seconds[i] = new_doubles((size_t)wanted);
    double began = bench_now();
    for (int i = 0; done && pairs.count < (size_t)wanted && bench_now() - began < longest; i++)
        done = time_pair(both, graph, i % BUILDS, &pairs);
    if (done) *v = judge(&pairs);
    for (int i = 0; i < BUILDS; i++)
        free(pairs.seconds[i]);
    return done;
}

static bool prepare_graphs(session *s, contender *both) {
    bench_device *device = s->device;
    if (!bench_device_record_sets(device, queue_run, &both[OLD], 1, &both[OLD].graph)) return false;
    return bench_device_record(device, queue_run, &both[NEW], both[OLD].graph.turns,
                               &both[NEW].graph);
}

static bool time_both(session *s, contender *both, bool graph, verdict *v) {
    bool done = calibrate(&both[OLD], &both[NEW]) && time_batch(&both[NEW], false) > 0;
    if (done && graph) done = prepare_graphs(s, both);
    if (done) done = time_pairs(both, graph, s->options->pairs, v);
    for (int i = 0; graph && i < BUILDS; i++)
        bench_device_forget(s->device, &both[i].graph);
    return done;
}

/* Returns "SLOWER" or "faster" if the speeds of the two builds differ, and an empty text if not.
 * The difference must be larger than three times its measurement error. It must also be larger than
 * 2%, because the position of the same code in memory can change times by that much. If there were
 * too few measurements without disturbance, returns "disturbed". */
static const char *verdict_word(const verdict *v) {
    enum { LEAST = 10 };
    static const double placement = 0.02;
    double most = 3 * v->error > placement ? 3 * v->error : placement;
    if (v->kept < LEAST) return "  disturbed";
    return v->ratio - 1 > most ? "  SLOWER" : 1 - v->ratio > most ? "  faster" : "";
}

static void print_row(const product_shape *p, bool host, const char *kernel, const verdict *v) {
    char name[96];
    snprintf(name, sizeof name, "%s x %s -> %s%s", bsmm_format_name(p->a.format),
             bsmm_format_name(p->b.format), bsmm_format_name(p->d.format),
             p->b_packed ? ", packed" : "");
    printf("%-36s %5lldx%4lldx%4lld  %u%s %-26s %10.3f %10.3f  %.3f +- %.3f (%zu)%s\n", name,
           (long long)p->m, (long long)p->n, (long long)p->k, p->threads, host ? "h" : " ", kernel,
           v->seconds[OLD] * 1e6, v->seconds[NEW] * 1e6, v->ratio, v->error, v->kept,
           verdict_word(v));
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

/* Prepares the plans of the old and the new build of the library with the same operands and
 * workspace, because different memory addresses would change the times. */
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
        print_row(&shape, !s->device->kind->is_host && !graph, both[NEW].plan.kernel, &v);
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
    bool gpu = !s->device->kind->is_host;
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
