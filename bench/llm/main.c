/* Measures a language model with each pair of formats, each in a process of its own, and prints a
 * table.
 * usage: bsmm_llm_table MODEL.gguf TEXT [DEVICE] */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lists the pairs of weight and activation formats. The first pair is the reference, with the
 * file's own values in f32. */
static const char *const pairs[][2] = {
    {"f32", "f32"},     {"bf16", "bf16"},         {"mxfp8", "bf16"},
    {"mxfp8", "mxfp8"}, {"mxfp6", "bf16"},        {"mxfp4", "bf16"},
    {"mxfp4", "mxfp8"}, {"mxfp4", "mxfp4"},       {"nvfp4", "bf16"},
    {"nvfp4", "nvfp4"}, {"fp8_block128", "bf16"}, {"fp8_block128", "fp8_group128"},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* Loads the model in the formats of table row `index` and measures it. */
static void measure(const char *path, const llm_ids *text, const char *device, size_t index,
                    float *reference, model_score *score) {
    llm_formats formats = {.device = device};
    llm_model m;
    llm_state s;
    bsmm_file *file;
    llm_formats_set(&formats, pairs[index][0], pairs[index][1], NULL);
    llm_check(bsmm_file_open(path, &file), path);
    llm_model_create(&m, file, &formats);
    bsmm_file_close(file);
    llm_state_create(&s, &m, (int64_t)2 * LLM_BATCH);
    evaluate(&s, text, reference, index == 0, score);
    llm_state_destroy(&s);
    llm_model_destroy(&m);
}

/* Prints one row of the table. Returns true if the error is within the documented bound and the
 * logits are finite. Otherwise the function also prints which of the two conditions failed, and
 * returns false. */
static bool print_row(size_t index, const model_score *r) {
    printf("%-13s %-13s %6.3f %10.3f %9.5f %9.0f %8.1f %7.0f %8.3f\n", pairs[index][0],
           pairs[index][1], r->bits, r->perplexity, r->divergence, r->prefill, r->decode,
           r->resident, r->error);
    fflush(stdout);
    const bool exact = r->error <= 1, finite = isfinite(r->perplexity) && isfinite(r->divergence);
    if (!exact) printf("    failed: a product is farther from double than its bound\n");
    if (!finite) printf("    failed: a logit is not finite\n");
    return exact && finite;
}

/* Each table row runs in its own process, so that its memory is measured separately. */
static bool run_row(const char *model, const llm_ids *text, const char *device, size_t index,
                    float *reference, model_score *score) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) llm_fail("fork: failed");
    if (child == 0) {
        measure(model, text, device, index, reference, score);
        exit(EXIT_SUCCESS);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        printf("%-13s %-13s failed: the process ended with status %d\n", pairs[index][0],
               pairs[index][1], status);
        return false;
    }
    return print_row(index, score);
}

static void *share(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) llm_fail("out of memory: %zu bytes", bytes);
    return memory;
}

static int print_table(const char *model, const llm_ids *text, int64_t vocabulary,
                       const char *device) {
    float *reference = share(reference_count(text, vocabulary) * sizeof *reference);
    model_score *scores = share(PAIRS * sizeof *scores);
    int failed = 0;
    printf("%s%s",
           "weights       activations     bits perplexity divergence  prefill   decode  "
           "memory error of\n",
           "                             a weight            from f32   tokens/s tokens/s     MiB "
           "products\n");
    for (size_t i = 0; i < PAIRS; i++)
        failed += !run_row(model, text, device, i, reference, &scores[i]);
    if (failed)
        printf("failed: %d of %d rows\n", failed, PAIRS);
    else
        printf("passed: the errors of all products are within their bounds\n");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 4) {
        fputs("usage: bsmm_llm_table MODEL.gguf TEXT [DEVICE]\n", stderr);
        return 2;
    }
    bsmm_file *file;
    llm_ids ids = {0};
    char *text = NULL;
    size_t room = 0;
    FILE *input = fopen(argv[2], "rb");
    ssize_t count = input ? getdelim(&text, &room, 0, input) : -1;
    if (count < 0) llm_fail("%s: cannot be read", argv[2]);
    fclose(input);
    llm_check(bsmm_file_open(argv[1], &file), argv[1]);
    llm_tokenizer *t = llm_tokenizer_create(file);
    llm_encode(t, text, (size_t)count, &ids);
    if (ids.count < LLM_BATCH) llm_fail("%s: must have at least %d tokens", argv[2], LLM_BATCH);
    int status = print_table(argv[1], &ids, t->count, argc > 3 ? argv[3] : "cpu");
    free(text);
    free(ids.at);
    llm_tokenizer_destroy(t);
    bsmm_file_close(file);
    return status;
}
