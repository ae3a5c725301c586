#include "recode.h"
#include "data.h"
#include "memory.h"
#include "samples.h"

typedef struct recode {
    const bench_recode_job *job;
    bsmm_matrix from, to;
    float global; /* of a format that has one, chosen by the recipe */
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
    desc.threads = (uint32_t)r->job->threads;
    return bsmm_quantize(&desc, NULL);
}

static bsmm_status dequantize(void *context, size_t turn) {
    recode *r = context;
    (void)turn;
    return bsmm_dequantize(&r->from, &r->to);
}

static bsmm_status time_all(recode *r, bench_recode_result *result) {
    bsmm_status (*run)(void *, size_t) = r->to.format.scale ? quantize : dequantize;
    double read = (double)(r->from.data_bytes + r->from.scale_bytes);
    double written = (double)(r->to.data_bytes + r->to.scale_bytes);
    bsmm_status status = run(r, 0);
    for (int round = 0; round < r->job->rounds && !status; round++) {
        status = bench_time(run, r, &r->seconds);
        bench_settle();
        double rate = bench_memory_run(&r->memory, read, written, r->job->threads);
        if (!status) status = bench_samples_add(&r->rates, rate);
    }
    result->bytes = read + written;
    result->seconds = bench_samples_median(&r->seconds);
    result->ceiling_rate = bench_samples_best(&r->rates);
    return status;
}

bsmm_status bench_recode(const bench_recode_job *job, bench_recode_result *result) {
    recode r = {.job = job, .global = 1};
    bsmm_status status = bench_matrix_create(&r.from, job->from, job->rows, job->cols);
    if (!status) status = bench_matrix_create(&r.to, job->to, job->rows, job->cols);
    if (!status) status = bench_matrix_fill(&r.from, 42);
    if (job->to.scale)
        r.to.global_scale = &r.global;
    else
        r.from.global_scale = &r.global;
    if (!status && !bench_memory_create(&r.memory)) status = BSMM_E_MEMORY;
    if (!status) status = time_all(&r, result);
    bench_matrix_destroy(&r.from);
    bench_matrix_destroy(&r.to);
    bench_memory_destroy(&r.memory);
    bench_samples_destroy(&r.seconds);
    bench_samples_destroy(&r.rates);
    return status;
}
