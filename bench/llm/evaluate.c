/* Measures the quality and the speed of a language model on a text. */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SAMPLE = 8, /* The program computes the divergence for every eighth token. */
    SAMPLES =
        /* A window is LLM_BATCH tokens of the text. SAMPLES is the number of its tokens for which
         * the divergence is computed. */
    LLM_BATCH / SAMPLE,
    DECODED = 48, /* DECODED is the number of tokens of the measured answer. */
    /* FEW_DECODED is the number of tokens of the measured answer on a simulated device, which is
     * slow. */
    FEW_DECODED = 4
};

size_t reference_count(const llm_ids *text, int64_t vocabulary) {
    return (size_t)(text->count / LLM_BATCH * SAMPLES * vocabulary);
}

/* Returns the logarithm of the sum of exp(logits). `scratch` has room for the logits. */
static double log_sum(const float *logits, int64_t count, float *scratch) {
    float largest = logits[0];
    for (int64_t i = 0; i < count; i++) {
        scratch[i] = logits[i];
        largest = fmaxf(largest, logits[i]);
    }
    return (double)largest + log((double)llm_softmax(scratch, count));
}

/* Returns the Kullback-Leibler divergence sum p (log p - log q), where p = softmax(from) and q =
 * softmax(to). */
static double divergence(const float *from, const float *to, int64_t count, float *scratch) {
    double p_sum = log_sum(from, count, scratch), sum = 0, difference, all = 0;
    for (int64_t i = 0; i < count; i++) {
        all += (double)scratch[i];
        sum += (double)scratch[i] * ((double)from[i] - (double)to[i]);
    }
    difference = log_sum(to, count, scratch) - p_sum;
    return sum / all + difference;
}

/* Holds the sums of a run, in which the model reads a text in windows, i.e. in sequences of tokens.
 * Each token of a window has its own entry, because several threads score tokens at the same
 * time. */
typedef struct sums {
    double losses[LLM_BATCH], divergences[LLM_BATCH];
} sums;

/* Adds the loss and the divergence of row r, i.e. of token r of a window of LLM_BATCH tokens.
 * `next` is the token that follows token r in the text. */
static void score_row(sums *to, int64_t r, const float *logits, int32_t next, int64_t count,
                      float *reference, bool is_reference) {
    float *scratch = llm_alloc((size_t)count, sizeof *scratch);
    to->losses[r] += log_sum(logits, count, scratch) - (double)logits[next];
    if (r % SAMPLE == 0 && is_reference)
        for (int64_t i = 0; i < count; i++)
            reference[r / SAMPLE * count + i] = logits[i];
    else if (r % SAMPLE == 0)
        to->divergences[r] += divergence(reference + r / SAMPLE * count, logits, count, scratch);
    free(scratch);
}

static void score_window(llm_state *s, const int32_t *tokens, float *reference, bool is_reference,
                         sums *to) {
    const int64_t n = s->m->vocabulary;
    for (int64_t at = 0; at < LLM_BATCH; at += LLM_HEAD_BATCH) {
        const float *logits = llm_logits(s, at, LLM_HEAD_BATCH);
#pragma omp parallel for
        for (int64_t r = at; r < at + LLM_HEAD_BATCH; r++)
            if (r + 1 < LLM_BATCH)
                score_row(to, r, logits + (r - at) * n, tokens[r + 1], n, reference, is_reference);
    }
}

/* Returns the size in MiB of this process's resident memory, without memory that is mapped from a
 * file or shared. */
static double resident(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    double kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %lf", &kib) == 1) break;
    if (file) fclose(file);
    return kib / 1024;
}

/* Compares the results of three layers and of the output embedding with sums in double. Checking
 * all layers would take too long. */
static void watch_product(llm_state *s, const llm_product *p, const llm_weight *w, int64_t rows,
                          const float *y) {
    const llm_model *m = s->m;
    const llm_layer *layers[] = {m->layer, m->layer + m->layers / 2, m->layer + m->layers - 1};
    double *error = s->watch_context;
    bool watched = w == &m->head;
    for (int i = 0; i < 3; i++)
        watched = watched || (w >= layers[i]->weights && w < layers[i]->weights + LLM_PRODUCTS);
    if (watched) *error = fmax(*error, product_error(p, w, rows, y));
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Measures how fast the model reads a window of tokens and writes an answer. It checks the errors
 * of products in a run before the timed one. */
static void measure_speed(llm_state *s, const int32_t *tokens, model_score *score) {
    s->watch = watch_product;
    s->watch_context = &score->error;
    float *logits = llm_read_all(s, tokens, LLM_BATCH);
    int32_t token = llm_sample(logits, s->m->vocabulary, 0, NULL);
    logits = llm_read_all(s, &token, 1);
    s->watch = NULL;
    s->count = LLM_BATCH;
    const int decoded = llm_is_simulated(s->m) ? FEW_DECODED : DECODED;
    double start = seconds_now();
    for (int i = 0; i < decoded; i++) {
        token = llm_sample(logits, s->m->vocabulary, 0, NULL);
        logits = llm_read_all(s, &token, 1);
    }
    score->decode = decoded / (seconds_now() - start);
}

/* Returns the average number of bits of memory per weight of the layers, scales included. */
static double model_bits(const llm_model *m) {
    double bits = 0, weights = 0;
    for (size_t i = 0; i < LLM_PRODUCTS; i++) {
        const bsmm_matrix *b = &m->products[i].b;
        uint64_t data, scales = 0;
        llm_check(bsmm_data_bytes(b, &data), "weights");
        if (b->format.scale) llm_check(bsmm_scale_bytes(b, &scales), "weights");
        bits += 8 * (double)(data + scales);
        weights += (double)(b->rows * b->cols);
    }
    return bits / weights;
}

void evaluate(llm_state *s, const llm_ids *text, float *reference, bool is_reference,
              model_score *score) {
    const int64_t windows = text->count / LLM_BATCH, n = s->m->vocabulary;
    sums *total = llm_alloc(1, sizeof *total);
    double seconds = 0, loss = 0, divergences = 0;
    for (int64_t w = 0; w < windows; w++) {
        const int32_t *tokens = text->at + w * LLM_BATCH;
        double start = seconds_now();
        s->count = 0;
        llm_read_all(s, tokens, LLM_BATCH);
        seconds += seconds_now() - start;
        score_window(s, tokens, reference + w * SAMPLES * n, is_reference, total);
    }
    for (int64_t r = 0; r < LLM_BATCH; r++) {
        loss += total->losses[r];
        divergences += total->divergences[r];
    }
    score->perplexity = exp(loss / (double)(windows * (LLM_BATCH - 1)));
    score->divergence = divergences / (double)(windows * SAMPLES);
    score->prefill = (double)(windows * LLM_BATCH) / seconds;
    score->bits = model_bits(s->m);
    score->resident = resident();
    s->count = 0;
    measure_speed(s, text->at, score);
    free(total);
}
