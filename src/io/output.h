/* A file that appears whole or not at all: written without a name, or under a temporary one where
 * the file system has no files without names, and given its own at the end. */
#ifndef BSMM_OUTPUT_H
#define BSMM_OUTPUT_H

#include "io/io.h"

typedef struct bsmm_output {
    int descriptor; /* -1: none */
    char *path;     /* of the temporary file; NULL: it has no name, or there is none */
    uint8_t *data;  /* the mapping */
    uint64_t bytes;
} bsmm_output;

/* Creates the temporary file in the folder of `path`, with the permissions of the file that it will
 * replace, reserves its space and maps it, zeroed. */
bsmm_status bsmm_output_open(const char *path, uint64_t bytes, bsmm_output *output);
/* Flushes it and names it `path`. On failure the temporary file is gone, `path` as it was. */
bsmm_status bsmm_output_commit(bsmm_output *output, const char *path);
/* Removes the temporary file. Does nothing when there is none. */
void bsmm_output_abandon(bsmm_output *output);

#endif
