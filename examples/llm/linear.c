/* Multiplies activations by weights. One plan for each shape of weights multiplies any number of
 * rows of activations up to LLM_BATCH. For a GPU, the host quantizes the activations and copies
 * them. */
#include "llm.h"

#include <stdlib.h>
#include <string.h>

static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};

void llm_formats_set(llm_formats *f, const char *weights, const char *activations,
                     const char *embedding) {
    llm_check(bsmm_format_from_name(weights, &f->weights), weights);
    f->last = f->weights.elem == BSMM_ELEM_F32 ? f32 : (bsmm_format){.elem = BSMM_ELEM_BF16};
    f->activations = f->embedding = f->last;
    if (activations) llm_check(bsmm_format_from_name(activations, &f->activations), activations);
    if (embedding) llm_check(bsmm_format_from_name(embedding, &f->embedding), embedding);
    if (embedding) f->last = f->activations;
}

bsmm_matrix llm_matrix_create(bsmm_format format, int64_t rows, int64_t cols) {
    bsmm_matrix m = {sizeof m, .format = format, .rows = rows, .cols = cols};
    uint64_t scale_bytes = 0;
    llm_check(bsmm_data_bytes(&m, &m.data_bytes), "matrix");
    m.data = llm_alloc(m.data_bytes, 1);
    if (format.scale == BSMM_SCALE_NONE) return m;
    llm_check(bsmm_scale_bytes(&m, &scale_bytes), "matrix");
    m.scale_bytes = scale_bytes;
    m.scales = llm_alloc(scale_bytes, 1);
    /* e4m3 scales have so small a range that the tensor needs a second-level scale. */
    if (format.scale == BSMM_SCALE_E4M3) m.global_scale = llm_alloc(1, sizeof(float));
    return m;
}

void llm_matrix_destroy(bsmm_matrix *m) {
    free(m->data);
    free(m->scales);
    free(m->global_scale);
    m->data = m->scales = m->global_scale = NULL;
}

static bool is_host(const llm_product *p) {
    return strcmp(p->formats->device, "cpu") == 0;
}

static void *device_alloc(const llm_product *p, uint64_t bytes) {
    void *memory;
    llm_check(bsmm_allocate_memory(p->formats->device, bytes, &memory), p->formats->device);
    return memory;
}

static void copy(const llm_product *p, void *to, const void *from, uint64_t bytes) {
    bsmm_exec exec = {sizeof exec, .device = p->formats->device};
    if (!from || bytes == 0) return;
    llm_check(bsmm_copy_memory(&exec, to, from, bytes), "copy");
    llm_check(bsmm_synchronize_stream(&exec), "copy");
}

static void *device_copy(const llm_product *p, const void *from, uint64_t bytes) {
    void *memory = from ? device_alloc(p, bytes) : NULL;
    copy(p, memory, from, bytes);
    return memory;
}

/* Tells whether the weights are packed. f32 weights are read faster unpacked. */
static bool packs(const llm_product *p) {
    return is_host(p) && p->b.format.elem != BSMM_ELEM_F32;
}

bsmm_matmul_desc llm_product_describe(const llm_product *p, int64_t rows, bsmm_matrix *a,
                                      bsmm_matrix *d) {
    *a = p->a, *d = p->d;
    a->rows = d->rows = rows;
    a->data_bytes = a->scale_bytes = 0;
    return (bsmm_matmul_desc){.struct_size = sizeof(bsmm_matmul_desc),
                              .a = a,
                              .b = &p->b,
                              .d = d,
                              .threads = p->formats->threads,
                              .device = p->formats->device,
                              .b_packed = packs(p) ? BSMM_PACKED_COMPACT : BSMM_PACKED_NONE};
}

/* Makes a plan, and enlarges the product's workspace to the size that the plan needs. */
static bsmm_plan *plan_rows(llm_product *p, int64_t rows) {
    bsmm_matrix a, d;
    bsmm_matmul_desc desc = llm_product_describe(p, rows, &a, &d);
    bsmm_plan *plan;
    if (is_host(p)) desc.flags = BSMM_MATMUL_ANY_ROWS;
    llm_check(bsmm_plan_create(&desc, &plan), "plan");
    const uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    if (bytes > p->buffers.workspace_bytes) p->buffers.workspace_bytes = bytes;
    return plan;
}

void llm_product_create(llm_product *p, const llm_formats *formats, bsmm_format activations,
                        bsmm_format weights, int64_t rows, int64_t inputs, int64_t outputs,
                        int64_t count) {
    *p = (llm_product){.formats = formats};
    p->a = llm_matrix_create(activations, rows, inputs);
    p->b = (bsmm_matrix){sizeof p->b, .format = weights, .rows = outputs, .cols = inputs};
    p->d = (bsmm_matrix){sizeof p->d, .format = f32, .rows = rows, .cols = outputs};
    p->buffers = (bsmm_buffers){sizeof p->buffers, .a = p->a.data, .a_scales = p->a.scales};
    p->buffers.a_global = p->a.global_scale;
    p->plan = plan_rows(p, rows);
    if (!is_host(p)) p->plan_of_one = plan_rows(p, 1);
    p->buffers.workspace = device_alloc(p, p->buffers.workspace_bytes);
    p->buffers.packed_b_bytes = packs(p) ? (bsmm_plan_packed_b_bytes(p->plan) + 63) / 64 * 64 : 0;
    p->packed = device_alloc(p, (uint64_t)count * p->buffers.packed_b_bytes);
    if (is_host(p)) return;
    p->buffers.a = device_copy(p, p->a.data, p->a.data_bytes);
    p->buffers.a_scales = device_copy(p, p->a.scales, p->a.scale_bytes);
    p->buffers.a_global = device_copy(p, p->a.global_scale, sizeof(float));
    p->buffers.d = device_alloc(p, (uint64_t)(rows * outputs) * sizeof(float));
}

