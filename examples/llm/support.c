/* Implements functions that report failures, allocate memory and choose a token. */
#include "llm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void llm_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("llm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

void llm_check(bsmm_status status, const char *what) {
    if (status != BSMM_OK) llm_fail("%s: %s", what, bsmm_error_message());
}

void *llm_alloc(size_t count, size_t size) {
    if (size && count > (SIZE_MAX - 64) / size) llm_fail("out of memory: %zu x %zu", count, size);
    size_t bytes = (count * size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes ? bytes : 64);
    if (!memory) llm_fail("out of memory: %zu bytes", bytes);
    return memset(memory, 0, bytes ? bytes : 64);
}

/* Returns a random number in [0, 1), by the generator splitmix64. */
static double next_uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

int32_t llm_sample(float *logits, int64_t count, float temperature, uint64_t *seed) {
    int64_t best = 0, i = 0;
    for (int64_t j = 1; j < count; j++)
        best = logits[j] > logits[best] ? j : best;
    if (temperature <= 0) return (int32_t)best;
    for (int64_t j = 0; j < count; j++)
        logits[j] /= temperature;
    double left = (double)llm_softmax(logits, count) * next_uniform(seed);
    while (i < count - 1 && (left -= (double)logits[i]) >= 0)
        i++;
    return (int32_t)i;
}
