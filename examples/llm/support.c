/* Implements functions that report failures, allocate memory and read the clock. */
#include "llm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

double llm_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
