/* Times one GEMM for bench/surface on a GPU. Several copies of the operands together exceed the
 * GPU's cache, and a graph of runs uses the copies in turn. */
#include "surface.h"

#include <stdio.h>

enum { BURSTS = 3, LAUNCHES = 4 };
static const double steady_seconds = 60e-3;

/* Describes a buffer in device memory that holds several copies of an operand or of D, one for each
 * set of operands that the runs use in turn. Each copy begins `stride` bytes after the one before.
 */
typedef struct rotating {
    uint8_t *memory;
    uint64_t stride;
} rotating;

typedef struct work {
    surface *s;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    bsmm_matrix a, b, d;
    /* `data` has an entry for each of A, B and D. `scales` has an entry for each of A and B. */
    rotating data[3], scales[2], packed;
    uint64_t packed_bytes;
    size_t sets;
} work;

static bool time_bursts(bench_device *device, const bench_graph *graph, double *seconds) {
    bench_samples samples = {0};
    bool done = true;
    for (int i = 0; i < BURSTS && done; i++) {
        bench_settle();
        for (int j = 0; j < LAUNCHES && done; j++)
            done = bench_device_time(device, graph, &samples);
    }
    *seconds = bench_samples_median(&samples);
    bench_samples_destroy(&samples);
    return done;
}

static bool time_steady(bench_device *device, const bench_graph *graph, double *seconds) {
    bench_samples samples = {0};
    double began = bench_now();
    bool done = bench_device_time(device, graph, &samples);
    while (done && bench_now() - began < steady_seconds)
        done = bench_device_time(device, graph, &samples);
    samples.count = 0;
    for (int i = 0; i < LAUNCHES && done; i++)
        done = bench_device_time(device, graph, &samples);
    *seconds = bench_samples_median(&samples);
    bench_samples_destroy(&samples);
    return done;
}

static surface_times time_work(bench_device *device, bench_work *run, void *context, size_t sets) {
    surface_times times = {0};
    bench_graph graph = {0};
    if (bench_device_record_sets(device, run, context, sets, &graph) &&
        !(time_bursts(device, &graph, &times.burst) && time_steady(device, &graph, &times.steady)))
        times = (surface_times){0};
    bench_device_forget(device, &graph);
    return times;
}

surface_times surface_run_peer(surface *s, uint32_t bits, int64_t m, int64_t n, int64_t k) {
    const bench_queued_peer *peer = s->peer ? s->device->kind->peer : NULL;
    surface_times times = {0};
    for (size_t i = 0; peer && i < BENCH_WAYS && peer->ways[i].name; i++) {
        const bench_queued_way *way = &peer->ways[i];
        if (!way->is_ceiling || way->bits != bits) continue;
        uint64_t bytes = (uint64_t)((m + n) * k) * way->bits / 8 + (uint64_t)(m * n) * 2;
        bench_queued_shape shape = {m, n, k, BSMM_ELEM_BF16, bench_device_sets(s->device, bytes)};
        void *product = peer->create(s->peer, s->device, i, &shape);
        if (product) times = time_work(s->device, peer->run, product, shape.sets);
        peer->destroy(product);
    }
    bench_device_reset(s->device);
    return times;
}

static surface_times find_bf16(surface *s, const surface_cell *cell) {
    if (s->last.m == cell->m && s->last.n == cell->n && s->last.k == cell->k) return s->last.times;
    s->last.times = surface_run_peer(s, 16, cell->m, cell->n, cell->k);
    s->last.m = cell->m, s->last.n = cell->n, s->last.k = cell->k;
    return s->last.times;
}

static bsmm_matrix describe(bsmm_format format, int64_t rows, int64_t cols) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    bool vectors =
        format.scale == BSMM_SCALE_F32 && format.block_rows == 1 && format.block_cols == 128;
    m.format = format, m.rows = rows, m.cols = cols;
    if (vectors) m.scale_layout = BSMM_LAYOUT_CUBLAS_VEC128;
    return m;
}

static bsmm_status find_sizes(bsmm_matrix *m) {
    bsmm_status status = bsmm_data_bytes(m, &m->data_bytes);
    return status || !m->format.scale ? status : bsmm_scale_bytes(m, &m->scale_bytes);
}

/* Makes a plan. If the kernel reads packed weights in the compact form, B is packed before the
 * measurement. */
