#include "measure_queued.h"

#include "data.h"
#include "validate.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* LAUNCHES is the number of times that each timing round launches a graph. */
enum { LAUNCHES = 4 };

/* Describes a buffer in device memory that holds several copies of an operand or of D, one for each
 * set of operands that the runs use in turn. Each copy begins `stride` bytes after the one before.
 */
typedef struct rotating {
    void *memory;
    uint64_t bytes, stride;
} rotating;

typedef struct bench {
    const bench_queued_job *on;
    const bench_job *job;
    /* `m` holds the matrices in host memory. The operands in device memory are copies of them. */
    bench_matrices m;
    /* `data`, `scales`, `packed` and `result` are buffers in device memory. `data` and `scales`
     * have an entry for A and one for B. */
    rotating data[2], scales[2], packed, result;
    size_t sets;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    bench_graph graph, pack_graph;
    /* `peers` holds the prepared GEMMs of the library with which bench compares. */
    void *peers[BENCH_WAYS];
    bench_graph peer_graphs[BENCH_WAYS];
    bench_samples ours, packing, theirs[BENCH_WAYS], copies;
    bench_counters counters[BENCH_COUNTED_LAUNCHES];
    size_t counted;
} bench;

static bool rotate(bench *b, rotating *r, const void *from, uint64_t bytes) {
    r->bytes = bytes;
    r->stride = (bytes + 255) / 256 * 256;
    return bench_device_new_sets(b->on->device, from, from ? bytes : 0, r->stride, b->sets,
                                 &r->memory);
}

static void *at(const rotating *r, size_t turn, size_t sets) {
    return r->memory ? (char *)r->memory + turn % sets * r->stride : NULL;
}

static bool make_buffers(bench *b) {
    bsmm_matrix *matrices[2] = {&b->m.a, &b->m.b};
    uint64_t bytes = b->m.d.data_bytes + b->packed.bytes;
    for (int i = 0; i < 2; i++)
        bytes += matrices[i]->data_bytes + matrices[i]->scale_bytes;
    b->sets = bench_device_sets(b->on->device, bytes);
    for (int i = 0; i < 2; i++)
        if (!rotate(b, &b->data[i], matrices[i]->data, matrices[i]->data_bytes) ||
            !rotate(b, &b->scales[i], matrices[i]->scales, matrices[i]->scale_bytes))
            return false;
    b->buffers = BSMM_INIT(bsmm_buffers);
    b->buffers.stream = bench_device_stream(b->on->device);
    b->buffers.workspace_bytes = bsmm_plan_workspace_bytes(b->plan);
    return rotate(b, &b->result, NULL, b->m.d.data_bytes) &&
           rotate(b, &b->packed, NULL, b->packed.bytes) &&
           bench_device_new(b->on->device, NULL, b->buffers.workspace_bytes, &b->buffers.workspace);
}

static void turn_to(bench *b, size_t turn) {
    b->buffers.a = at(&b->data[0], turn, b->sets);
    b->buffers.a_scales = at(&b->scales[0], turn, b->sets);
    b->buffers.b = at(&b->data[1], turn, b->sets);
    b->buffers.b_scales = at(&b->scales[1], turn, b->sets);
    b->buffers.d = at(&b->result, turn, b->sets);
    b->buffers.packed_b = at(&b->packed, turn, b->sets);
    b->buffers.packed_b_bytes = b->packed.bytes;
}

static bool run_ours(void *context, size_t turn) {
    bench *b = context;
    turn_to(b, turn);
    return !bsmm_plan_run(b->plan, &b->buffers);
}

static bool pack_ours(void *context, size_t turn) {
    bench *b = context;
    turn_to(b, turn);
    return !bsmm_pack_b(b->plan, &b->buffers, at(&b->packed, turn, b->sets), b->packed.bytes);
}

static const char *library_or_device(bool failed) {
    return !failed ? NULL : *bsmm_error_message() ? bsmm_error_message() : bench_device_error();
}

/* bench runs on several sets of operands in turn. Packs the B of each set, so that each set has its
 * own packed B. */
