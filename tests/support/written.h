/* What tests of the writer share: a folder with an old file, and a writer that has begun. */
#ifndef BSMM_TEST_WRITTEN_H
#define BSMM_TEST_WRITTEN_H

#include "bsmm.h"

/* Files and folders in a folder, hidden ones too. */
unsigned entries_in(const char *folder);
/* Makes a folder in the temporary folder, with the file "x" that holds "old", whose path it
 * returns. */
const char *make_folder(const char *name);
/* The file holds "old". */
void expect_old(const char *path);
/* A safetensors writer that has begun, with a tensor "t" of `count` floats. */
bsmm_writer *begin_one(const char *path, int64_t count);

#endif
