/* Reading files: opening, matrices in memory whatever their storage, names on the command line. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "command.h"

/* NULL, with a message printed, if it cannot be opened. */
bsmm_file *cli_file_open(const char *path);
void cli_file_close(bsmm_file *file); /* NULL is allowed */

/* False, with a message printed, if `out` is one of the file's own files: replacing it would
 * destroy what is being read. file NULL: true. */
bool cli_output_is_apart(const bsmm_file *file, const char *out);

/* A matrix of a weight. When the file stores it otherwise, it is unpacked into memory. */
typedef struct cli_loaded {
    bsmm_matrix matrix;
    void *memory; /* NULL: mapped */
} cli_loaded;

bool cli_load(const bsmm_file *file, uint64_t weight, int64_t slice, cli_loaded *loaded);
void cli_unload(cli_loaded *loaded);

/* Points data and scales of a description at fresh zeroed memory, which is returned (NULL, with
 * the library's message set, if the description is invalid). */
void *cli_matrix_allocate(bsmm_matrix *matrix);

/* "FILE", "FILE:NAME" or "FILE:NAME[SLICE]" opened and loaded; prints what is wrong. */
typedef struct cli_operand {
    bsmm_file *file;
    cli_loaded loaded;
} cli_operand;

bool cli_operand_open(const char *text, cli_operand *operand);
void cli_operand_close(cli_operand *operand);

/* The kind of file that a path's ending asks for: "npy", "gguf" (which none can be written as),
 * else "safetensors". */
const char *cli_kind_of(const char *path);

#endif
