/* Declares three fake NVIDIA GPUs, one of each compute capability for which bsmm has kernels: 9.0,
 * 10.0 and 12.0. They are devices of the fake driver in tests/fake_cuda. */
#ifndef BSMM_TEST_FAKE_GPUS_H
#define BSMM_TEST_FAKE_GPUS_H

#include "../fake_cuda/fake_cuda.h"

enum { FAKE_GPUS = 3 };

/* Lists the device names by which bsmm opens the fake GPUs. */
extern const char *const fake_gpus[FAKE_GPUS];

/* Opens the GPUs and returns the state of the fake driver. Prints a message and returns NULL if the
 * driver is not on LD_LIBRARY_PATH. The fake driver reports the device number in `driver.owner` as
 * the owner of all memory, so a test sets `driver.owner` before it uses a GPU. */
fake_cuda *fake_gpus_open(void);

/* Calls check(name) for each GPU, and returns the sum of the results. */
int fake_gpus_sum(int (*check)(const char *device));

#endif
