/* Times conversions on a GPU, whose work is queued. Launches use several copies of the matrices in
 * turn, so that the matrices of a launch are not in the GPU's cache. */
#include "data.h"
#include "device.h"
#include "recode.h"

#include <stdlib.h>

/* LAUNCHES is the number of times that each timing round launches a graph. */
enum { LAUNCHES = 4 };

typedef struct recode {
    const bench_recode_job *job;
    bench_device *device;
    /* `from` is the source and `to` is the result of the conversion in host memory. */
    bsmm_matrix from, to;
    float global;
    /* `amax` points to the largest magnitude of `from` in device memory, or NULL if the job does
     * not pass it. */
    void *amax;
    /* `sets` holds the matrices in device memory, in the order from, to, from, to, ... with one
     * pair for each copy. */
    bsmm_matrix *sets;
    size_t count;
    bench_graph graph;
    bench_samples seconds, rates;
} recode;

static bool put_amax(recode *r) {
    float amax;
    return !r->job->amax || (!bsmm_amax(&r->from, &amax) &&
                             bench_device_new(r->device, &amax, sizeof amax, &r->amax));
}

static bool put_sets(recode *r) {
    double read, written;
    bench_recode_bytes(r->job, &r->from, &r->to, &read, &written);
    r->count = bench_device_sets(r->device, (uint64_t)(read + written));
    r->sets = calloc(2 * r->count, sizeof *r->sets);
    bool done = r->sets != NULL && put_amax(r);
    for (size_t i = 0; i < r->count && done; i++)
        done = bench_device_put(r->device, &r->from, true, &r->sets[2 * i]) &&
               bench_device_put(r->device, &r->to, true, &r->sets[2 * i + 1]);
    return done;
}

static bool quantize(void *context, size_t turn) {
    recode *r = context;
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = &r->sets[2 * (turn % r->count)];
    desc.dst = &r->sets[2 * (turn % r->count) + 1];
    desc.recipe = r->job->recipe;
    desc.amax = r->amax;
    desc.device = r->job->device;
    desc.stream = bench_device_stream(r->device);
    return !bsmm_quantize(&desc, NULL);
}

static bsmm_exec exec_of(const recode *r) {
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.device = r->job->device;
    exec.stream = bench_device_stream(r->device);
    return exec;
}

static bool dequantize(void *context, size_t turn) {
    recode *r = context;
    bsmm_exec exec = exec_of(r);
    return !bsmm_dequantize_on(&exec, &r->sets[2 * (turn % r->count)],
                               &r->sets[2 * (turn % r->count) + 1]);
}

static bool relayout(void *context, size_t turn) {
    recode *r = context;
    bsmm_exec exec = exec_of(r);
    return !bsmm_relayout_scales_on(&exec, &r->sets[2 * (turn % r->count)],
                                    &r->sets[2 * (turn % r->count) + 1]);
}

static bool time_all(recode *r) {
    bool done = true;
    /* Round -1 warms up a GPU. A simulator needs no such round. */
    const int first = r->device->kind->is_simulated ? 0 : -1,
              rounds = bench_device_repeats(r->device, r->job->rounds);
    for (int round = first; round < rounds && done; round++) {
        /* The previous round has warmed up the device, so its times are discarded. */
        if (round == 0) r->seconds.count = r->rates.count = 0;
        bench_settle();
        for (int i = 0; i < bench_device_repeats(r->device, LAUNCHES) && done; i++)
            done = bench_device_time(r->device, &r->graph, &r->seconds);
        done = done && bench_device_time_copy(r->device, &r->rates);
    }
    return done;
}

static const char *measure(recode *r) {
    bench_work *work = r->job->relayout ? relayout : r->to.format.scale ? quantize : dequantize;
    if (!put_sets(r)) return bench_device_error();
    if (!work(r, 0)) return bsmm_error_message();
    if (!bench_device_wait(r->device) ||
        !bench_device_record_sets(r->device, work, r, r->count, &r->graph) || !time_all(r))
        return bench_device_error();
    return NULL;
}

const char *bench_recode_queued(const bench_recode_job *job, bench_device *device,
                                bench_recode_result *result) {
    recode r = {.job = job, .device = device};
    double read = 0, written = 0;
    bsmm_status status = bench_recode_matrices(job, &r.from, &r.to, &r.global);
    const char *why = status ? "no memory" : measure(&r);
    bench_recode_bytes(job, &r.from, &r.to, &read, &written);
    result->bytes = read + written;
    bench_recode_summarize(&r.seconds, &r.rates, result);
    bench_device_forget(device, &r.graph);
    bench_device_reset(device);
    free(r.sets);
    bench_matrix_destroy(&r.from);
    bench_matrix_destroy(&r.to);
    bench_samples_destroy(&r.seconds);
    bench_samples_destroy(&r.rates);
    return why;
}
