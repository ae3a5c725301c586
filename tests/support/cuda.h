/* Declares functions for tests that need an NVIDIA GPU. The functions find a GPU, allocate memory
 * of the GPU, and copy to and from this memory. */
#ifndef BSMM_TEST_CUDA_H
#define BSMM_TEST_CUDA_H

#include "cuda/runtime/device.h"

/* Returns true if this build has CUDA kernels. */
bool test_cuda_is_built(void);

/* Returns the device "cuda:0" if it exists and if this build has its kernels. Otherwise skips the
 * running test with the message "skipped: no CUDA device" and the reason. */
const bsmm_cuda_device *test_cuda_device(void);

/* Returns the device "cuda:0" if it exists and if this build has its kernels, otherwise NULL. */
const bsmm_cuda_device *test_cuda_device_or_null(void);

/* Allocates device memory and copies `bytes` bytes from `from` to it. If `from` is NULL, all bytes
 * are 0xA5. Fails the test on an error. */
void *test_cuda_new(const bsmm_cuda_device *device, const void *from, size_t bytes);
void test_cuda_write(const bsmm_cuda_device *device, void *to, const void *from, size_t bytes);
void test_cuda_read(const bsmm_cuda_device *device, void *to, const void *from, size_t bytes);
void test_cuda_free(const bsmm_cuda_device *device, void *memory);

/* Calls a driver function in the device's context. Fails the test on an error. */
#define TEST_CUDA(device, entry, ...)                                                              \
    do {                                                                                           \
        assert_int_equal(bsmm_cuda_enter(device), BSMM_OK);                                        \
        assert_int_equal((device)->driver->entry(__VA_ARGS__), CUDA_SUCCESS);                      \
        bsmm_cuda_leave(device);                                                                   \
    } while (0)

#endif
