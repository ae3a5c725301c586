/* Failures, memory, time and files. */
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

char *llm_read_file(const char *path, size_t *bytes) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) llm_fail("%s: cannot be opened", path);
    size_t room = 65536, got;
    char *text = malloc(room);
    *bytes = 0;
    while (text && (got = fread(text + *bytes, 1, room - *bytes, file)) > 0)
        if ((*bytes += got) == room) {
            char *larger = realloc(text, room *= 2);
            if (!larger) free(text);
            text = larger;
        }
    if (!text) llm_fail("%s: out of memory", path);
    if (ferror(file)) llm_fail("%s: cannot be read", path);
    if (file != stdin) fclose(file);
    return text;
}
