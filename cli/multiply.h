/* Multiplies matrices in host memory on any device. */
#ifndef CLI_MULTIPLY_H
#define CLI_MULTIPLY_H

#include "device.h"

typedef struct cli_ran {
    char kernel[64];
    /* `seconds` is the time of the product alone, without the copies of the matrices. */
    double seconds;
} cli_ran;

/* Copies the operands to the device that *desc names, multiplies them and copies D back. *device is
 * the opened device. If *device is NULL, the function opens the device. The device keeps the copies
 * until the caller closes it. On failure, the function prints a message and returns false. */
bool cli_multiply_on(bench_device **device, const bsmm_matmul_desc *desc, cli_ran *ran);

#endif
