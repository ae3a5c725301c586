#include "gguf_pairs.h"
#include "common.h"
#include "files.h"
#include "paths.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 3 };

static void put_number(FILE *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        putc((int)(value >> 8 * i & 255u), to);
}

void cli_gguf_begin(cli_gguf_pairs *pairs) {
    *pairs = (cli_gguf_pairs){0};
    pairs->stream = open_memstream(&pairs->bytes, &pairs->size);
    if (!pairs->stream) exit(cli_fail("no memory for metadata"));
}

void cli_gguf_put_u32(cli_gguf_pairs *pairs, uint32_t value) {
    put_number(pairs->stream, value, 4);
}

void cli_gguf_put_f32(cli_gguf_pairs *pairs, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(pairs->stream, bits, 4);
}

void cli_gguf_put_text(cli_gguf_pairs *pairs, const char *text, size_t bytes) {
    put_number(pairs->stream, bytes, 8);
    fwrite(text, 1, bytes, pairs->stream);
}

static void put_key(cli_gguf_pairs *pairs, const char *key, cli_gguf_type type) {
    cli_gguf_put_text(pairs, key, strlen(key));
    put_number(pairs->stream, type, 4);
    pairs->count++;
}

void cli_gguf_u32(cli_gguf_pairs *pairs, const char *key, uint32_t value) {
    put_key(pairs, key, CLI_GGUF_U32);
    cli_gguf_put_u32(pairs, value);
}

void cli_gguf_f32(cli_gguf_pairs *pairs, const char *key, float value) {
    put_key(pairs, key, CLI_GGUF_F32);
    cli_gguf_put_f32(pairs, value);
}

void cli_gguf_bool(cli_gguf_pairs *pairs, const char *key, bool value) {
    put_key(pairs, key, CLI_GGUF_BOOL);
    put_number(pairs->stream, value, 1);
}

void cli_gguf_string(cli_gguf_pairs *pairs, const char *key, const char *text) {
    put_key(pairs, key, CLI_GGUF_STRING);
    cli_gguf_put_text(pairs, text, strlen(text));
}

void cli_gguf_array(cli_gguf_pairs *pairs, const char *key, cli_gguf_type items, uint64_t count) {
    put_key(pairs, key, CLI_GGUF_ARRAY);
    put_number(pairs->stream, items, 4);
    put_number(pairs->stream, count, 8);
}

static bool write_file(const cli_gguf_pairs *pairs, int descriptor) {
    FILE *file = fdopen(descriptor, "wb");
    if (!file) close(descriptor);
    if (!file) return false;
    fputs("GGUF", file);
    put_number(file, VERSION, 4);
    put_number(file, 0, 8);
    put_number(file, pairs->count, 8);
    fwrite(pairs->bytes, 1, pairs->size, file);
    const bool written = !ferror(file);
    return !fclose(file) && written;
}

/* The temporary file is deleted as soon as it is open for reading. A program that is killed
 * therefore rarely leaves it behind. */
bsmm_file *cli_gguf_end(cli_gguf_pairs *pairs) {
    const char *folder = getenv("TMPDIR");
    char *path = cli_path_join(folder && *folder ? folder : "/tmp", "bsmm-metadata-XXXXXX");
    bsmm_file *file = NULL;
    if (fclose(pairs->stream) || !pairs->bytes) exit(cli_fail("no memory for metadata"));
    const int descriptor = mkstemp(path);
    if (descriptor < 0 || !write_file(pairs, descriptor))
        cli_fail_system(path, "write it");
    else
        file = cli_file_open(path);
    if (descriptor >= 0) unlink(path);
    free(path);
    free(pairs->bytes);
    return file;
}
