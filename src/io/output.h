/* Declares output files, each of which either appears complete or does not appear at all. A file is
 * written without a name and gets its name at the end. On file systems that have no files without
 * names, it has a temporary name until then. */
#ifndef BSMM_OUTPUT_H
#define BSMM_OUTPUT_H

#include "io/io.h"

typedef struct bsmm_output {
    /* `descriptor` is the file descriptor of the output. It is -1 if no file is open. */
    int descriptor;
    /* `path` is the path of the temporary file. It is NULL if the file has no name or does not
     * exist. */
    char *path;
    uint8_t *data; /* `data` is a writable mapping of the whole file. */
    uint64_t bytes;
} bsmm_output;

/* Creates the temporary file in the folder of `path`, reserves its disk space and maps it. The
 * mapping is filled with zeros. The file gets the permissions of the file that it will replace. */
bsmm_status bsmm_output_open(const char *path, uint64_t bytes, bsmm_output *output);
/* Flushes the file and gives it the name `path`. If the call fails, it removes the temporary file,
 * and `path` is unchanged. */
bsmm_status bsmm_output_commit(bsmm_output *output, const char *path);
/* Removes the temporary file, if one exists. */
void bsmm_output_abandon(bsmm_output *output);

#endif
