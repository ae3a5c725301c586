/* Opens input files, loads weights into memory however a file stores them, and parses names of
 * weights on the command line. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "command.h"

/* Opens a file. On failure, the function prints a message and returns NULL. */
bsmm_file *cli_file_open(const char *path);
void cli_file_close(bsmm_file *file); /* Closes a file. The file may be NULL. */

/* Checks that the output path `out` is none of the files that belong to the input `file`, because
 * the output would overwrite the input. A model's config.json and tokenizer beside the weights
 * belong to it. If `out` is such a file, the function prints a message and returns false. */
bool cli_output_differs(const bsmm_file *file, const char *out);
/* Checks, like cli_output_differs, that the output `out` does not overwrite a file of the input,
 * whose path is `in`. If `in` is a folder, the command also copies other files of the folder to an
 * output folder. The output must then be none of these files either. */
bool cli_output_differs_from(const bsmm_file *file, const char *in, const char *out);
/* Checks that the output path `out` is not the input file `path`. If both are the same file, prints
 * a message and returns false. */
bool cli_path_differs(const char *path, const char *out);

/* Holds one matrix of a weight. If the file does not store the matrix as bsmm reads it, e.g. with
 * scales between the elements, `matrix` is an unpacked copy in memory. */
typedef struct cli_loaded {
    bsmm_matrix matrix;
    /* `memory` points to the unpacked copy, or NULL if the matrix points into the mapping of the
     * file. */
    void *memory;
} cli_loaded;

bool cli_load(const bsmm_file *file, uint64_t weight, int64_t slice, cli_loaded *loaded);
void cli_unload(cli_loaded *loaded);

/* Allocates zeroed memory for the data and scales of a matrix and sets the matrix's pointers.
 * Returns the memory, which the caller frees. If the description is invalid, the function returns
 * NULL, and the library's error message gives the reason. */
void *cli_matrix_allocate(bsmm_matrix *matrix);

/* Holds a weight that the command line names as "FILE", "FILE:NAME" or "FILE:NAME[SLICE]". SLICE
 * is the number of a matrix in a batch. */
typedef struct cli_operand {
    bsmm_file *file;
    cli_loaded loaded;
} cli_operand;

bool cli_operand_open(const char *text, cli_operand *operand);
void cli_operand_close(cli_operand *operand);

/* Returns the kind of file that the ending of a path means: "npy", "gguf", or "safetensors" for
 * every other ending. */
const char *cli_kind_of(const char *path);

#endif
