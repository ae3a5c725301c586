/* Declares functions for tests of files. They make a temporary folder that is removed at exit, and
 * the bytes of safetensors files, in which a test can break any rule of the format. */
#ifndef BSMM_TEST_STORED_H
#define BSMM_TEST_STORED_H

#include "bsmm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the path of `name` in a temporary folder that is removed at exit. The path is in a static
 * buffer, which is valid until the eighth call after this one. */
const char *temp_path(const char *name);
const char *temp_folder(void);

void write_bytes(const char *path, const void *bytes, size_t count);
void write_text(const char *path, const char *text);
/* Reads a file. The caller frees the bytes by free(). */
uint8_t *read_bytes(const char *path, size_t *count);

/* Describes a tensor to store. If `data` is NULL, the tensor's bytes are zeros. `bytes` is the size
 * that follows from shape and dtype, except in a test of the error for a wrong size. */
typedef struct stored {
    const char *name, *dtype;
    uint32_t ndim;
    int64_t shape[4];
    const void *data;
    size_t bytes;
} stored;

/* Returns the bytes of a safetensors file. `metadata` is the text of a JSON object, or NULL. The
 * caller frees the bytes by free(). */
uint8_t *safetensors_bytes(const stored *tensors, size_t count, const char *metadata,
                           size_t *bytes);
/* Returns the bytes of a safetensors file that has this header text, followed by the bytes of
 * `body`. */
uint8_t *framed_bytes(const char *header, const void *body, size_t body_bytes, size_t *bytes);

/* Writes the tensors to a file in the temporary folder and opens it. Fails the test on an error. */
bsmm_file *open_stored(const stored *tensors, size_t count, const char *metadata);

/* Returns all values of one matrix (`slice`) of a weight, row by row. The function reads the weight
 * by bsmm_weight_matrix, or by bsmm_weight_unpack if `unpack` is set or the weight is not mapped.
 * The caller frees the array by free(). */
double *weight_values(const bsmm_file *file, uint64_t index, int64_t slice, bool unpack);

/* Fails the test unless the last error is `status` and its message contains `mentions`. */
void expect_failure(bsmm_status got, bsmm_status status, const char *mentions);

#endif
