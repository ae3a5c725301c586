/* Measures a language model as llama.cpp's programs llama-bench and llama-perplexity do, so that
 * tools/compare-llama.py can compare bsmm with llama.cpp.
 * usage: bsmm_llm_speed MODEL.gguf TEXT WEIGHTS ACTIVATIONS EMBEDDING THREADS ROUNDS */
#include "llm.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    WINDOW = LLM_BATCH, /* WINDOW is the number of tokens that the model reads at once (pp512). */
    /* For the perplexity, the text is divided into windows of WINDOW tokens. FIRST is the index, in
     * a window, of the first token whose loss counts. */
    FIRST = WINDOW / 2,
    WRITTEN = 128 /* WRITTEN is the number of tokens that the model reads one by one (tg128). */
};

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns -log(p), where p is the probability of the token `next`. Overwrites the logits. */
static double loss_of(float *logits, int64_t count, int32_t next) {
    float largest = logits[0], taken = logits[next];
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, logits[i]);
    return (double)largest - (double)taken + log((double)llm_softmax(logits, count));
}

/* Returns the sum of the losses of the tokens in the second half of a window. A window is WINDOW
 * consecutive tokens of the text. */
static double loss_of_window(llm_state *s, const int32_t *tokens) {
    const int64_t n = s->m->vocabulary;
    double loss = 0;
    s->count = 0;
    llm_read(s, tokens, WINDOW);
    for (int64_t at = FIRST; at < WINDOW; at += LLM_HEAD_BATCH) {
        float *logits = llm_logits(s, at, LLM_HEAD_BATCH);
        for (int64_t r = 0; r < LLM_HEAD_BATCH && at + r + 1 < WINDOW; r++)
            loss += loss_of(logits + r * n, n, tokens[at + r + 1]);
    }
    return loss;
}

/* Returns the perplexity of a text. The text is divided into windows, i.e. sequences of tokens. As
 * in llama-perplexity, only the second half of each window counts. */
static double perplexity_of(llm_state *s, const llm_ids *text) {
    const int64_t windows = text->count / WINDOW;
    double loss = 0;
    for (int64_t w = 0; w < windows; w++)
        loss += loss_of_window(s, text->at + w * WINDOW);
    return exp(loss / (double)(windows * (WINDOW - FIRST - 1)));
}

/* Returns the time in seconds in which the model reads `count` tokens, `at_once` tokens at a
 * time. */
static double time_tokens(llm_state *s, const int32_t *tokens, int64_t count, int64_t at_once) {
    const double start = seconds_now();
    s->count = 0;
    for (int64_t i = 0; i < count; i += at_once)
        llm_read_all(s, tokens + i, at_once);
    return seconds_now() - start;
}

static llm_ids read_text(const bsmm_file *file, const char *path) {
    llm_ids ids = {0};
    char *text = NULL;
    size_t room = 0;
    FILE *input = fopen(path, "rb");
    ssize_t bytes = input ? getdelim(&text, &room, 0, input) : -1;
    if (bytes < 0) llm_fail("%s: cannot be read", path);
    fclose(input);
    llm_tokenizer *t = llm_tokenizer_create(file);
    llm_encode(t, text, (size_t)bytes, &ids);
    llm_tokenizer_destroy(t);
    free(text);
    if (ids.count < WINDOW) llm_fail("%s: must have at least %d tokens", path, WINDOW);
    return ids;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fputs(
            "usage: bsmm_llm_speed MODEL.gguf TEXT WEIGHTS ACTIVATIONS EMBEDDING THREADS ROUNDS\n",
            stderr);
        return 2;
    }
    llm_formats formats = {.device = "cpu", .threads = (uint32_t)strtoul(argv[6], NULL, 10)};
    llm_model m;
    llm_state s;
    bsmm_file *file;
    if (formats.threads) omp_set_num_threads((int)formats.threads);
    llm_formats_set(&formats, argv[3], argv[4], argv[5]);
    llm_check(bsmm_file_open(argv[1], &file), argv[1]);
    llm_ids text = read_text(file, argv[2]);
    llm_model_create(&m, file, &formats);
    bsmm_file_close(file);
    llm_state_create(&s, &m, WINDOW);
    const long rounds = strtol(argv[7], NULL, 10);
    if (rounds == 0) printf("perplexity %.4f\n", perplexity_of(&s, &text));
    /* The first round warms up the caches and raises the clock frequency. */
    for (long i = -1; rounds && i < rounds; i++) {
        double read = time_tokens(&s, text.at, WINDOW, WINDOW);
        double written = time_tokens(&s, text.at, WRITTEN, 1);
        if (i >= 0) printf("pp512 %.2f tg128 %.2f\n", WINDOW / read, WRITTEN / written);
    }
    llm_state_destroy(&s);
    llm_model_destroy(&m);
    free(text.at);
    return EXIT_SUCCESS;
}
