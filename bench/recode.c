#include "recode.h"
#include "data.h"
#include "memory.h"
#include "samples.h"

typedef struct recode {
    const bench_recode_job *job;
    bsmm_matrix from, to;
    /* `global` is the second-level scale that the recipe chose, if the format has one. */
    float global;
    float amax; /* `amax` is the largest magnitude of the matrix `from`. */
    bench_memory memory;
    bench_samples seconds, rates;
} recode;

static bsmm_status quantize(void *context, size_t turn) {
    recode *r = context;
    (void)turn;
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = &r->from;
    desc.dst = &r->to;
    desc.recipe = r->job->recipe;
    desc.amax = r->job->amax ? &r->amax : NULL;
    desc.threads = (uint32_t)r->job->threads;
    return bsmm_quantize(&desc, NULL);
}

static bsmm_status dequantize(void *context, size_t turn) {
    recode *r = context;
    (void)turn;
    return bsmm_dequantize(&r->from, &r->to);
}

static bsmm_status relayout(void *context, size_t turn) {
    recode *r = context;
    (void)turn;
    return bsmm_relayout_scales(&r->from, &r->to);
}

bsmm_status bench_recode_matrices(const bench_recode_job *job, bsmm_matrix *from, bsmm_matrix *to,
                                  float *global) {
    bsmm_status status = bench_matrix_create(from, job->from, job->rows, job->cols);
    if (!status)
        status =
            bench_matrix_create_in(to, job->to, BSMM_ORDER_ROW, job->layout, job->rows, job->cols);
    if (!status) status = bench_matrix_fill(from, BENCH_FIRST_SEED);
    bsmm_matrix *scaled = job->to.scale ? to : from;
    *global = 1;
    if (!job->relayout && scaled->format.scale == BSMM_SCALE_E4M3) scaled->global_scale = global;
    return status;
}

void bench_recode_bytes(const bench_recode_job *job, const bsmm_matrix *from, const bsmm_matrix *to,
                        double *read, double *written) {
    *read = (double)(from->scale_bytes + (job->relayout ? 0 : from->data_bytes));
    *written = (double)(to->scale_bytes + (job->relayout ? 0 : to->data_bytes));
}

void bench_recode_summarize(bench_samples *seconds, bench_samples *rates,
                            bench_recode_result *result) {
    result->seconds = bench_samples_median(seconds);
    const double reached = result->seconds > 0 ? result->bytes / result->seconds : 0;
    result->probed =
        bench_probed_memory(bench_samples_best(rates), bench_samples_median(rates), reached);
}

static bsmm_status time_all(recode *r, bench_recode_result *result) {
    bsmm_status (*run)(void *, size_t) = r->job->relayout     ? relayout
                                         : r->to.format.scale ? quantize
                                                              : dequantize;
    double read, written;
    bench_recode_bytes(r->job, &r->from, &r->to, &read, &written);
    bsmm_status status = run(r, 0);
    for (int round = 0; round < r->job->rounds && !status; round++) {
        status = bench_time(run, r, r->job->threads, &r->seconds);
        bench_settle();
        double rate, began = bench_now();
        do
            rate = bench_memory_run_within(&r->memory, read, written, r->job->threads);
        while (!bench_is_warm(began, r->job->threads));
        if (!status) status = bench_samples_add(&r->rates, rate);
    }
    result->bytes = read + written;
    bench_recode_summarize(&r->seconds, &r->rates, result);
    return status;
}

bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result) {
    recode r = {.job = job};
    bsmm_status status = bench_recode_matrices(job, &r.from, &r.to, &r.global);
    if (!status && !bench_memory_create(&r.memory)) status = BSMM_E_MEMORY;
    if (!status && job->amax) status = bsmm_amax(&r.from, &r.amax);
    if (!status) status = time_all(&r, result);
    bench_matrix_destroy(&r.from);
    bench_matrix_destroy(&r.to);
    bench_memory_destroy(&r.memory);
    bench_samples_destroy(&r.seconds);
    bench_samples_destroy(&r.rates);
    return status;
}
