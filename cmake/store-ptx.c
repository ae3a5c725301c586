/* Converts the PTX text of GPU kernels to the form in which the library stores it (ptx_text.h).
 * Fails if the stored form would not give the same text again.
 *
 *   usage: store-ptx PTX STORED */
#include "gpu/ptx_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a file. Returns NULL on failure. */
static char *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0) {
        *bytes = (size_t)ftell(file);
        rewind(file);
        text = malloc(*bytes);
        if (text && fread(text, 1, *bytes, file) != *bytes) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

static int write_file(const char *path, const char *text, size_t bytes) {
    FILE *file = fopen(path, "wb");
    if (!file) return 1;
    const size_t written = fwrite(text, 1, bytes, file);
    return fclose(file) != 0 || written != bytes;
}

/* Converts PTX text to its stored form and back, and compares the result with the text. */
static int store(const char *text, size_t bytes, const char *path) {
    const size_t stored_bytes = bsmm_ptx_text_convert(BSMM_PTX_TEXT_STORED, text, bytes, NULL, 0);
    char *stored = malloc(stored_bytes), *again = malloc(bytes);
    int failed = !stored || !again;
    if (!failed) {
        bsmm_ptx_text_convert(BSMM_PTX_TEXT_STORED, text, bytes, stored, stored_bytes);
        failed = bsmm_ptx_text_convert(BSMM_PTX_TEXT_ORDINARY, stored, stored_bytes, again,
                                       bytes) != bytes ||
                 memcmp(text, again, bytes) != 0 || write_file(path, stored, stored_bytes);
    }
    free(stored);
    free(again);
    return failed;
}

int main(int argc, char **argv) {
    size_t bytes = 0;
    char *text = argc == 3 ? read_file(argv[1], &bytes) : NULL;
    const int failed = !text || store(text, bytes, argv[2]);
    if (failed)
        fprintf(stderr, "store-ptx: cannot store %s\n", argc == 3 ? argv[1] : "(two paths)");
    free(text);
    return failed;
}
