/* Describes RoPE, the rotary embedding of positions, in the metadata of GGUF. */
#ifndef CLI_GGUF_ROPE_H
#define CLI_GGUF_ROPE_H

#include "gguf_pairs.h"

struct json_t;

/* Checks the kind of RoPE in config.json. For the kind "llama3", *factors becomes an array of
 * head_size / 2 factors, one for each frequency, which the caller frees. For other kinds it becomes
 * NULL. If the kind is not supported, the function prints a message and returns false. */
bool cli_gguf_rope_read(const struct json_t *config, int64_t head_size, float **factors);
void cli_gguf_rope_add(cli_gguf_pairs *pairs, const struct json_t *config,
                       const char *architecture);

#endif
