/* Declares functions for tests of the safetensors writer, which may replace an existing file. The
 * tests call that file the old file. make_folder makes a folder with an old file, expect_old tests
 * that the old file is unchanged, and begin_one returns a writer that has begun a new file. */
#ifndef BSMM_TEST_WRITTEN_H
#define BSMM_TEST_WRITTEN_H

#include "bsmm.h"

/* Returns the number of files and folders in a folder, including hidden ones. */
unsigned entries_in(const char *folder);
/* Makes a folder in the temporary folder, with a file "x" that contains "old". Returns the path of
 * "x". */
const char *make_folder(const char *name);
/* Fails the test unless the file at `path` contains the text "old". */
void expect_old(const char *path);
/* Returns a safetensors writer that is ready to write a tensor "t" of `count` floats, i.e. after
 * bsmm_writer_begin. */
bsmm_writer *begin_one(const char *path, int64_t count);

#endif