static const char *pack(bench *b) {
    if (!b->packed.bytes) return NULL;
    for (size_t i = 0; i < b->sets; i++)
        if (!pack_ours(b, i)) return bsmm_error_message();
    if (!bench_device_record(b->on->device, pack_ours, b, b->sets, &b->pack_graph))
        return library_or_device(true);
    for (int i = 0; i < bench_device_repeats(b->on->device, LAUNCHES); i++)
        if (!bench_device_time(b->on->device, &b->pack_graph, &b->packing))
            return bench_device_error();
    return NULL;
}

/* Returns the error bound with which D is validated. A fast kernel (`compute = fast`) may round the
 * operands, so its documented bound is far too loose to find errors in random data
 * (docs/NUMERICS.md). For such a kernel the function returns the bound of the FP8 kernels that do
 * not round operands. */
static double bound_of(const bench *b) {
    bsmm_explanation row = BSMM_INIT(bsmm_explanation);
    bsmm_matmul_desc desc = bench_job_describe(b->job, &b->m);
    for (uint32_t i = 0; !bsmm_explain(&desc, i, &row); i++)
        if (row.accepts && !strcmp(row.kernel, bsmm_plan_kernel(b->plan)))
            return b->job->fast ? fmin(row.bound, 132 * 0x1p-13) : row.bound;
    return 0;
}

/* Validates the result D. The caller may have filled D with the code `unwritten` before the run.
 * Elements that still have this code were not computed, and the validation skips them. If
 * `unwritten` is NULL, all elements are validated. */
static const char *validate(bench *b, const uint32_t *unwritten, bench_result *result) {
    if (!bench_device_wait(b->on->device) ||
        !bench_device_read(b->on->device, b->m.d.data, b->result.memory, b->m.d.data_bytes))
        return bench_device_error();
    snprintf(result->kernel, sizeof result->kernel, "%s", bsmm_plan_kernel(b->plan));
    result->bound = bound_of(b);
    bench_validate(&b->m.d, b->m.a_wide.data, b->m.b_wide.data, b->job->sizes[2], unwritten,
                   result);
    return NULL;
}

static const bench_queued_peer *peer_of(const bench *b) {
    return b->on->peer ? b->on->device->kind->peer : NULL;
}

static void prepare_peers(bench *b) {
    const int64_t *sizes = b->job->sizes;
    const bench_queued_peer *peer = peer_of(b);
    bench_device *device = b->on->device;
    for (size_t i = 0; peer && i < BENCH_WAYS && peer->ways[i].name; i++) {
        uint64_t bytes = (uint64_t)((sizes[0] + sizes[1]) * sizes[2]) * peer->ways[i].bits / 8 +
                         b->m.d.data_bytes;
        bench_queued_shape shape = {sizes[0], sizes[1], sizes[2], b->job->out.elem,
                                    bench_device_sets(device, bytes)};
        b->peers[i] = peer->create(b->on->peer, device, i, &shape);
        if (b->peers[i] && !bench_device_record_sets(device, peer->run, b->peers[i], shape.sets,
                                                     &b->peer_graphs[i]))
            bench_device_forget(device, &b->peer_graphs[i]);
    }
}

/* Times a graph after a pause, because the GPU lowers its clock after long work without pauses. */
static bool time_graph(bench *b, const bench_graph *graph, bench_samples *seconds) {
    bool done = true;
    bench_settle();
    for (int i = 0; i < bench_device_repeats(b->on->device, LAUNCHES) && done; i++)
        done = bench_device_time(b->on->device, graph, seconds);
    return done;
}

static void count_launches(bench *b) {
    const bench_device *device = b->on->device;
    b->counted = 0;
    while (device->kind->count && b->counted < BENCH_COUNTED_LAUNCHES &&
           device->kind->count(device->state, b->counted, &b->counters[b->counted]))
        b->counted++;
}

static bool time_round(bench *b) {
    bool done = time_graph(b, &b->graph, &b->ours);
    count_launches(b);
    for (int i = 0; i < BENCH_WAYS && done; i++)
        if (b->peer_graphs[i].executable) done = time_graph(b, &b->peer_graphs[i], &b->theirs[i]);
    return done && bench_device_time_copy(b->on->device, &b->copies);
}

/* Times all rounds. The first round warms up the GPU, and its times are discarded. A simulated
 * device needs only one round. */
