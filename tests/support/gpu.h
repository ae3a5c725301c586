/* The GPUs of any backend on which tests run, and functions for their memory, which use the
 * library's own calls. */
#ifndef BSMM_TEST_GPU_H
#define BSMM_TEST_GPU_H

#include "bsmm.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the name of the device with this number, or NULL after the last. "cuda:0" and "hip:0" are
 * in the list if such a device exists and its kernels are in this build; otherwise the first call
 * prints "skipped: no CUDA device". Simulators ("sim:gfx942") are slow, so they are in the list
 * only if BSMM_TEST_DEVICE names them. BSMM_TEST_DEVICE ("cpu", "cuda", "hip", "sim" or one device)
 * excludes all other devices. */
const char *test_gpu_at(uint32_t index);

/* Returns true if BSMM_TEST_DEVICE is not set, or if it names a device of this kind, such as "cpu".
 */
bool test_gpu_wants(const char *kind);

/* Skips the running test if there is no GPU to test. The message says why. */
void test_gpu_need(void);

/* Allocates device memory with a copy of `from`, or with 0xA5 everywhere if `from` is NULL. Fails
 * the test on an error. */
void *test_gpu_new(const char *device, const void *from, size_t bytes);
void test_gpu_write(const char *device, void *to, const void *from, size_t bytes);
void test_gpu_read(const char *device, void *to, const void *from, size_t bytes);
void test_gpu_free(const char *device, void *memory);

#endif
