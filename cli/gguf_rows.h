/* Reorders the rows of queries and keys for GGUF files of the architecture llama. */
#ifndef CLI_GGUF_ROWS_H
#define CLI_GGUF_ROWS_H

#include "command.h"

/* Returns the row of a Hugging Face model that becomes row `row` of GGUF. `head_rows` is the number
 * of rows of one head. RoPE rotates pairs of values of a head. transformers pairs value i with
 * value i + head_rows / 2, and llama.cpp pairs values 2 i and 2 i + 1 (LlamaModel.permute in
 * conversion/llama.py). With the new order of rows, llama.cpp rotates the same pairs as
 * transformers. */
int64_t cli_gguf_row(int64_t row, int64_t head_rows);

/* Replaces a matrix by a copy with reordered rows, which belong to `heads` heads of equal size.
 * Returns the memory of the copy. If the rows of a matrix of this format and layout cannot be
 * reordered, returns NULL and stores the reason in *why. */
void *cli_gguf_reorder(bsmm_matrix *matrix, int64_t heads, const char **why);

#endif