static const char *time_all(bench *b) {
    if (!bench_device_record_sets(b->on->device, run_ours, b, b->sets, &b->graph))
        return library_or_device(true);
    const bool once = b->on->device->kind->is_simulated;
    for (int round = once ? 0 : -1; round < b->job->rounds; round++) {
        if ((round <= 0 || !once) && !time_round(b)) return bench_device_error();
        if (round < 0) {
            b->ours.count = b->copies.count = 0;
            for (int i = 0; i < BENCH_WAYS; i++)
                b->theirs[i].count = 0;
        } else if (b->job->tick) {
            b->job->tick(b->job->tick_context);
        }
    }
    return NULL;
}

/* Runs the product, validates D, and measures the time. */
static const char *measure_whole(bench *b, bench_queued_result *result) {
    if (!run_ours(b, 0)) return bsmm_error_message();
    const char *why = validate(b, NULL, &result->ours);
    if (why || result->ours.failed) return why;
    prepare_peers(b);
    return time_all(b);
}

/* Measures the time on a device whose timed launches execute only some workgroups, and validates
 * their outputs. D is filled with a NaN code first, so outputs that keep this code were not
 * computed. If the launches compute no results at all, the error is NaN. */
static const char *measure_sample(bench *b, bench_queued_result *result) {
    const uint32_t bits = bench_elem_bits(b->m.d.format.elem), ones = UINT32_MAX >> (32 - bits);
    const bench_device *device = b->on->device;
    if (!device->kind->fill_words(device->state, b->result.memory, UINT32_MAX,
                                  b->result.stride * b->sets / 4))
        return bench_device_error();
    const char *why = time_all(b);
    if (why || !device->kind->times_without_results)
        return why ? why : validate(b, &ones, &result->ours);
    snprintf(result->ours.kernel, sizeof result->ours.kernel, "%s", bsmm_plan_kernel(b->plan));
    result->ours.max_error = NAN;
    return NULL;
}

/* Returns the known device, such as "H200", whose name is contained in the name that the driver
 * reports. If there is none, returns the default of the device's kind. */
static const char *known_device(const char *device) {
    bsmm_local_device local = BSMM_INIT(bsmm_local_device);
    bsmm_device_info known = BSMM_INIT(bsmm_device_info);
    bench_device_find(device, &local);
    for (uint32_t i = 0; !bsmm_device_at(i, &known); i++) {
        char name[32] = "";
        for (size_t c = 0; known.name[c] && c + 1 < sizeof name; c++)
            name[c] = (char)toupper((unsigned char)known.name[c]);
        if (strstr(local.title, name)) return known.name;
    }
    const bench_device_kind *kind = bench_device_kind_of(device);
    return kind->known_of ? kind->known_of(device) : kind->known;
}

/* Estimates the peak rate for the formats of A and B from the data sheet of the device. */
static const char *estimate(const bench *b, bench_queued_result *all) {
    bench_result *result = &all->ours;
    const char *device = known_device(b->job->device);
    bsmm_sol_estimate sol = BSMM_INIT(bsmm_sol_estimate);
    bsmm_matmul_desc desc = bench_job_describe(b->job, &b->m);
    desc.kernel = desc.device = NULL;
    if (bsmm_estimate_sol(device, &desc, &sol)) return bsmm_error_message();
    result->operations = sol.operations;
    result->light_seconds = sol.seconds;
    result->intensity = sol.operations / sol.bytes;
    result->b_bytes = (double)(b->m.b.data_bytes + b->m.b.scale_bytes);
    snprintf(all->sheet, sizeof all->sheet, "%s_sheet", device);
    all->sheet_rate = sol.operations / sol.compute_seconds;
    return NULL;
}

/* Returns the GEMM of the peer library whose rate serves as the ceiling, i.e. as the limit with
 * which bsmm's rate is compared. It is the first GEMM whose elements have at least as many bits as
 * the elements of A and B. If there is none, it is the GEMM with the widest elements. Returns NULL
 * if none is suitable. */
static const bench_queued_way *ceiling_way(const bench *b) {
    const bench_queued_peer *peer = peer_of(b);
    uint32_t bits = bench_elem_bits(b->job->a.elem), of_b = bench_elem_bits(b->job->b.elem);
    if (of_b > bits) bits = of_b;
    const bench_queued_way *widest = NULL;
    for (size_t i = 0; peer && i < BENCH_WAYS && peer->ways[i].name; i++) {
        const bench_queued_way *way = &peer->ways[i];
        if (!way->is_ceiling) continue;
        if (way->bits >= bits) return way;
        widest = way;
    }
    return widest;
}

