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
        m = llm_matrix_create(m.format, rows, cols);
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

/* Describes a part of a weight, i.e. `rows` rows that one tensor provides. */
typedef struct part {
    const char *name;
    int64_t rows;
} part;

/* Makes one weight of up to three tensors, whose rows follow each other. */
static void read_weight(const bsmm_file *file, int64_t layer, const llm_product *p,
                        const part parts[3], llm_weight *w) {
    char name[64];
    float *values = llm_alloc((size_t)(p->b.rows * p->b.cols), sizeof *values), *to = values;
    for (int i = 0; i < 3 && parts[i].name; to += parts[i++].rows * p->b.cols) {
        snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, parts[i].name);
        read_matrix(file, name, parts[i].rows, p->b.cols, to);
    }
    llm_weight_create(w, p, values, false);
    free(values);
}

bool llm_is_simulated(const llm_model *m) {
    return strncmp(m->formats.device, "sim:", 4) == 0;
}

static void read_layer(llm_model *m, const bsmm_file *file, int64_t i) {
    const int64_t kv = m->kv_heads * m->head_size;
    llm_layer *l = &m->layer[i];
    char name[64];
    l->products = i == 0 || !llm_is_simulated(m) ? &m->products : &m->other_products;
    snprintf(name, sizeof name, "blk.%lld.attn_norm.weight", (long long)i);
    l->attention_norm = read_norm(file, name, m->hidden);
    snprintf(name, sizeof name, "blk.%lld.ffn_norm.weight", (long long)i);
    l->feed_forward_norm = read_norm(file, name, m->hidden);
    read_weight(file, i, &l->products->qkv,
                (part[3]){{"attn_q", m->hidden}, {"attn_k", kv}, {"attn_v", kv}}, &l->qkv);
    read_weight(file, i, &l->products->out, (part[3]){{"attn_output", m->hidden}}, &l->out);
    read_weight(file, i, &l->products->gate_up,
                (part[3]){{"ffn_gate", m->feed_forward}, {"ffn_up", m->feed_forward}}, &l->gate_up);
    read_weight(file, i, &l->products->down, (part[3]){{"ffn_down", m->hidden}}, &l->down);
}

static void read_embedding(llm_model *m, const bsmm_file *file) {
    bsmm_tensor t = BSMM_INIT(bsmm_tensor);
    const bsmm_format embedding = m->formats.embedding;
    if (bsmm_file_tensor_find(file, "output.weight", &t) == BSMM_OK)
        llm_fail("output.weight: must be absent, because the embedding is the last weight");
    llm_check(bsmm_file_tensor_find(file, "token_embd.weight", &t), "token_embd.weight");
    m->vocabulary = t.ndim == 2 ? t.shape[0] : 0;
    float *values = llm_alloc((size_t)(m->vocabulary * m->hidden), sizeof *values);
    read_matrix(file, "token_embd.weight", m->vocabulary, m->hidden, values);
    llm_product_create(&m->head_product, &m->other_formats, embedding, embedding, BSMM_PACKED_NONE,
                       LLM_HEAD_BATCH, m->hidden, m->vocabulary);
    llm_weight_create(&m->head, &m->head_product, values, true);
    free(values);
}

static void create_products(llm_products *p, const llm_model *m, const llm_formats *formats) {
    const struct {
        llm_product *product;
        int64_t inputs, outputs;
    } shapes[] = {
        {&p->qkv, m->hidden, (m->heads + 2 * m->kv_heads) * m->head_size},
        {&p->out, m->hidden, m->hidden},
        {&p->gate_up, m->hidden, 2 * m->feed_forward},
        {&p->down, m->feed_forward, m->hidden},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        llm_product_create(shapes[i].product, formats, formats->activations, formats->weights,
                           formats->packed, LLM_BATCH, shapes[i].inputs, shapes[i].outputs);
}

static void destroy_products(llm_products *p) {
    llm_product_destroy(&p->qkv);
    llm_product_destroy(&p->out);
    llm_product_destroy(&p->gate_up);
    llm_product_destroy(&p->down);
}

void llm_model_create(llm_model *m, const bsmm_file *file, const llm_formats *formats) {
    *m = (llm_model){.formats = *formats, .other_formats = *formats};
    if (llm_is_simulated(m)) m->other_formats.device = "cpu";
    read_config(m, file);
    create_products(&m->products, m, &m->formats);
    if (llm_is_simulated(m)) create_products(&m->other_products, m, &m->other_formats);
    m->layer = llm_alloc((size_t)m->layers, sizeof *m->layer);
    for (int64_t i = 0; i < m->layers; i++)
        read_layer(m, file, i);
    m->final_norm = read_norm(file, "output_norm.weight", m->hidden);
    read_embedding(m, file);
}

void llm_model_destroy(llm_model *m) {
    for (int64_t i = 0; i < m->layers; i++) {
        llm_layer *l = &m->layer[i];
        llm_weight_destroy(&l->qkv, &l->products->qkv);
        llm_weight_destroy(&l->out, &l->products->out);
        llm_weight_destroy(&l->gate_up, &l->products->gate_up);
        llm_weight_destroy(&l->down, &l->products->down);
        free(l->attention_norm);
        free(l->feed_forward_norm);
    }
    llm_weight_destroy(&m->head, &m->head_product);
    llm_product_destroy(&m->head_product);
    destroy_products(&m->products);
    if (llm_is_simulated(m)) destroy_products(&m->other_products);
    free(m->layer);
    free(m->final_norm);
}
