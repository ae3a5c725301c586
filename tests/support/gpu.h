/* Declares functions that list the GPUs on which tests run, and that allocate and copy GPU memory
 * by the library's public calls. */
#ifndef BSMM_TEST_GPU_H
#define BSMM_TEST_GPU_H

#include "bsmm.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the name of GPU number `index`, or NULL after the last one. "cuda:0" and "hip:0" are in
 * the list if the GPU exists and the build has kernels for it. Simulated GPUs such as "sim:gfx942"
 * are slow, so they are in the list only if the environment variable BSMM_TEST_DEVICE names them.
 * If this variable is set, the list contains no other devices. */
const char *test_gpu_at(uint32_t index);

/* Returns true if tests should use devices of the kind `kind`, such as "cpu". The environment
 * variable BSMM_TEST_DEVICE may restrict tests to one kind or one device. */
bool test_gpu_wants(const char *kind);

/* Skips the running test if there is no GPU to test. The message says why. */
void test_gpu_need(void);

/* Allocates device memory and copies `bytes` bytes from `from` to it. If `from` is NULL, all bytes
 * are 0xA5. Fails the test on an error. */
void *test_gpu_new(const char *device, const void *from, size_t bytes);
void test_gpu_write(const char *device, void *to, const void *from, size_t bytes);
void test_gpu_read(const char *device, void *to, const void *from, size_t bytes);
void test_gpu_free(const char *device, void *memory);

#endif
