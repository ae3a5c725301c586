#include "measure.h"
#include "copies.h"
#include "data.h"
#include "device.h"
#include "memory.h"
#include "samples.h"
#include "validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Holds the state of one measurement, i.e. its memory, plans and times. */
typedef struct bench {
    const bench_job *job;
    bench_matrices m;
    bench_copies b_data, b_scales, b_packed;
    double pack_seconds;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    const bench_probe *unit;
    /* `memory` is the buffer with which bench measures the read bandwidth. It exists only if runs
     * read B from memory instead of a cache (job.cold). */
    bench_memory memory;
    const bench_peer *peers[BENCH_PEERS];
    bench_samples ours, theirs[BENCH_PEERS], unit_rates, read_rates;
} bench;

static bool copy_bytes(bench_copies *to, const void *from, uint64_t bytes, size_t count) {
    if (!bench_copies_create(to, bytes, count)) return false;
    for (size_t i = 0; bytes && i < count; i++) /* `from` is NULL if there are no bytes to copy. */
        memcpy(bench_copies_at(to, i), from, bytes);
    return true;
}

/* Packs B twice and keeps the second time, because the first time includes page faults. */
static bsmm_status pack(bench *b, uint64_t bytes) {
    bsmm_status status = BSMM_OK;
    for (int i = 0; i < 2 && !status; i++) {
        double started = bench_now();
        status = bsmm_pack_b(b->plan, &b->buffers, b->b_packed.memory, bytes);
        b->pack_seconds = bench_now() - started;
    }
    return status;
}

/* Makes the copies of B that the runs use in turn. The copies are packed if the kernel reads packed
 * weights. If job.cold is true, there are so many copies that no run finds its copy in a cache. */
static bsmm_status make_copies(bench *b, uint64_t packed_bytes) {
    const bsmm_matrix *m = &b->m.b;
    bool cold = b->job->cold;
    size_t count = packed_bytes ? 1 : bench_copies_count(m->data_bytes + m->scale_bytes, cold);
    if (!copy_bytes(&b->b_data, m->data, m->data_bytes, count) ||
        !copy_bytes(&b->b_scales, m->scales, m->scale_bytes, count))
        return BSMM_E_MEMORY;
    if (!packed_bytes) return BSMM_OK;
    if (!bench_copies_create(&b->b_packed, packed_bytes, bench_copies_count(packed_bytes, cold)))
        return BSMM_E_MEMORY;
    bsmm_status status = pack(b, packed_bytes);
    if (!status) bench_copies_spread(&b->b_packed);
    return status;
}

static bsmm_status make_buffers(bench *b) {
    uint64_t packed_bytes;
    bsmm_status status = bench_job_plan(b->job, &b->m, &b->plan, &packed_bytes);
    if (status) return status;
    bsmm_buffers *buffers = &b->buffers;
    *buffers = BSMM_INIT(bsmm_buffers);
    buffers->a = b->m.a.data, buffers->a_scales = b->m.a.scales;
    buffers->b = b->m.b.data, buffers->b_scales = b->m.b.scales;
    buffers->d = b->m.d.data;
    buffers->workspace_bytes = bsmm_plan_workspace_bytes(b->plan);
    buffers->workspace = aligned_alloc(64, (buffers->workspace_bytes / 64 + 1) * 64);
    buffers->packed_b_bytes = packed_bytes;
    return buffers->workspace ? make_copies(b, packed_bytes) : BSMM_E_MEMORY;
}

static bsmm_status run_ours(void *context, size_t turn) {
    bench *b = context;
    b->buffers.b = bench_copies_at(&b->b_data, turn);
    if (b->m.b.scales) b->buffers.b_scales = bench_copies_at(&b->b_scales, turn);
    if (b->buffers.packed_b_bytes) b->buffers.packed_b = bench_copies_at(&b->b_packed, turn);
    return bsmm_plan_run(b->plan, &b->buffers);
}

static bsmm_status run_peer(void *context, size_t turn) {
    ((const bench_peer *)context)->run(turn);
    return BSMM_OK;
}

/* Prepares the other libraries that are installed and can compute this shape. Each library runs
 * once before the measurement, so that its page faults are not timed. */
static void prepare_peers(bench *b) {
    const bench_shape shape = {&b->m.a_wide, &b->m.b_wide, b->job->cold};
    for (int i = 0; i < BENCH_PEERS; i++) {
        const bench_found *found = &b->job->peers[i];
        if (!found->library) continue;
        if (found->peer->prepare(&shape))
            b->peers[i] = found->peer;
        else
            found->peer->release();
        if (b->peers[i]) b->peers[i]->run(0);
    }
}

static bsmm_status time_ceilings(bench *b) {
    int threads = b->job->threads;
    bench_settle();
    double rate, began = bench_now();
    do
        rate = bench_probe_run(b->unit, threads);
    while (!bench_is_warm(began, threads));
    bsmm_status status = bench_samples_add(&b->unit_rates, rate);
    if (status || !b->job->cold) return status;
    return bench_samples_add(&b->read_rates, bench_memory_run(&b->memory, 1, 0, threads));
}

