/* Describes a Hugging Face model as llama.cpp stores it in a GGUF file: the metadata, the names of
 * tensors, and the order of their rows. The rules are those of llama.cpp's conversion/base.py,
 * conversion/llama.py and gguf-py/gguf/tensor_mapping.py. */
#ifndef CLI_GGUF_MODEL_H
#define CLI_GGUF_MODEL_H

#include "command.h"

struct json_t;

typedef struct cli_gguf_model {
    struct json_t *config; /* `config` points to the content of config.json. */
    const char *folder;    /* `folder` is the folder of the input. */
    char *folder_memory;
    const char *architecture; /* `architecture` is GGUF's name of the architecture. */
    /* `reorders` is true if GGUF stores the rows of queries and keys in another order than Hugging
     * Face. */
    bool reorders;
    int64_t layers, hidden, feed_forward, heads, kv_heads, head_size, vocabulary;
    bool tied; /* `tied` is true if the embedding is also the weight of the last product. */
    /* `factors` has one factor for each of the head_size / 2 frequencies of RoPE. It is NULL if the
     * model's frequencies need no factors. */
    float *factors;
} cli_gguf_model;

/* This is the name of the GGUF tensor that holds the factors for the frequencies of RoPE. */
extern const char cli_gguf_factors_name[];

/* Reads config.json of the folder of the model `in`. On failure, for example for an architecture
 * that is not supported, the function prints a message and returns false. */
bool cli_gguf_model_open(cli_gguf_model *model, const char *in);
void cli_gguf_model_close(cli_gguf_model *model);

typedef enum cli_gguf_naming { CLI_GGUF_NAMED, CLI_GGUF_DROPPED, CLI_GGUF_UNKNOWN } cli_gguf_naming;

/* Finds the name of a tensor in GGUF. If the name is unknown, the function prints a message. */
cli_gguf_naming cli_gguf_model_name(const cli_gguf_model *model, const char *name, char to[64]);
/* Returns the number of heads of a tensor whose rows GGUF stores in another order than Hugging
 * Face. Returns 0 if the order is the same. */
int64_t cli_gguf_model_heads(const cli_gguf_model *model, const char *name);

/* Returns an open GGUF file that has the metadata of the model. `type` is llama.cpp's number of
 * the type of most tensors. On failure, the function prints a message and returns NULL. */
bsmm_file *cli_gguf_model_metadata(const cli_gguf_model *model, uint32_t type);

#endif
