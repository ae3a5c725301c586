/* Builds the metadata of a GGUF file from a model that another kind of file stores. */
#ifndef CLI_GGUF_PAIRS_H
#define CLI_GGUF_PAIRS_H

#include "command.h"
#include <stdio.h>

/* Holds metadata entries in the form in which GGUF stores them (source: ggml's docs/gguf.md). */
typedef struct cli_gguf_pairs {
    FILE *stream;
    uint64_t count;
    char *bytes;
    size_t size;
} cli_gguf_pairs;

/* Lists GGUF's numbers for the types of metadata values. */
typedef enum cli_gguf_type {
    CLI_GGUF_U32 = 4,
    CLI_GGUF_I32 = 5,
    CLI_GGUF_F32 = 6,
    CLI_GGUF_BOOL = 7,
    CLI_GGUF_STRING = 8,
    CLI_GGUF_ARRAY = 9
} cli_gguf_type;

void cli_gguf_begin(cli_gguf_pairs *pairs);
void cli_gguf_u32(cli_gguf_pairs *pairs, const char *key, uint32_t value);
void cli_gguf_f32(cli_gguf_pairs *pairs, const char *key, float value);
void cli_gguf_bool(cli_gguf_pairs *pairs, const char *key, bool value);
void cli_gguf_string(cli_gguf_pairs *pairs, const char *key, const char *text);
/* Begins an array of `count` items. The caller then writes the items with the functions below. */
void cli_gguf_array(cli_gguf_pairs *pairs, const char *key, cli_gguf_type items, uint64_t count);
void cli_gguf_put_u32(cli_gguf_pairs *pairs, uint32_t value);
void cli_gguf_put_f32(cli_gguf_pairs *pairs, float value);
void cli_gguf_put_text(cli_gguf_pairs *pairs, const char *text, size_t bytes);

/* Returns an open GGUF file without tensors that has the metadata entries in `pairs`, and frees the
 * entries. On failure, the function prints a message and returns NULL. */
bsmm_file *cli_gguf_end(cli_gguf_pairs *pairs);

#endif
