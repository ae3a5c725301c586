/* Generates a model for use when no real model is available. It has the shapes and tensor names of
 * two layers of a small BERT. Weights are normally distributed, and a few input channels have
 * larger weights, as in trained models. */
#include "job.h"

#include <math.h>
#include <stdio.h>

enum { HIDDEN = 384, INTERMEDIATE = 1536, WORDS = 1024, LAYERS = 2, OUTLIER_EVERY = 61 };

/* Returns a random number in (0, 1], by the generator splitmix64. */
static double next_uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)(((z ^ z >> 31) >> 11) + 1) * 0x1p-53;
}

static double next_normal(uint64_t *state) {
    double radius = sqrt(-2 * log(next_uniform(state)));
    return radius * cos(6.283185307179586 * next_uniform(state));
}

typedef struct tensor {
    const char *name; /* `name` is the name of the tensor in a layer, after "encoder.layer.N.". */
    /* `rows` and `cols` are the size of the tensor. If `rows` is 0, the tensor is a vector of
     * `cols` elements. */
    int64_t rows, cols;
    double mean, spread;
} tensor;

static const tensor embeddings[] = {
    {"embeddings.word_embeddings.weight", WORDS, HIDDEN, 0, 0.05},
    {"embeddings.position_embeddings.weight", JOB_MAX_TOKENS, HIDDEN, 0, 0.01},
    {"embeddings.token_type_embeddings.weight", 2, HIDDEN, 0, 0.01},
    {"embeddings.LayerNorm.weight", 0, HIDDEN, 0.9, 0.05},
    {"embeddings.LayerNorm.bias", 0, HIDDEN, 0, 0.05},
};
static const tensor layer[] = {
    {"attention.self.query.weight", HIDDEN, HIDDEN, 0, 0.05},
    {"attention.self.key.weight", HIDDEN, HIDDEN, 0, 0.05},
    {"attention.self.value.weight", HIDDEN, HIDDEN, 0, 0.05},
    {"attention.output.dense.weight", HIDDEN, HIDDEN, 0, 0.05},
    {"intermediate.dense.weight", INTERMEDIATE, HIDDEN, 0, 0.05},
    {"intermediate.dense.bias", 0, INTERMEDIATE, 0, 0.1},
    {"output.dense.weight", HIDDEN, INTERMEDIATE, 0, 0.05},
};
enum {
    EMBEDDINGS = sizeof embeddings / sizeof embeddings[0],
    PARTS = sizeof layer / sizeof layer[0]
};

static tensor tensor_at(int index, char name[128]) {
    const tensor *t =
        index < EMBEDDINGS ? &embeddings[index] : &layer[(index - EMBEDDINGS) % PARTS];
    if (index < EMBEDDINGS)
        snprintf(name, 128, "%s", t->name);
    else
        snprintf(name, 128, "encoder.layer.%d.%s", (index - EMBEDDINGS) / PARTS, t->name);
    return *t;
}

static void fill(const tensor *t, float *values, uint64_t seed) {
    uint64_t state = seed;
    int64_t rows = t->rows ? t->rows : 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < t->cols; c++) {
            double large = t->rows && c % OUTLIER_EVERY == OUTLIER_EVERY / 2 ? 12 : 1;
            values[r * t->cols + c] = (float)(t->mean + large * t->spread * next_normal(&state));
        }
}

void job_generate(const char *path) {
    enum { COUNT = EMBEDDINGS + LAYERS * PARTS };
    char name[128];
    bsmm_writer *writer;
    uint64_t indices[COUNT];
    job_check(bsmm_writer_create(path, "safetensors", &writer), path);
    for (int i = 0; i < COUNT; i++) {
        tensor t = tensor_at(i, name);
        int64_t shape[2] = {t.rows, t.cols};
        uint32_t ndim = t.rows ? 2 : 1;
        job_check(bsmm_writer_add_tensor(writer, name, "F32", ndim, shape + 2 - ndim, &indices[i]),
                  path);
    }
    job_check(bsmm_writer_begin(writer), path);
    for (int i = 0; i < COUNT; i++) {
        tensor t = tensor_at(i, name);
        void *data;
        uint64_t bytes;
        job_check(bsmm_writer_tensor(writer, indices[i], &data, &bytes), path);
        fill(&t, data, (uint64_t)i + 1);
    }
    job_check(bsmm_writer_commit(writer), path);
}