void llm_product_destroy(llm_product *p) {
    const bsmm_buffers *b = &p->buffers;
    const void *memory[] = {b->workspace, p->packed, b->a, b->a_scales, b->a_global, b->d};
    for (int i = 0; i < (is_host(p) ? 2 : 6); i++)
        llm_check(bsmm_free_memory(p->formats->device, (void *)(uintptr_t)memory[i]), "free");
    bsmm_plan_destroy(p->plan);
    bsmm_plan_destroy(p->plan_of_one);
    llm_matrix_destroy(&p->a);
}

static void quantize(const llm_product *p, const float *values, int64_t rows,
                     const bsmm_matrix *to) {
    bsmm_matrix from = {sizeof from, .format = f32, .rows = rows, .cols = to->cols};
    bsmm_matrix part = *to;
    from.data = (void *)(uintptr_t)values;
    part.rows = rows;
    part.scale_bytes = 0;
    bsmm_quantize_desc desc = {sizeof desc, .src = &from, .dst = &part};
    desc.threads = p->formats->threads;
    llm_check(bsmm_quantize(&desc, NULL), "quantize");
}

void llm_weight_create(llm_weight *w, const llm_product *p, int64_t index, const float *values,
                       bool keep) {
    *w = (llm_weight){.host = llm_matrix_create(p->b.format, p->b.rows, p->b.cols)};
    bsmm_matrix *b = &w->host;
    quantize(p, values, p->b.rows, b);
    if (packs(p)) {
        const bsmm_buffers from = {sizeof from, .b = b->data, .b_scales = b->scales,
                                   .b_global = b->global_scale};
        w->packed = (uint8_t *)p->packed + (uint64_t)index * p->buffers.packed_b_bytes;
        llm_check(bsmm_pack_b(p->plan, &from, w->packed, p->buffers.packed_b_bytes), "pack");
    } else {
        w->data = device_copy(p, b->data, b->data_bytes);
        w->scales = device_copy(p, b->scales, b->scale_bytes);
        w->global = device_copy(p, b->global_scale, sizeof(float));
    }
    if (!keep || (packs(p) && !b->scales)) llm_matrix_destroy(b);
}

void llm_weight_destroy(llm_weight *w, const llm_product *p) {
    void *memory[] = {w->data, w->scales, w->global};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        llm_check(bsmm_free_memory(p->formats->device, memory[i]), p->formats->device);
    llm_matrix_destroy(&w->host);
}

void llm_weight_row(const llm_weight *w, const llm_product *p, int64_t row, float *values) {
    if (row < 0 || row >= p->b.rows)
        llm_fail("token %lld: the embedding has %lld", (long long)row, (long long)p->b.rows);
    bsmm_matrix from = llm_matrix_create(p->b.format, 1, p->b.cols);
    bsmm_matrix to = {sizeof to, .format = f32, .rows = 1, .cols = p->b.cols, .data = values};
    /* In the packed form compact, groups of 16 rows follow a header of 32 words. A group has the
       first word of each of its rows, then the second word of each, and so on (docs/PACKING.md). */
    const int64_t words = (int64_t)from.data_bytes / 4, group = row / 16 * 16;
    const int64_t left = p->b.rows - group, step = w->host.data ? 1 : left < 16 ? left : 16;
    const uint32_t *at = w->host.data ? w->host.data : w->packed;
    at += w->host.data ? row * words : 32 + group * words + row - group;
    for (int64_t i = 0; i < words; i++)
        ((uint32_t *)from.data)[i] = at[i * step];
    const int64_t rows = from.scales ? p->b.format.block_rows : 1, n = (int64_t)from.scale_bytes;
    if (from.scales) memcpy(from.scales, (uint8_t *)w->host.scales + row / rows * n, (size_t)n);
    if (from.global_scale) *from.global_scale = *w->host.global_scale;
    llm_check(bsmm_dequantize(&from, &to), "embedding");
    llm_matrix_destroy(&from);
}

void llm_multiply(llm_product *p, const llm_weight *w, const float *x, int64_t rows, float *y) {
    bsmm_buffers buffers = p->buffers;
    buffers.packed_b = w->packed;
    buffers.b = w->data, buffers.b_scales = w->scales, buffers.b_global = w->global;
    quantize(p, x, rows, &p->a);
    if (is_host(p)) {
        buffers.d = y, buffers.rows = rows;
        llm_check(bsmm_plan_run(p->plan, &buffers), "product");
        return;
    }
    copy(p, (void *)(uintptr_t)buffers.a, p->a.data, p->a.data_bytes);
    copy(p, (void *)(uintptr_t)buffers.a_scales, p->a.scales, p->a.scale_bytes);
    copy(p, (void *)(uintptr_t)buffers.a_global, p->a.global_scale, sizeof(float));
    llm_check(bsmm_plan_run(rows == 1 ? p->plan_of_one : p->plan, &buffers), "product");
    copy(p, y, buffers.d, (uint64_t)(rows * p->d.cols) * sizeof *y);
}
