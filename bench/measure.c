#include "measure.h"
#include "data.h"
#include "validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* In each round a contender runs for at least this long, and at least once. */
static const double round_seconds = 0.02;
/* Idle threads of OpenMP and OpenBLAS spin for up to 2^26 cycles; they must sleep before others are
 * timed. */
static const struct timespec settle = {.tv_nsec = 40000000};

enum { FIRST_SEED = 42 }; /* the tutorial's */

typedef struct samples {
    double *values;
    size_t count, capacity;
} samples;

static bsmm_status samples_add(samples *s, double value) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        double *values = realloc(s->values, capacity * sizeof *values);
        if (!values) return BSMM_E_MEMORY;
        s->values = values;
        s->capacity = capacity;
    }
    s->values[s->count++] = value;
    return BSMM_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double samples_median(samples *s) {
    if (s->count == 0) return 0;
    qsort(s->values, s->count, sizeof *s->values, compare_doubles);
    return (s->values[(s->count - 1) / 2] + s->values[s->count / 2]) / 2;
}

static double samples_best(const samples *s) {
    double best = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->values[i] > best) best = s->values[i];
    return best;
}

/* Everything that the runs of one job need. */
typedef struct bench {
    const bench_job *job;
    bsmm_matrix a, b, d, a_wide, b_wide, c_wide; /* wide: fp32, for the peer and the check */
    bsmm_plan *plan;
    bsmm_buffers buffers;
    const bench_probe *ceiling;
    samples ours, peers, ceilings;
} bench;

static bsmm_status make_operand(bsmm_matrix *m, bsmm_matrix *wide, bsmm_format format, int64_t rows,
                                int64_t cols, uint64_t seed) {
    static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};
    bsmm_status status = bench_matrix_create(m, format, rows, cols);
    if (!status) status = bench_matrix_create(wide, f32, rows, cols);
    if (!status) status = bench_matrix_fill(m, seed);
    return status ? status : bsmm_dequantize(m, wide);
}

static bsmm_status make_matrices(bench *b) {
    const bench_job *job = b->job;
    static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};
    int64_t m = job->sizes[0], n = job->sizes[1], k = job->sizes[2];
    bsmm_status status = make_operand(&b->a, &b->a_wide, job->a, m, k, FIRST_SEED);
    if (!status) status = make_operand(&b->b, &b->b_wide, job->b, n, k, FIRST_SEED + 1);
    if (!status) status = bench_matrix_create(&b->d, job->out, m, n);
    if (!status && job->peer) status = bench_matrix_create(&b->c_wide, f32, m, n);
    return status;
}

static bsmm_status make_plan(bench *b) {
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &b->a, desc.b = &b->b, desc.d = &b->d;
    desc.kernel = b->job->kernel;
    desc.device = b->job->device;
    desc.threads = (uint32_t)b->job->threads;
    bsmm_status status = bsmm_plan_create(&desc, &b->plan);
    if (status) return status;
    b->buffers = BSMM_INIT(bsmm_buffers);
    b->buffers.a = b->a.data, b->buffers.a_scales = b->a.scales;
    b->buffers.b = b->b.data, b->buffers.b_scales = b->b.scales;
    b->buffers.d = b->d.data;
    b->buffers.workspace_bytes = bsmm_plan_workspace_bytes(b->plan);
    b->buffers.workspace = aligned_alloc(64, (b->buffers.workspace_bytes / 64 + 1) * 64);
    return b->buffers.workspace ? BSMM_OK : BSMM_E_MEMORY;
}

/* The unit that the product could use on a processor with AVX-512's dot products; the probe falls
 * back where this one lacks it. */
static bsmm_status choose_ceiling(bench *b) {
    bsmm_sol_estimate estimate = BSMM_INIT(bsmm_sol_estimate);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &b->a, desc.b = &b->b, desc.d = &b->d;
    bsmm_status status = bsmm_estimate_sol("zen4-2c", &desc, &estimate);
    if (!status) b->ceiling = bench_probe_of(estimate.unit);
    return status;
}

/* ---- contenders: one run each ---- */

static bsmm_status run_ours(bench *b) {
    return bsmm_plan_run(b->plan, &b->buffers);
}

static bsmm_status run_peer(bench *b) {
    bench_openblas_run(b->job->peer, b->job->sizes, b->a_wide.data, b->b_wide.data, b->c_wide.data);
    return BSMM_OK;
}

static bsmm_status time_runs(bench *b, bsmm_status (*run)(bench *), samples *to) {
    nanosleep(&settle, NULL);
    double started = bench_now(), last = started;
    do {
        bsmm_status status = run(b);
        double now = bench_now();
        if (!status) status = samples_add(to, now - last);
        if (status) return status;
        last = bench_now();
    } while (last - started < round_seconds);
    return BSMM_OK;
}

static bsmm_status time_ceiling(bench *b) {
    nanosleep(&settle, NULL);
    return samples_add(&b->ceilings, bench_probe_run(b->ceiling, b->job->threads));
}

static bsmm_status time_all(bench *b, bench_result *result) {
    const bench_job *job = b->job;
    bsmm_status status = job->peer ? run_peer(b) : BSMM_OK; /* touches its memory, as ours has */
    for (int round = 0; round < job->rounds && !status; round++) {
        status = time_runs(b, run_ours, &b->ours);
        if (!status && job->peer) status = time_runs(b, run_peer, &b->peers);
        if (!status) status = time_ceiling(b);
        if (job->tick) job->tick(job->tick_context);
    }
    result->seconds = samples_median(&b->ours);
    result->peer_seconds = samples_median(&b->peers);
    result->ceiling_rate = samples_best(&b->ceilings);
    return status;
}

static bsmm_status measure(bench *b, bench_result *result) {
    const int64_t *sizes = b->job->sizes;
    bsmm_status status = make_matrices(b);
    if (!status) status = make_plan(b);
    if (!status) status = choose_ceiling(b);
    if (!status) status = run_ours(b);
    if (status) return status;
    snprintf(result->kernel, sizeof result->kernel, "%s", bsmm_plan_kernel(b->plan));
    result->ceiling = b->ceiling->name;
    result->operations = 2.0 * (double)sizes[0] * (double)sizes[1] * (double)sizes[2];
    bench_validate(&b->d, b->a_wide.data, b->b_wide.data, sizes[2], result);
    return result->failed ? BSMM_OK : time_all(b, result);
}

bsmm_status bench_measure(const bench_job *job, bench_result *result) {
    bench b = {.job = job};
    *result = (bench_result){0};
    bsmm_status status = measure(&b, result);
    free(b.buffers.workspace);
    bsmm_plan_destroy(b.plan);
    bsmm_matrix *all[] = {&b.a, &b.b, &b.d, &b.a_wide, &b.b_wide, &b.c_wide};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bench_matrix_destroy(all[i]);
    free(b.ours.values);
    free(b.peers.values);
    free(b.ceilings.values);
    return status;
}
