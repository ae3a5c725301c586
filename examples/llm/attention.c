/* Computes attention with a cache of keys and values, and SwiGLU, in f32. Loops over adjacent
 * memory are separate functions, so that the compiler vectorizes them. */
#include "llm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns exp(x) with a relative error below 2^-22. The function clamps x to the range from -87 to
 * 87. */
static inline float exponential(float x) {
    x = x < -87 ? -87 : x > 87 ? 87 : x;
    const float magic = 0x1.8p23f; /* Adding this number rounds a float to an integer. */
    float n = x * 0x1.715476p0f + magic;
    uint32_t bits;
    memcpy(&bits, &n, sizeof bits);
    n -= magic;
    /* ln 2 is split into two parts. The first part has so few bits that its product with n is
       exact. */
    float r = x - n * 0x1.62ep-1f - n * 0x1.0bfbe8p-15f;
    float y =
        1 + r * (1 + r * (1 / 2.f +
                          r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f))))));
    bits = (bits + 127) << 23; /* These are the bits of the float 2^n. */
    memcpy(&n, &bits, sizeof n);
    return y * n;
}

LLM_VECTORS static float softmax(float *scores, int64_t count) {
    enum { LANES = 16 };
    float lanes[LANES] = {0}, largest = scores[0], sum = 0;
    for (int64_t i = 1; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    for (int64_t i = 0; i < count; i++)
        scores[i] = exponential(scores[i] - largest);
    for (int64_t i = 0; i < count / LANES * LANES; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += scores[i + j];
    for (int64_t i = count / LANES * LANES; i < count; i++)
        sum += scores[i];
    for (int j = 0; j < LANES; j++)
        sum += lanes[j];
    return sum;
}

/* Calls softmax for other files. They cannot call softmax itself, because clang 14 gives a function
 * with LLM_VECTORS a different name in each file. */
float llm_softmax(float *scores, int64_t count) {
    return softmax(scores, count);
}

LLM_VECTORS static void swiglu_row(const float *gate, const float *up, int64_t count, float *y) {
    for (int64_t i = 0; i < count; i++)
        y[i] = gate[i] / (1 + exponential(-gate[i])) * up[i];
}

void llm_swiglu(const float *gate_up, int64_t rows, int64_t cols, float *active) {
#pragma omp parallel for if (rows > 1)
    for (int64_t r = 0; r < rows; r++)
        swiglu_row(gate_up + 2 * r * cols, gate_up + (2 * r + 1) * cols, cols, active + r * cols);
}

/* Computes scores[j] = sum over i of query[i] * keys[i][j]. Row i of keys begins at index i *
 * stride. `size` must be a multiple of 4. */
LLM_VECTORS static void score_keys(const float *query, const float *keys, int64_t stride,
                                   int64_t size, int64_t count, float *restrict scores) {
    memset(scores, 0, (size_t)count * sizeof *scores);
    for (int64_t i = 0; i < size; i += 4) {
        const float *k = keys + i * stride, *q = query + i;
        for (int64_t j = 0; j < count; j++)
            scores[j] += q[0] * k[j] + q[1] * k[stride + j] + q[2] * k[2 * stride + j] +
                         q[3] * k[3 * stride + j];
    }
}

/* Computes y[i] = factor * sum over j of weights[j] * values[j][i]. */
LLM_VECTORS static void sum_values(const float *weights, const float *values, int64_t size,
                                   int64_t count, float factor, float *restrict y) {
    memset(y, 0, (size_t)size * sizeof *y);
    int64_t j = 0;
    for (; j + 4 <= count; j += 4) {
        const float *v = values + j * size, *w = weights + j;
        for (int64_t i = 0; i < size; i++)
            y[i] +=
                w[0] * v[i] + w[1] * v[size + i] + w[2] * v[2 * size + i] + w[3] * v[3 * size + i];
    }
    for (; j < count; j++)
        for (int64_t i = 0; i < size; i++)
            y[i] += weights[j] * values[j * size + i];
    for (int64_t i = 0; i < size; i++)
        y[i] *= factor;
}

/* Rotates each pair of adjacent values by an angle that depends on the token's position (RoPE).
 * GGUF files permute the query and key weights so that the values of a pair are adjacent. */
static void rotate(float *head, const float *angles, int64_t size) {
    for (int64_t i = 0; i < size; i += 2) {
        float x = head[i], y = head[i + 1], c = angles[i], s = angles[i + 1];
        head[i] = x * c - y * s;
        head[i + 1] = x * s + y * c;
    }
}

/* Rotates the queries and keys of one position, scales the queries by 1 / sqrt(head_size), and
 * adds the keys and values to the cache of a layer. */
static void add_position(llm_state *s, float *keys, float *values, float *row, int64_t position) {
    const llm_model *m = s->m;
    const int64_t size = m->head_size;
    const float scale = 1 / sqrtf((float)size);
    for (int64_t h = 0; h < m->heads + m->kv_heads; h++)
        rotate(row + h * size, s->angles + position * size, size);
    for (int64_t i = 0; i < m->heads * size; i++)
        row[i] *= scale;
    const float *k = row + m->heads * size, *v = k + m->kv_heads * size;
    for (int64_t i = 0; i < m->kv_heads * size; i++)
        keys[i * s->room + position] = k[i];
    for (int64_t h = 0; h < m->kv_heads; h++)
        memcpy(values + (h * s->room + position) * size, v + h * size,
               (size_t)size * sizeof *values);
}

/* Computes the attention of head h for the query in row r. */
static void attend_head(llm_state *s, const float *keys, const float *values, int64_t r, int64_t h,
                        float *scores) {
    const llm_model *m = s->m;
    const int64_t size = m->head_size, count = s->count + r + 1;
    const int64_t from = h * m->kv_heads / m->heads * size * s->room;
    const float *query = s->qkv + (r * (m->heads + 2 * m->kv_heads) + h) * size;
    score_keys(query, keys + from, s->room, size, count, scores);
    float factor = 1 / llm_softmax(scores, count);
    sum_values(scores, values + from, size, count, factor, s->attended + (r * m->heads + h) * size);
}

void llm_attend(llm_state *s, int64_t layer, int64_t rows) {
    const llm_model *m = s->m;
    const int64_t cached = m->kv_heads * m->head_size * s->room;
    float *keys = s->keys + layer * cached, *values = s->values + layer * cached;
    for (int64_t r = 0; r < rows; r++)
        add_position(s, keys, values, s->qkv + r * m->products[LLM_QKV].b.rows, s->count + r);
#pragma omp parallel if (rows * (s->count + rows) > 512)
    {
        float *scores = llm_alloc((size_t)(s->count + rows), sizeof *scores);
#pragma omp for schedule(dynamic, 4)
        for (int64_t i = 0; i < rows * m->heads; i++)
            attend_head(s, keys, values, i / m->heads, i % m->heads, scores);
        free(scores);
    }
}
