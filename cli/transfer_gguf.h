/* Handles what the command must do in addition if it writes a GGUF file and the input is another
 * kind of file (gguf_model.h): names and types of tensors, metadata, and the order of rows. */
#ifndef CLI_TRANSFER_GGUF_H
#define CLI_TRANSFER_GGUF_H

#include "transfer_plan.h"

/* Finds the name of a tensor or weight in the output. The name changes only if the command makes a
 * GGUF file of another kind of file. *to points to `name` or to `memory`. */
cli_gguf_naming cli_transfer_name(const cli_job *job, const char *name, char memory[64],
                                  const char **to);
/* Returns the name of the type with which the output stores a tensor. Vectors stay F32, because
 * llama.cpp reads no other type for them. */
const char *cli_transfer_type(const cli_job *job, const bsmm_tensor *tensor);
/* Adds the bytes of a matrix to the count of its type. The type with most bytes becomes the type of
 * the GGUF file. */
void cli_transfer_count_type(cli_job *job, const char *type, uint64_t bytes);

/* Adds the metadata and the factors of RoPE. The command calls this function at the end of
 * planning. */
bool cli_transfer_finish_gguf(cli_job *job);

/* Copies a tensor of floats with its rows in the order of GGUF and with its type in GGUF. Returns
 * NULL on success, otherwise the reason for the failure. */
const char *cli_transfer_copy_floats(const cli_step *what, const bsmm_tensor *tensor, void *to,
                                     uint64_t bytes);
/* Puts the rows of a loaded matrix in the order in which GGUF files store them. Returns NULL, or
 * the reason of a failure. */
const char *cli_transfer_reorder(const cli_step *what, cli_loaded *loaded);

#endif
