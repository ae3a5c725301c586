/* Makes plans and buffers, and computes batches. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

/* Makes the plan of a product for batches of up to `rows` rows. The second product of a layer adds
 * its result to the hidden values h, which are stored in D. beta is therefore 1, and C is the same
 * memory as D. */
static bsmm_status make_plan(const engine *e, const engine_product *p, int64_t rows, uint32_t flags,
                             bsmm_plan **plan) {
    static const float one = 1;
    bsmm_matrix a = p->a, d = p->d;
    a.rows = d.rows = rows;
    bsmm_matmul_desc desc = {sizeof desc, .a = &a, .b = &p->b, .d = &d, .flags = flags};
    desc.device = e->device;
    desc.b_packed = BSMM_PACKED_COMPACT;
    if (p == &e->products[ENGINE_DOWN]) desc.c = &d, desc.beta = &one;
    return bsmm_plan_create(&desc, plan);
}

/* Makes one plan that takes any number of rows. If no kernel of the device supports that, the
 * function makes one plan for each class of batches, i.e. for 1, 2, 4, ... and 512 rows. */
static bool make_plans(engine *e, engine_product *p) {
    bsmm_status status = make_plan(e, p, ENGINE_MOST_ROWS, BSMM_MATMUL_ANY_ROWS, &p->plans[0]);
    e->any_rows = status == BSMM_OK;
    if (status != BSMM_OK && status != BSMM_E_UNSUPPORTED) return engine_ok(status, "plan");
    for (int index = 0; !e->any_rows && index < ENGINE_CLASSES; index++)
        if (!engine_ok(make_plan(e, p, (int64_t)1 << index, 0, &p->plans[index]), "plan"))
            return false;
    /* Packed weights do not depend on the number of rows, so every plan takes the same packed
       weights. */
    p->packed_bytes = bsmm_plan_packed_b_bytes(p->plans[0]);
    return true;
}

/* Enlarges the workspace to the size that the plans of a product need. */
static void grow_workspace(engine *e, const engine_product *p) {
    for (int index = 0; index < ENGINE_CLASSES; index++) {
        if (!p->plans[index]) continue;
        const uint64_t bytes = bsmm_plan_workspace_bytes(p->plans[index]);
        if (bytes > e->workspace_bytes) e->workspace_bytes = bytes;
    }
}

/* Finds the largest error bound of all kernels that may compute a product. A plan for any number of
 * rows may use several kernels. */
static void find_bound(const engine *e, engine_product *p) {
    bsmm_explanation answer = BSMM_INIT(bsmm_explanation);
    bsmm_matmul_desc desc = {sizeof desc, .a = &p->a, .b = &p->b, .d = &p->d, .device = e->device};
    for (uint32_t i = 0; bsmm_explain(&desc, i, &answer) == BSMM_OK; i++)
        if (answer.accepts && answer.bound > p->bound) p->bound = answer.bound;
}

static void describe(engine *e, engine_kind kind) {
    engine_product *p = &e->products[kind];
    const bsmm_format bf16 = {.elem = BSMM_ELEM_BF16};
    p->b = e->weights[0][kind].host;
    p->a = (bsmm_matrix){sizeof p->a, .format = bf16, .rows = ENGINE_MOST_ROWS, .cols = p->b.cols};
    p->d = (bsmm_matrix){sizeof p->d, .format = bf16, .rows = ENGINE_MOST_ROWS, .cols = p->b.rows};
}

static uint64_t hidden_bytes(const engine *e, int64_t rows) {
    return (uint64_t)(rows * e->products[ENGINE_UP].a.cols) * sizeof(uint16_t);
}

/* Allocates buffers for the largest batch. A batch is padded to the number of rows of its class.
 * The padding rows are multiplied too, so the buffer of inputs (`hidden`) is filled with zeros. */
