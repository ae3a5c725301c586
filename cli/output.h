/* Holds a matrix that a command computes, and the file that receives the matrix. The command
 * computes the matrix in memory before it creates the file, so that an interrupted command leaves
 * no file behind. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "command.h"

typedef struct cli_output {
    const char *path;
    bsmm_matrix matrix; /* `matrix` describes the matrix in memory. The caller fills it. */
    void *memory;
} cli_output;

/* Allocates the matrix and checks that the file can be written. On failure, the function returns
 * false, and the library's error message gives the reason. */
bool cli_output_create(cli_output *output, const char *path, const char *dtype, int64_t rows,
                       int64_t cols);
bool cli_output_write(const cli_output *output);
void cli_output_free(cli_output *output);

#endif
