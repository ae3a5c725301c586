/* Reads a model of the Llama family from a GGUF file. The source of the keys is ggml's
 * docs/gguf.md, and the names of tensors are those of llama.cpp. */
#include "llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number_of(const bsmm_file *file, const char *key) {
    bsmm_value v = BSMM_INIT(bsmm_value);
    llm_check(bsmm_file_value(file, key, &v), key);
    return v.type == BSMM_VALUE_FLOAT ? v.real : (double)v.natural + (double)v.integer;
}

static int64_t count_of(const bsmm_file *file, const char *key) {
    double value = number_of(file, key);
    if (!(value >= 1 && value <= 1 << 24))
        llm_fail("%s: value is %g; must be 1 to 2^24", key, value);
    return (int64_t)value;
}

static void read_config(llm_model *m, const bsmm_file *file) {
    const char *family = bsmm_file_metadata(file, "general.architecture");
    bsmm_value absent = BSMM_INIT(bsmm_value);
    if (!family || strcmp(family, "llama") != 0)
        llm_fail("general.architecture: value is %s; must be llama", family ? family : "absent");
    m->layers = count_of(file, "llama.block_count");
    m->hidden = count_of(file, "llama.embedding_length");
    m->feed_forward = count_of(file, "llama.feed_forward_length");
    m->heads = count_of(file, "llama.attention.head_count");
    m->kv_heads = count_of(file, "llama.attention.head_count_kv");
    m->context = count_of(file, "llama.context_length");
    m->rope_base = (float)number_of(file, "llama.rope.freq_base");
    m->epsilon = (float)number_of(file, "llama.attention.layer_norm_rms_epsilon");
    m->head_size = m->hidden / m->heads;
    if (m->hidden % m->heads || m->heads % m->kv_heads || m->head_size % 4)
        llm_fail("%lld values, %lld heads, %lld key heads: each must divide the one before, and a "
                 "head must have a multiple of 4 values",
                 (long long)m->hidden, (long long)m->heads, (long long)m->kv_heads);
    if (count_of(file, "llama.rope.dimension_count") != m->head_size)
        llm_fail("llama.rope.dimension_count: must be %lld", (long long)m->head_size);
    if (bsmm_file_value(file, "llama.rope.scaling.type", &absent) == BSMM_OK)
        llm_fail("llama.rope.scaling.type: must be absent");
}

/* Reads a matrix as f32 values. */
static void read_matrix(const bsmm_file *file, const char *name, int64_t rows, int64_t cols,
                        float *values) {
    uint64_t index;
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    llm_check(bsmm_file_weight_find(file, name, &index), name);
    llm_check(bsmm_weight_matrix(file, index, 0, &m), name);
    if (m.rows != rows || m.cols != cols)
        llm_fail("%s: is %lld x %lld; must be %lld x %lld", name, (long long)m.rows,
                 (long long)m.cols, (long long)rows, (long long)cols);
    const bool mapped = m.data != NULL;
    if (!mapped) {
        const float *global = m.global_scale;
        m = llm_matrix_create(m.format, rows, cols);
        if (m.global_scale) *m.global_scale = global ? *global : 1;
        llm_check(bsmm_weight_unpack(file, index, 0, &m), name);
    }
    bsmm_matrix to = {sizeof to, .rows = rows, .cols = cols, .data = values};
    to.format.elem = BSMM_ELEM_F32;
    llm_check(bsmm_dequantize(&m, &to), name);
    if (!mapped) llm_matrix_destroy(&m);
}

static float *read_norm(const bsmm_file *file, const char *name, int64_t count) {
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    llm_check(bsmm_file_tensor_find(file, name, &t), name);
    if (t.elem != BSMM_ELEM_F32 || t.ndim != 1 || t.shape[0] != count)
        llm_fail("%s: must be a vector of %lld f32", name, (long long)count);
    return memcpy(llm_alloc((size_t)count, sizeof(float)), t.data, (size_t)t.bytes);
}

/* Returns the name of a layer's tensor. The next call overwrites it. */
static const char *name_of(int64_t layer, const char *part) {
    static char name[64];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, part);
    return name;
}

/* Makes the weight of product `i` by stacking the rows of up to three tensors. In the product of q,
 * k and v, the tensor of q may have more rows than those of k and v. */