static void summarize(bench *b, bench_queued_result *result) {
    bench_result *ours = &result->ours;
    ours->seconds = bench_samples_median(&b->ours);
    ours->packed = b->packed.bytes > 0;
    ours->pack_seconds = bench_samples_median(&b->packing);
    for (int i = 0; i < BENCH_WAYS; i++)
        result->peer_seconds[i] = bench_samples_median(&b->theirs[i]);
    ours->probed.best[BENCH_MEMORY] = bench_samples_best(&b->copies);
    ours->probed.typical[BENCH_MEMORY] = bench_samples_median(&b->copies);
    memcpy(result->counters, b->counters, sizeof b->counters);
    result->counted = b->counted;
    result->sets = b->sets;
    result->few_rows = b->job->sizes[0] <= 32;
    const bench_queued_way *way = ceiling_way(b);
    double seconds = way ? result->peer_seconds[way - peer_of(b)->ways] : 0;
    if (seconds > 0) result->way = way;
    ours->unit_rate = seconds > 0 ? ours->operations / seconds : result->sheet_rate;
}

/* Sets the ceiling of a GEMM to the lower of two rates. The first is the measured rate of the
 * peer library for the same shape, or the data sheet's peak if it was not measured. The second is
 * the rate at which the bytes of A, B and D could be copied. */
void bench_queued_limit(const bench_ceilings *run, bench_queued_result *result) {
    bench_result *ours = &result->ours;
    result->copy_rate = run->best[BENCH_MEMORY];
    ours->ceiling = ours->unit = result->way ? result->way->name : result->sheet;
    ours->ceiling_rate = ours->unit_rate;
    double copy = result->copy_rate * ours->intensity;
    /* With few rows of A, memory limits the GEMM, so the rate of copying is the ceiling, i.e. the
     * limit with which bsmm's rate is compared. The rate of the compared library is no limit here,
     * because it reads wider elements and thus more bytes. */
    if (copy >= ours->ceiling_rate && !result->few_rows) return;
    ours->ceiling = "copy";
    ours->ceiling_rate = copy;
}

/* Returns true if bench can execute only a sample of the workgroups. This requires the option
 * --sampled and a plan of a single launch. A plan with a workspace has a second launch, which reads
 * all outputs of the first launch. A sample would leave some of these outputs uncomputed. */
static bool can_sample(const bench *b) {
    return b->job->sampled &&
           (b->on->device->kind->times_without_results || bsmm_plan_workspace_bytes(b->plan) == 0);
}

static const char *measure(bench *b, bench_queued_result *result) {
    const char *why = NULL;
    bsmm_status status = bench_matrices_create(b->job, &b->m);
    if (!status) status = bench_job_plan(b->job, &b->m, &b->plan, &b->packed.bytes);
    if (status) return status == BSMM_E_MEMORY ? "no memory" : bsmm_error_message();
    if (!make_buffers(b)) return bench_device_error();
    why = estimate(b, result);
    if (!why) why = pack(b);
    if (!why) why = can_sample(b) ? measure_sample(b, result) : measure_whole(b, result);
    if (why || result->ours.failed) return why;
    summarize(b, result);
    return NULL;
}

static void release(bench *b) {
    bench_device *device = b->on->device;
    for (int i = 0; i < BENCH_WAYS; i++) {
        bench_device_forget(device, &b->peer_graphs[i]);
        if (b->peers[i]) peer_of(b)->destroy(b->peers[i]);
        bench_samples_destroy(&b->theirs[i]);
    }
    bench_device_forget(device, &b->graph);
    bench_device_forget(device, &b->pack_graph);
    bench_device_reset(device);
    bsmm_plan_destroy(b->plan);
    bench_matrices_destroy(&b->m);
    bench_samples *samples[] = {&b->ours, &b->packing, &b->copies};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        bench_samples_destroy(samples[i]);
}

const char *bench_measure_queued(const bench_queued_job *job, bench_queued_result *result) {
    bench b = {.on = job, .job = job->job};
    *result = (bench_queued_result){0};
    const char *why = measure(&b, result);
    release(&b);
    return why;
}
