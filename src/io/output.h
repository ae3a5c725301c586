/* An output file that appears whole or not at all. It is written without a name and named at the
 * end. If the file system has no files without names, it has a temporary name meanwhile. */
#ifndef BSMM_OUTPUT_H
#define BSMM_OUTPUT_H

#include "io/io.h"

typedef struct bsmm_output {
    int descriptor; /* file descriptor of the output; -1: none */
    char *path;     /* path of the temporary file; NULL: it has no name, or there is none */
    uint8_t *data;  /* address of the writable mapping */
    uint64_t bytes;
} bsmm_output;

/* Creates the temporary file in the folder of `path`, reserves its space and maps it, filled with
 * zeros. The file gets the permissions of the file that it will replace. */
bsmm_status bsmm_output_open(const char *path, uint64_t bytes, bsmm_output *output);
/* Flushes the file and gives it the name `path`. If the call fails, the temporary file is removed
 * and `path` is unchanged. */
bsmm_status bsmm_output_commit(bsmm_output *output, const char *path);
/* Removes the temporary file, if there is one. */
void bsmm_output_abandon(bsmm_output *output);

#endif
