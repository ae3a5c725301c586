/* Computes the layers of a Llama model, which consist of RMSNorm, attention and SwiGLU. */
#include "llm.h"

#include <math.h>
#include <string.h>

/* Computes the rotation angles and rounds them to f32 as transformers does, because models are
 * trained with such angles. */
static void fill_angles(llm_state *s) {
    const int64_t size = s->m->head_size;
    for (int64_t i = 0; i < size; i += 2) {
        float frequency = 1 / powf(s->m->rope_base, (float)i / (float)size);
        for (int64_t position = 0; position < s->room; position++) {
            float angle = (float)position * frequency;
            s->angles[position * size + i] = cosf(angle);
            s->angles[position * size + i + 1] = sinf(angle);
        }
    }
}

void llm_state_create(llm_state *s, llm_model *m, int64_t room) {
    if (room > m->context)
        llm_fail("%lld tokens: the model has a context of %lld", (long long)room,
                 (long long)m->context);
    *s = (llm_state){.m = m, .room = room};
    const struct {
        float **values;
        int64_t count;
    } arrays[] = {
        {&s->keys, m->layers * m->kv_heads * m->head_size * room},
        {&s->values, m->layers * m->kv_heads * m->head_size * room},
        {&s->angles, m->head_size * room},
        {&s->x, LLM_BATCH * m->hidden},
        {&s->normed, LLM_BATCH * m->hidden},
        {&s->qkv, LLM_BATCH * m->products[LLM_QKV].b.rows},
        {&s->attended, LLM_BATCH * m->hidden},
        {&s->gate_up, LLM_BATCH * m->products[LLM_GATE_UP].b.rows},
        {&s->active, LLM_BATCH * m->feed_forward},
        {&s->logits, LLM_HEAD_BATCH * m->vocabulary},
    };
    enum { ARRAYS = sizeof arrays / sizeof arrays[0] };
    size_t count = 0;
    for (int i = 0; i < ARRAYS; i++)
        count += (size_t)(arrays[i].count + 15) / 16 * 16;
    void *all;
    llm_check(bsmm_allocate_memory("cpu", count * sizeof(float), &all), "state");
    float *memory = memset(all, 0, count * sizeof *memory);
    for (int i = 0; i < ARRAYS; memory += (arrays[i++].count + 15) / 16 * 16)
        *arrays[i].values = memory;
    fill_angles(s);
}

void llm_state_destroy(llm_state *s) {
    llm_check(bsmm_free_memory("cpu", s->keys), "state");
}

/* Computes y = x / sqrt(mean(x^2) + epsilon) * weight for each row of x. */
static void normalize(const llm_model *m, const float *x, const float *weight, int64_t rows,
                      float *y) {
    const int64_t n = m->hidden;
#pragma omp parallel for if (rows > 1)
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)x[r * n + i] * (double)x[r * n + i];
        float factor = 1 / sqrtf((float)(sum / (double)n) + m->epsilon);
        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = weight[i] * (x[r * n + i] * factor);
    }
}

static void add(float *x, const float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] += y[i];
}

static void multiply(llm_state *s, llm_product *p, const llm_weight *w, const float *x,
                     int64_t rows, float *y) {
    llm_multiply(p, w, x, rows, y);
    if (s->watch) s->watch(s, p, w, rows, y);
}

static void run_layer(llm_state *s, int64_t i, int64_t rows) {
    const llm_model *m = s->m;
    const llm_layer *l = &m->layer[i];
    llm_product *p = l->products;
    const llm_weight *w = l->weights;
    normalize(m, s->x, l->attention_norm, rows, s->normed);
    multiply(s, &p[LLM_QKV], &w[LLM_QKV], s->normed, rows, s->qkv);
    llm_attend(s, i, rows);
    multiply(s, &p[LLM_OUT], &w[LLM_OUT], s->attended, rows, s->normed);
    add(s->x, s->normed, rows * m->hidden);
    normalize(m, s->x, l->feed_forward_norm, rows, s->normed);
    multiply(s, &p[LLM_GATE_UP], &w[LLM_GATE_UP], s->normed, rows, s->gate_up);
    llm_swiglu(s->gate_up, rows, m->feed_forward, s->active);
    multiply(s, &p[LLM_DOWN], &w[LLM_DOWN], s->active, rows, s->normed);
    add(s->x, s->normed, rows * m->hidden);
}

void llm_read(llm_state *s, const int32_t *tokens, int64_t count) {
    if (count > LLM_BATCH || s->count + count > s->room)
        llm_fail("%lld and %lld tokens: there is room for %lld", (long long)s->count,
                 (long long)count, (long long)s->room);
    for (int64_t r = 0; r < count; r++)
        llm_weight_row(&s->m->head, &s->m->head_product, tokens[r], s->x + r * s->m->hidden);
    for (int64_t i = 0; i < s->m->layers; i++)
        run_layer(s, i, count);
    s->count += count;
    normalize(s->m, s->x, s->m->final_norm, count, s->normed);
}

float *llm_logits(llm_state *s, int64_t first, int64_t rows) {
    const float *x = s->normed + first * s->m->hidden;
    multiply(s, &s->m->head_product, &s->m->head, x, rows, s->logits);
    return s->logits;
}

float *llm_read_all(llm_state *s, const int32_t *tokens, int64_t count) {
    int64_t part = 0;
    for (int64_t at = 0; at < count; at += part) {
        part = count - at < LLM_BATCH ? count - at : LLM_BATCH;
        llm_read(s, tokens + at, part);
    }
    return llm_logits(s, part - 1, 1);
}
