/* Files for tests: a folder that goes away, and safetensors bytes made by hand, so that a test can
 * break any rule. */
#ifndef BSMM_TEST_STORED_H
#define BSMM_TEST_STORED_H

#include "bsmm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FOLDER/name in a temporary folder that is removed at exit. Static storage, overwritten after 8
 * calls. */
const char *temp_path(const char *name);
const char *temp_folder(void);

void write_bytes(const char *path, const void *bytes, size_t count);
void write_text(const char *path, const char *text);
/* Free with free(). */
uint8_t *read_bytes(const char *path, size_t *count);

/* One tensor to be stored; data NULL: zeros. `bytes` must be what shape and dtype take, unless the
 * test is about that. */
typedef struct stored {
    const char *name, *dtype;
    uint32_t ndim;
    int64_t shape[4];
    const void *data;
    size_t bytes;
} stored;

/* The bytes of a safetensors file; metadata: a JSON object's text or NULL. Free with free(). */
uint8_t *safetensors_bytes(const stored *tensors, size_t count, const char *metadata,
                           size_t *bytes);
/* The same with any header text and body. */
uint8_t *framed_bytes(const char *header, const void *body, size_t body_bytes, size_t *bytes);

/* Opens such a file from a file in the temporary folder; fails the test unless that works. */
bsmm_file *open_stored(const stored *tensors, size_t count, const char *metadata);

/* Every value of a weight's slice, row by row, through bsmm_weight_matrix or, when it is not mapped
 * or `unpack` is set, bsmm_weight_unpack. rows * cols doubles; free with free(). */
double *weight_values(const bsmm_file *file, uint64_t index, int64_t slice, bool unpack);

/* The last error is `status` and its message holds `mentions`. */
void expect_failure(bsmm_status got, bsmm_status status, const char *mentions);

#endif
