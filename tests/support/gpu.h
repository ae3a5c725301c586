/* The GPUs of any backend that tests run on, and memory on them through the library's own calls. */
#ifndef BSMM_TEST_GPU_H
#define BSMM_TEST_GPU_H

#include "bsmm.h"

#include <stdbool.h>
#include <stddef.h>

/* The devices by number, NULL past the last: "cuda:0" and "hip:0" where their kernels are built in
 * and there is such a device (the first call says "skipped: no CUDA device" where not), and
 * simulators
 * ("sim:gfx942"), which take their time, where BSMM_TEST_DEVICE names them. That variable leaves
 * all others out: "cpu", "cuda", "hip", "sim" or one device. */
const char *test_gpu_at(uint32_t index);

/* Returns true if BSMM_TEST_DEVICE is not set, or if it names a device of this kind, such as "cpu".
 */
bool test_gpu_wants(const char *kind);

/* Skips the running test if there is no GPU to test. The message says why. */
void test_gpu_need(void);

/* Memory on the device, with a copy of `from` (NULL: 0xA5 everywhere); fails the test if that
 * fails. */
void *test_gpu_new(const char *device, const void *from, size_t bytes);
void test_gpu_write(const char *device, void *to, const void *from, size_t bytes);
void test_gpu_read(const char *device, void *to, const void *from, size_t bytes);
void test_gpu_free(const char *device, void *memory);

#endif