static bool make_buffers(engine *e) {
    bsmm_exec exec = {sizeof exec, .device = e->device};
    const uint64_t hidden = hidden_bytes(e, ENGINE_MOST_ROWS);
    const uint64_t inner = ENGINE_MOST_ROWS * sizeof(uint16_t) * (uint64_t)e->products[0].d.cols;
    return engine_ok(bsmm_allocate_memory(e->device, hidden, &e->hidden), "buffers") &&
           engine_ok(bsmm_allocate_memory(e->device, inner, &e->inner), "buffers") &&
           engine_ok(bsmm_allocate_memory(e->device, e->workspace_bytes, &e->workspace),
                     "workspace") &&
           engine_ok(bsmm_fill_memory(&exec, e->hidden, 0, hidden), "buffers") &&
           engine_ok(bsmm_synchronize_stream(&exec), "buffers");
}

bool engine_start(engine *e) {
    for (int kind = 0; kind < ENGINE_KINDS; kind++) {
        describe(e, (engine_kind)kind);
        if (!make_plans(e, &e->products[kind])) return false;
        grow_workspace(e, &e->products[kind]);
        find_bound(e, &e->products[kind]);
    }
    return make_buffers(e) && engine_pack(e) && engine_capture(e);
}

void engine_stop(engine *e) {
    engine_free_graphs(e);
    for (int kind = 0; kind < ENGINE_KINDS; kind++)
        for (int index = 0; index < ENGINE_CLASSES; index++)
            bsmm_plan_destroy(e->products[kind].plans[index]);
    bsmm_free_memory(e->device, e->hidden);
    bsmm_free_memory(e->device, e->inner);
    bsmm_free_memory(e->device, e->workspace);
}

/* Returns the class of a batch of `rows` rows, i.e. the smallest c for which 2^c is at least
 * `rows`. If one plan takes any number of rows, returns 0. */
static int class_of(const engine *e, int64_t rows) {
    int index = 0;
    while (!e->any_rows && ((int64_t)1 << index) < rows)
        index++;
    return index;
}

int64_t engine_class_rows(const engine *e, int64_t rows) {
    return e->any_rows ? rows : (int64_t)1 << class_of(e, rows);
}

/* Queues one product of a layer. */
static bool queue(const engine *e, int layer, engine_kind kind, int64_t rows) {
    const engine_product *p = &e->products[kind];
    const bool down = kind == ENGINE_DOWN;
    bsmm_buffers buffers = {sizeof buffers, .a = down ? e->inner : e->hidden};
    buffers.packed_b = e->weights[layer][kind].packed;
    buffers.packed_b_bytes = p->packed_bytes;
    buffers.c = down ? e->hidden : NULL;
    buffers.d = down ? e->hidden : e->inner;
    buffers.workspace = e->workspace;
    buffers.workspace_bytes = e->workspace_bytes;
    buffers.stream = e->stream;
    buffers.rows = e->any_rows ? rows : 0;
    return engine_ok(bsmm_plan_run(p->plans[class_of(e, rows)], &buffers), "run");
}

bool engine_queue(const engine *e, int64_t rows) {
    for (int layer = 0; layer < e->layers; layer++)
        if (!queue(e, layer, ENGINE_UP, rows) || !queue(e, layer, ENGINE_DOWN, rows)) return false;
    return true;
}

bool engine_serve(const engine *e, uint16_t *hidden, int64_t rows) {
    bsmm_exec exec = {sizeof exec, .device = e->device, .stream = e->stream};
    const uint64_t bytes = hidden_bytes(e, rows);
    if (!engine_ok(bsmm_copy_memory(&exec, e->hidden, hidden, bytes), "batch")) return false;
    if (!(e->graphs ? engine_launch(e, class_of(e, rows)) : engine_queue(e, rows))) return false;
    return engine_ok(bsmm_copy_memory(&exec, hidden, e->hidden, bytes), "batch") &&
           engine_ok(bsmm_synchronize_stream(&exec), "batch");
}

bool engine_ok(bsmm_status status, const char *what) {
    if (status == BSMM_OK) return true;
    fprintf(stderr, "%s: %s: %s\n", what, bsmm_status_name(status), bsmm_error_message());
    return false;
}
