/* Declares the operations of devices that libamdhip64.so drives, i.e. of real and simulated AMD
 * GPUs. */
#ifndef BENCH_DEVICE_HIP_H
#define BENCH_DEVICE_HIP_H

#include "device_driver.h"

/* Opens the device `name` through one of the driver libraries in a list that ends with NULL. The
 * bsmm library must have opened the same driver library before. */
void *bench_hip_open(const char *name, const char *const *libraries);

BENCH_DECLARE_OPERATIONS(hip);

#endif