static bsmm_status time_all(bench *b) {
    bsmm_status status = BSMM_OK;
    for (int round = 0; round < b->job->rounds && !status; round++) {
        status = bench_time(run_ours, b, b->job->threads, &b->ours);
        for (int i = 0; i < BENCH_PEERS && !status; i++)
            if (b->peers[i])
                status = bench_time(run_peer, (void *)b->peers[i], b->job->threads, &b->theirs[i]);
        if (!status) status = time_ceilings(b);
        if (b->job->tick) b->job->tick(b->job->tick_context);
    }
    return status;
}

/* Estimates how many operations the GEMM has and how many bytes it moves. Also chooses the probe,
 * i.e. the loop that measures the peak rate of an arithmetic unit, with which bench compares the
 * GEMM's rate. If the user has named a probe, it is taken. Otherwise the estimate says which unit a
 * processor with AVX-512's dot products would use for this GEMM, and the probe of this unit is
 * taken. If this processor lacks the unit, or if its fp32 unit is faster, the probe of fp32 is
 * taken instead. */
static bsmm_status estimate(bench *b, bench_result *result) {
    bsmm_sol_estimate sol = BSMM_INIT(bsmm_sol_estimate);
    bsmm_matmul_desc desc = bench_job_describe(b->job, &b->m);
    desc.kernel = desc.device = NULL;
    bsmm_status status = bsmm_estimate_sol("zen4-2c", &desc, &sol);
    if (status) return status;
    b->unit = b->job->probe ? b->job->probe : bench_probe_ceiling(sol.unit);
    result->operations = sol.operations;
    result->intensity = sol.operations / sol.bytes;
    result->b_bytes = (double)(b->m.b.data_bytes + b->m.b.scale_bytes);
    return BSMM_OK;
}

/* Returns the median of times, or 0 if there are none. Sets *shortest to the shortest time. */
static double find_times(bench_samples *times, double *shortest) {
    /* bench_samples_median also sorts the times, so the first one is now the shortest. */
    double median = bench_samples_median(times);
    *shortest = times->count ? times->values[0] : 0;
    return median;
}

static void summarize(bench *b, bench_result *result) {
    result->seconds = find_times(&b->ours, &result->shortest);
    for (int i = 0; i < BENCH_PEERS; i++)
        result->peer_seconds[i] = find_times(&b->theirs[i], &result->peer_shortest[i]);
    result->probe = b->unit;
    bench_samples *rates[BENCH_CEILINGS] = {&b->unit_rates, &b->read_rates};
    for (int i = 0; i < BENCH_CEILINGS; i++) {
        result->probed.best[i] = bench_samples_best(rates[i]);
        result->probed.typical[i] = bench_samples_median(rates[i]);
    }
    result->probed.reached[BENCH_UNIT] = result->operations / result->seconds;
    result->probed.reached[BENCH_MEMORY] = result->b_bytes / result->seconds;
}

/* Sets the ceiling of a GEMM. It is the peak rate of the arithmetic unit, or the rate that memory
 * bandwidth allows if B is read from memory and that rate is lower. */
void bench_measure_limit(const bench_ceilings *run, bench_result *result) {
    result->ceiling = result->unit = result->probe->name;
    result->ceiling_rate = result->unit_rate = run->best[BENCH_UNIT];
    result->light_seconds = result->operations / result->unit_rate;
    if (!(result->probed.best[BENCH_MEMORY] > 0)) return;
    double rate = run->best[BENCH_MEMORY] * result->operations / result->b_bytes;
    if (rate > result->ceiling_rate) return;
    result->ceiling = "dram_read";
    result->ceiling_rate = rate;
}

static bsmm_status measure(bench *b, bench_result *result) {
    bsmm_status status = bench_matrices_create(b->job, &b->m);
    if (!status) status = make_buffers(b);
    if (!status) status = estimate(b, result);
    if (!status) status = run_ours(b, 0);
    if (status) return status;
    snprintf(result->kernel, sizeof result->kernel, "%s", bsmm_plan_kernel(b->plan));
    result->packed = b->buffers.packed_b_bytes > 0;
    result->pack_seconds = b->pack_seconds;
    bench_validate(&b->m.d, b->m.a_wide.data, b->m.b_wide.data, b->job->sizes[2], NULL, result);
    if (result->failed) return BSMM_OK;
    if (b->job->cold && !bench_memory_create(&b->memory)) return BSMM_E_MEMORY;
    prepare_peers(b);
    status = time_all(b);
    summarize(b, result);
    return status;
}

static void release(bench *b) {
    free(b->buffers.workspace);
    bsmm_plan_destroy(b->plan);
    bench_memory_destroy(&b->memory);
    bench_matrices_destroy(&b->m);
    bench_copies *copies[] = {&b->b_data, &b->b_scales, &b->b_packed};
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++)
        bench_copies_destroy(copies[i]);
    bench_samples *samples[] = {&b->ours, &b->unit_rates, &b->read_rates};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        bench_samples_destroy(samples[i]);
    for (int i = 0; i < BENCH_PEERS; i++) {
        if (b->peers[i]) b->peers[i]->release();
        bench_samples_destroy(&b->theirs[i]);
    }
}

bsmm_status bench_measure(const bench_job *job, bench_result *result) {
    bench b = {.job = job};
    *result = (bench_result){0};
    bsmm_status status = measure(&b, result);
    release(&b);
    return status;
}
