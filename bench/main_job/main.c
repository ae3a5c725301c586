/* Prints a table that shows the effect of each format on the accuracy and speed of a model's
 * linear layers, for the words of a text.
 *
 * usage: bsmm_main_job MODEL TEXT FORMAT=FILE...
 *
 * MODEL is the file of a BERT model with fp32 weights, and TEXT is a text file. Each argument
 * FORMAT=FILE gives a row of the table. FORMAT is the name of the format, and FILE has the same
 * model, quantized to this format.
 *
 * usage: bsmm_main_job --generate MODEL
 *
 * This call writes a small BERT model with random weights to the file MODEL. */
#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program fails if the relative error exceeds promised_error. The library promises the accuracy
 * of fp32 accumulators: if each of K partial sums of random terms is rounded to fp32, the relative
 * error is about 2^-24 * sqrt(K / 6). */
static const double promised_error = 1e-6;

static double decibels(double signal, double noise) {
    return 10 * log10(signal / noise);
}

static job_batch read_tokens(const bsmm_file *model, const char *text) {
    int64_t ids[JOB_MAX_TOKENS],
        words = job_weight(model, "embeddings.word_embeddings.weight").rows;
    size_t count = job_hash_words(text, words, ids);
    if (count == 0) job_fail("%s: has no words", text);
    return job_embed(model, ids, count);
}

static void print_heading(const job_batch *tokens) {
    printf(
        "activations: the embeddings of %lld tokens in f32 (where a layer has 1536 inputs, gelu "
        "of\n"
        "the layer before it); for \"both\", quantized as the weights, with blocks of one row\n\n"
        "                            SQNR in dB of                  error of   seconds of\n"
        "format        bits/weight  weights  outputs    both   the product  the product  layers\n",
        (long long)tokens->rows);
}

/* Prints the table row of one format. Returns true if the error of the GEMMs is at most
 * `promised_error`. */
static bool print_result(const char *name, const job_result *r) {
    double error = sqrt(r->exact_noise / r->exact_signal);
    printf("%-13s %11.3f  %7.2f  %7.2f %7.2f  %12.1e  %11.3f  %6llu\n", name, r->bits / r->weights,
           decibels(r->weight_signal, r->weight_noise), decibels(r->output_signal, r->output_noise),
           decibels(r->output_signal, r->both_noise), error, r->seconds,
           (unsigned long long)r->layers);
    fflush(stdout);
    return error <= promised_error;
}

/* Measures one format and prints its row of the table. `argument` is FORMAT=FILE, where FILE has
 * the model quantized to FORMAT. */
static bool run_format(const bsmm_file *model, const job_batch *tokens, char *argument) {
    char *path = strchr(argument, '=');
    if (!path) job_fail("%s: must be FORMAT=FILE", argument);
    *path++ = '\0';
    bsmm_file *quantized;
    job_check(bsmm_file_open(path, &quantized), path);
    job_result result = job_measure(model, quantized, tokens);
    bsmm_file_close(quantized);
    if (result.layers == 0) job_fail("%s: has no block-scaled weights", path);
    return print_result(argument, &result);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--generate") == 0) {
        job_generate(argv[2]);
        return EXIT_SUCCESS;
    }
    if (argc < 4) {
        fprintf(stderr, "usage: %s MODEL TEXT FORMAT=FILE...\n       %s --generate MODEL\n",
                argv[0], argv[0]);
        return 2;
    }
    bsmm_file *model;
    job_check(bsmm_file_open(argv[1], &model), argv[1]);
    job_batch tokens = read_tokens(model, argv[2]);
    bool right = true;
    print_heading(&tokens);
    for (int i = 3; i < argc; i++)
        right &= run_format(model, &tokens, argv[i]);
    free(tokens.values);
    bsmm_file_close(model);
    if (!right) job_fail("a product is farther from double than %g", promised_error);
    return EXIT_SUCCESS;
}
