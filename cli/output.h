/* The matrix that a command computes, and the file that it goes to. It is computed in memory, so
 * that nothing is left behind when the command is interrupted. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "command.h"

typedef struct cli_output {
    const char *path;
    bsmm_matrix matrix; /* its memory is ready to be written */
    void *memory;
} cli_output;

/* Finds out now whether the file can be written. False with the library's message set. */
bool cli_output_create(cli_output *output, const char *path, const char *dtype, int64_t rows,
                       int64_t cols);
bool cli_output_write(const cli_output *output);
void cli_output_free(cli_output *output);

#endif
