/* Opens input files, loads matrices into memory whatever their storage is, and parses names of
 * weights on the command line. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "command.h"

/* Opens a file. If that fails, it prints a message and returns NULL. */
bsmm_file *cli_file_open(const char *path);
void cli_file_close(bsmm_file *file); /* NULL is allowed. */

/* Checks that the output path `out` is none of the files that belong to `file`: an output there
 * would destroy the input that is being read. If `out` is one of these files, prints a message and
 * returns false. Returns true if `file` is NULL. */
bool cli_output_is_apart(const bsmm_file *file, const char *out);

/* A matrix of a weight. If the file stores the weight in a form that must be unpacked, e.g. with
 * scales between the elements, the matrix is a copy in memory. */
typedef struct cli_loaded {
    bsmm_matrix matrix;
    void *memory; /* unpacked copy; NULL: the matrix points into the mapping of the file */
} cli_loaded;

bool cli_load(const bsmm_file *file, uint64_t weight, int64_t slice, cli_loaded *loaded);
void cli_unload(cli_loaded *loaded);

/* Allocates zeroed memory for the data and scales of a matrix and sets its pointers. Returns the
 * memory. Returns NULL if the description is invalid; the library's error message is then set. */
void *cli_matrix_allocate(bsmm_matrix *matrix);

/* A weight named on the command line as "FILE", "FILE:NAME" or "FILE:NAME[SLICE]", where SLICE is
 * the number of a matrix in a batch. The function that opens a weight prints a message if it
 * fails. */
typedef struct cli_operand {
    bsmm_file *file;
    cli_loaded loaded;
} cli_operand;

bool cli_operand_open(const char *text, cli_operand *operand);
void cli_operand_close(cli_operand *operand);

/* Returns the kind of file that the ending of a path stands for: "npy", "gguf" (which cannot be
 * written), or otherwise "safetensors". */
const char *cli_kind_of(const char *path);

#endif
