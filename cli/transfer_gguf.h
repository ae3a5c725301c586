/* Plans and copies the parts of a GGUF file that the command makes of another kind of file
 * (gguf_model.h). */
#ifndef CLI_TRANSFER_GGUF_H
#define CLI_TRANSFER_GGUF_H

#include "transfer_plan.h"

/* Finds the name of a tensor or weight in the output, which is `name` itself unless the command
 * makes a GGUF file of another kind of file. The result is in *to, which may point to `memory`. */
cli_gguf_naming cli_transfer_name(const cli_job *job, const char *name, char memory[64],
                                  const char **to);
/* Returns the type with which a tensor is written. llama.cpp reads vectors as F32 only. */
const char *cli_transfer_type(const cli_job *job, const bsmm_tensor *tensor);
/* Counts the bytes of a matrix for its type. The type with most bytes becomes the type of the file.
 */
void cli_transfer_count_type(cli_job *job, const char *type, uint64_t bytes);

/* Adds the metadata and the factors of RoPE. The command calls this function at the end of
 * planning. */
bool cli_transfer_finish_gguf(cli_job *job);

/* Copies a tensor of floats with its rows in the order of GGUF and with its type in GGUF. Returns
 * NULL on success, otherwise the reason for the failure. */
const char *cli_transfer_copy_floats(const cli_step *what, const bsmm_tensor *tensor, void *to,
                                     uint64_t bytes);
/* Puts the rows of a matrix that was loaded into the order of GGUF. */
const char *cli_transfer_reorder(const cli_step *what, cli_loaded *loaded);

#endif
