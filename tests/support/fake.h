/* Declares what the tests with a fake GPU driver (tests/fake_driver) share. */
#ifndef BSMM_TEST_FAKE_H
#define BSMM_TEST_FAKE_H

#include "../fake_driver/fake_driver.h"
#include "core/backend.h"
#include "operand.h"

/* Loads a fake driver and returns the address of its state, which is the library's symbol `name`.
 * If the library is not on LD_LIBRARY_PATH, prints a message and returns NULL. */
void *fake_find(const char *library, const char *name);

/* Checks that a device can allocate and free all of its free memory, but cannot allocate more. */
void fake_check_memory(const fake_driver *fake, const bsmm_backend *backend, const void *device);

/* `fake_product` is a product whose operands are in the memory of a fake GPU. */
typedef struct fake_product {
    const char *device;  /* `device` is a name such as "cuda:0". */
    test_matrix host[3]; /* `host` holds the matrices A, B and D in host memory. */
    bsmm_matrix on[3];   /* `on` holds the matrices A, B and D in device memory. */
    float *bias;
    bsmm_matmul_desc desc;
} fake_product;

void *fake_upload(const char *device, size_t bytes);
void fake_product_make(fake_product *p, const char *device);
void fake_product_free(fake_product *p);

/* Returns the buffers of a run on the stream `stream`. There is no workspace. */
bsmm_buffers fake_product_buffers(const fake_product *p, void *stream);

#endif