static void read_weight(const llm_model *m, const bsmm_file *file, int64_t layer, int i) {
    static const char *const parts[LLM_PRODUCTS][4] = {[LLM_QKV] = {"attn_q", "attn_k", "attn_v"},
                                                       [LLM_OUT] = {"attn_output"},
                                                       [LLM_GATE_UP] = {"ffn_gate", "ffn_up"},
                                                       [LLM_DOWN] = {"ffn_down"}};
    const llm_product *p = &m->layer[layer].products[i];
    const int64_t kv = m->kv_heads * m->head_size;
    float *values = llm_alloc((size_t)(p->b.rows * p->b.cols), sizeof *values), *to = values;
    for (int k = 0; parts[i][k]; k++) {
        const int64_t rows = i == LLM_GATE_UP ? m->feed_forward : k ? kv : m->hidden;
        read_matrix(file, name_of(layer, parts[i][k]), rows, p->b.cols, to);
        to += rows * p->b.cols;
    }
    llm_weight_create(&m->layer[layer].weights[i], p, layer, values, false);
    free(values);
}

bool llm_is_simulated(const llm_model *m) {
    return strncmp(m->formats.device, "sim:", 4) == 0;
}

static void read_layer(llm_model *m, const bsmm_file *file, int64_t i) {
    llm_layer *l = &m->layer[i];
    l->products = i == 0 || !llm_is_simulated(m) ? m->products : m->other_products;
    l->attention_norm = read_norm(file, name_of(i, "attn_norm"), m->hidden);
    l->feed_forward_norm = read_norm(file, name_of(i, "ffn_norm"), m->hidden);
    for (int k = 0; k < LLM_PRODUCTS; k++)
        read_weight(m, file, i, k);
}

static void read_embedding(llm_model *m, const bsmm_file *file) {
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    if (bsmm_file_tensor_find(file, "output.weight", &t) == BSMM_OK)
        llm_fail("output.weight: must be absent, because the embedding is the last weight");
    llm_check(bsmm_file_tensor_find(file, "token_embd.weight", &t), "token_embd.weight");
    m->vocabulary = t.ndim == 2 ? t.shape[0] : 0;
    float *values = llm_alloc((size_t)(m->vocabulary * m->hidden), sizeof *values);
    read_matrix(file, "token_embd.weight", m->vocabulary, m->hidden, values);
    llm_product_create(&m->head_product, &m->other_formats, m->formats.last, m->formats.embedding,
                       LLM_HEAD_BATCH, m->hidden, m->vocabulary, 1);
    llm_weight_create(&m->head, &m->head_product, 0, values, true);
    free(values);
}

static void create_products(llm_product *products, const llm_model *m, const llm_formats *formats) {
    const int64_t shapes[LLM_PRODUCTS][2] = {
        [LLM_QKV] = {m->hidden, (m->heads + 2 * m->kv_heads) * m->head_size},
        [LLM_OUT] = {m->hidden, m->hidden},
        [LLM_GATE_UP] = {m->hidden, 2 * m->feed_forward},
        [LLM_DOWN] = {m->feed_forward, m->hidden}};
    for (int i = 0; i < LLM_PRODUCTS; i++)
        llm_product_create(&products[i], formats, formats->activations, formats->weights, LLM_BATCH,
                           shapes[i][0], shapes[i][1], m->layers);
}

void llm_model_create(llm_model *m, const bsmm_file *file, const llm_formats *formats) {
    *m = (llm_model){.formats = *formats, .other_formats = *formats};
    if (llm_is_simulated(m)) m->other_formats.device = "cpu";
    read_config(m, file);
    create_products(m->products, m, &m->formats);
    if (llm_is_simulated(m)) create_products(m->other_products, m, &m->other_formats);
    m->layer = llm_alloc((size_t)m->layers, sizeof *m->layer);
    for (int64_t i = 0; i < m->layers; i++)
        read_layer(m, file, i);
    m->final_norm = read_norm(file, "output_norm.weight", m->hidden);
    read_embedding(m, file);
}

void llm_model_destroy(llm_model *m) {
    for (int64_t i = 0; i < m->layers; i++) {
        llm_layer *l = &m->layer[i];
        for (int k = 0; k < LLM_PRODUCTS; k++)
            llm_weight_destroy(&l->weights[k], &l->products[k]);
        free(l->attention_norm);
        free(l->feed_forward_norm);
    }
    llm_weight_destroy(&m->head, &m->head_product);
    llm_product_destroy(&m->head_product);
    for (int k = 0; k < LLM_PRODUCTS; k++) {
        llm_product_destroy(&m->products[k]);
        if (llm_is_simulated(m)) llm_product_destroy(&m->other_products[k]);
    }
    free(m->layer);
    free(m->final_norm);
}