static bsmm_status make_plan(work *w) {
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &w->a, desc.b = &w->b, desc.d = &w->d;
    desc.device = w->s->name;
    desc.b_packed = BSMM_PACKED_COMPACT;
    bsmm_status status = bsmm_plan_create(&desc, &w->plan);
    if (status) {
        desc.b_packed = BSMM_PACKED_NONE;
        status = bsmm_plan_create(&desc, &w->plan);
    }
    w->packed_bytes = status || !desc.b_packed ? 0 : bsmm_plan_packed_b_bytes(w->plan);
    return status;
}

static bool rotate(work *w, rotating *r, uint64_t bytes) {
    void *made;
    r->stride = (bytes + 255) / 256 * 256;
    if (!bench_device_allocate(w->s->device, r->stride * w->sets, &made)) return false;
    r->memory = made;
    return true;
}

static bool make_operand(work *w, const bsmm_matrix *m, rotating *data, rotating *scales) {
    return rotate(w, data, m->data_bytes) && rotate(w, scales, m->scale_bytes) &&
           surface_fill_elements(w->s, m->format.elem, data->memory, data->stride * w->sets) &&
           surface_fill_scales(w->s, m->format.scale, scales->memory, scales->stride * w->sets);
}

static void *at(const rotating *r, size_t turn, size_t sets) {
    return r->memory ? r->memory + turn % sets * r->stride : NULL;
}

static void turn_to(work *w, size_t turn) {
    w->buffers.a = at(&w->data[0], turn, w->sets);
    w->buffers.b = at(&w->data[1], turn, w->sets);
    w->buffers.d = at(&w->data[2], turn, w->sets);
    w->buffers.a_scales = at(&w->scales[0], turn, w->sets);
    w->buffers.b_scales = at(&w->scales[1], turn, w->sets);
    w->buffers.packed_b = at(&w->packed, turn, w->sets);
    w->buffers.packed_b_bytes = w->packed_bytes;
}

static bool run(void *context, size_t turn) {
    work *w = context;
    turn_to(w, turn);
    return !bsmm_plan_run(w->plan, &w->buffers);
}

static bool pack(work *w) {
    bool done = true;
    for (size_t i = 0; w->packed_bytes && i < w->sets && done; i++) {
        turn_to(w, i);
        done = !bsmm_pack_b(w->plan, &w->buffers, at(&w->packed, i, w->sets), w->packed_bytes);
    }
    return done && bench_device_wait(w->s->device);
}

static bool make_buffers(work *w) {
    bench_device *device = w->s->device;
    w->sets = bench_device_sets(
        device, w->a.data_bytes + w->a.scale_bytes + w->d.data_bytes +
                    (w->packed_bytes ? w->packed_bytes : w->b.data_bytes + w->b.scale_bytes));
    w->buffers = BSMM_INIT(bsmm_buffers);
    w->buffers.stream = bench_device_stream(device);
    w->buffers.workspace_bytes = bsmm_plan_workspace_bytes(w->plan);
    return make_operand(w, &w->a, &w->data[0], &w->scales[0]) &&
           make_operand(w, &w->b, &w->data[1], &w->scales[1]) &&
           rotate(w, &w->data[2], w->d.data_bytes) && rotate(w, &w->packed, w->packed_bytes) &&
           bench_device_allocate(device, w->buffers.workspace_bytes, &w->buffers.workspace);
}

static const char *reason(void) {
    return *bsmm_error_message() ? bsmm_error_message() : bench_device_error();
}

static void run_ours(work *w, surface_result *result) {
    const char *why = NULL;
    if (find_sizes(&w->a) || find_sizes(&w->b) || find_sizes(&w->d) || make_plan(w))
        why = bsmm_error_message();
    if (!why) {
        snprintf(result->kernel, sizeof result->kernel, "%s", bsmm_plan_kernel(w->plan));
        result->bytes = w->a.data_bytes + w->a.scale_bytes + w->b.data_bytes + w->b.scale_bytes +
                        w->d.data_bytes;
        result->packed_bytes = w->packed_bytes;
        if (!make_buffers(w) || !pack(w)) why = reason();
    }
    if (!why) {
        result->ours = time_work(w->s->device, run, w, w->sets);
        if (result->ours.burst <= 0) why = reason();
    }
    if (why) snprintf(result->why, sizeof result->why, "%s", why);
}

void surface_run(surface *s, const surface_cell *cell, surface_result *result) {
    work w = {.s = s};
    *result = (surface_result){0};
    w.a = describe(cell->a, cell->m, cell->k);
    w.b = describe(cell->b, cell->n, cell->k);
    w.d = describe(cell->d, cell->m, cell->n);
    run_ours(&w, result);
    bench_device_reset(s->device);
    bsmm_plan_destroy(w.plan);
    if (!*result->why) result->bf16 = find_bf16(s, cell);
}
