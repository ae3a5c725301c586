/* Describes the tokenizer of a Hugging Face model in the metadata of GGUF. */
#ifndef CLI_GGUF_VOCAB_H
#define CLI_GGUF_VOCAB_H

#include "gguf_pairs.h"

struct json_t;

/* Adds the tokenizer of tokenizer.json and tokenizer_config.json. `config` is the content of
 * config.json, and `count` is the number of tokens of the model. Without tokenizer.json the
 * function warns, and the output has no tokenizer. If llama.cpp has no such tokenizer, the function
 * prints a message and returns false. */
bool cli_gguf_vocab_add(cli_gguf_pairs *pairs, const char *folder, const struct json_t *config,
                        int64_t count);

/* Returns llama.cpp's name of the rule by which a byte-level tokenizer splits a text into pieces,
 * or NULL if llama.cpp has none for it. */
const char *cli_gguf_split_name(const struct json_t *pre_tokenizer);

#endif
