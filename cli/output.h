/* The matrix that a command computes, and the file that it goes to. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "command.h"

typedef struct cli_output {
    bsmm_matrix matrix; /* its memory is ready to be written */
    bsmm_writer *writer;
    void *memory; /* of a matrix whose type the file cannot hold; NULL: mapped */
    void *stored; /* where it goes then, as f32 */
} cli_output;

/* False with the library's message set. */
bool cli_output_create(cli_output *output, const char *path, const char *dtype, int64_t rows,
                       int64_t cols);
bool cli_output_commit(cli_output *output);
void cli_output_abort(cli_output *output); /* what was not committed; may be called always */

#endif
