/* Loads weights from a safetensors or GGUF file, quantizes and packs them. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[ENGINE_KINDS] = {"up", "down"};

/* Allocates the memory that the description of a matrix needs. */
static bool allocate(bsmm_matrix *m) {
    m->scale_bytes = 0;
    if (!engine_ok(bsmm_data_bytes(m, &m->data_bytes), "weight")) return false;
    m->data = malloc(m->data_bytes);
    if (m->format.scale != BSMM_SCALE_NONE) {
        uint64_t bytes;
        if (!engine_ok(bsmm_scale_bytes(m, &bytes), "weight")) return false;
        m->scale_bytes = bytes;
        m->scales = malloc(bytes);
        m->global_scale = malloc(sizeof(float));
        if (m->global_scale) *m->global_scale = 1;
        if (!m->scales || !m->global_scale) return false;
    }
    return m->data != NULL;
}

static void release(bsmm_matrix *m) {
    free(m->data);
    free(m->scales);
    free(m->global_scale);
    m->data = m->scales = m->global_scale = NULL;
}

/* Copies a weight of any checkpoint family out of the file. */
static bool read_weight(const bsmm_file *file, uint64_t index, bsmm_matrix *m) {
    bsmm_matrix stored = BSMM_INIT(bsmm_matrix);
    if (!engine_ok(bsmm_weight_matrix(file, index, 0, &stored), "weight")) return false;
    *m = stored;
    m->ld = m->scale_ld = 0;
    m->data = m->scales = m->global_scale = NULL;
    if (!allocate(m)) return false;
    if (!stored.global_scale) {
        free(m->global_scale);
        m->global_scale = NULL;
    }
    return engine_ok(bsmm_weight_unpack(file, index, 0, m), "weight");
}

/* Replaces an unscaled weight by its quantized form. */
static bool quantize(bsmm_matrix *m, bsmm_format format) {
    bsmm_matrix to = {sizeof to, .format = format, .rows = m->rows, .cols = m->cols};
    bsmm_quantize_desc desc = {sizeof desc, .src = m, .dst = &to};
    if (m->format.scale != BSMM_SCALE_NONE || format.scale == BSMM_SCALE_NONE) return true;
    const bool done = allocate(&to) && engine_ok(bsmm_quantize(&desc, NULL), "quantize");
    release(m);
    *m = to;
    return done;
}

static bool load_layer(engine *e, const bsmm_file *file, bsmm_format format) {
    for (int kind = 0; kind < ENGINE_KINDS; kind++) {
        bsmm_matrix *host = &e->weights[e->layers][kind].host;
        char name[64];
        uint64_t index;
        snprintf(name, sizeof name, "model.layers.%d.mlp.%s_proj.weight", e->layers, names[kind]);
        if (!engine_ok(bsmm_file_weight_find(file, name, &index), name)) return false;
        if (!read_weight(file, index, host) || !quantize(host, format)) return false;
    }
    e->layers++;
    return true;
}

static bool has_layer(const bsmm_file *file, int layer) {
    char name[64];
    uint64_t index;
    snprintf(name, sizeof name, "model.layers.%d.mlp.up_proj.weight", layer);
    return layer < ENGINE_MOST_LAYERS && bsmm_file_weight_find(file, name, &index) == BSMM_OK;
}

/* Checks that every layer has the format and the shapes of layer 0, because one set of plans serves
 * all layers. */
static bool check_shapes(const engine *e) {
    for (int layer = 0; layer < e->layers; layer++) {
        const bsmm_matrix *up = &e->weights[layer][ENGINE_UP].host;
        const bsmm_matrix *down = &e->weights[layer][ENGINE_DOWN].host;
        const bsmm_matrix *first = &e->weights[0][ENGINE_UP].host;
        if (up->rows == first->rows && up->cols == first->cols && down->rows == first->cols &&
            down->cols == first->rows && up->format.elem == first->format.elem &&
            down->format.elem == first->format.elem)
            continue;
        fprintf(stderr, "layer %d: its shapes or formats are not those of layer 0\n", layer);
        return false;
    }
    if (e->layers == 0) fprintf(stderr, "the file has no model.layers.0.mlp.up_proj.weight\n");
    return e->layers > 0;
}

bool engine_load(engine *e, const char *path, const char *format) {
    bsmm_format target;
    bsmm_file *file;
    bool loaded = engine_ok(bsmm_format_from_name(format, &target), format) &&
                  engine_ok(bsmm_file_open(path, &file), path);
    if (!loaded) return false;
    while (loaded && has_layer(file, e->layers))
        loaded = load_layer(e, file, target);
    bsmm_file_close(file);
    return loaded && check_shapes(e);
}

/* Copies host memory to new memory of the device. */
static bool upload(const engine *e, const void *from, uint64_t bytes, void **to) {
    bsmm_exec exec = {sizeof exec, .device = e->device, .stream = e->stream};
    return !from || (engine_ok(bsmm_allocate_memory(e->device, bytes, to), "weight") &&
                     engine_ok(bsmm_copy_memory(&exec, *to, from, bytes), "weight"));
}

/* Copies a weight to device memory and packs it there. On a GPU, bsmm_pack_b only queues kernels
 * that read this copy. The copy is therefore freed only after the stream has finished. */
static bool pack_weight(const engine *e, const engine_product *product, engine_weight *weight) {
    const bsmm_matrix *host = &weight->host;
    bsmm_exec exec = {sizeof exec, .device = e->device, .stream = e->stream};
    void *copies[3] = {NULL, NULL, NULL};
    bool packed =
        upload(e, host->data, host->data_bytes, &copies[0]) &&
        upload(e, host->scales, host->scale_bytes, &copies[1]) &&
        upload(e, host->global_scale, sizeof(float), &copies[2]) &&
        engine_ok(bsmm_allocate_memory(e->device, product->packed_bytes, &weight->packed), "pack");
    bsmm_buffers buffers = {sizeof buffers, .b = copies[0], .b_scales = copies[1]};
    buffers.b_global = copies[2];
    buffers.stream = e->stream;
    packed =
        packed &&
        engine_ok(bsmm_pack_b(product->plans[0], &buffers, weight->packed, product->packed_bytes),
                  "pack") &&
        engine_ok(bsmm_synchronize_stream(&exec), "pack");
    for (int i = 0; i < 3; i++)
        bsmm_free_memory(e->device, copies[i]);
    return packed;
}

bool engine_pack(engine *e) {
    for (int layer = 0; layer < e->layers; layer++)
        for (int kind = 0; kind < ENGINE_KINDS; kind++)
            if (!pack_weight(e, &e->products[kind], &e->weights[layer][kind])) return false;
    return true;
}

void engine_free_weights(engine *e) {
    for (int layer = 0; layer < ENGINE_MOST_LAYERS; layer++)
        for (int kind = 0; kind < ENGINE_KINDS; kind++) {
            release(&e->weights[layer][kind].host);
            bsmm_free_memory(e->device, e->weights[layer][kind].packed);
        }
}
