/* Declares the host code that the AMD examples share. It loads libamdhip64.so, copies buffers,
 * runs one wave, and checks the result. */
#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct buffer {
    void *host;
    size_t bytes;
} buffer;

/* Copies the buffers to the device, runs `kernel` of the code object on one wave of 64 lanes, and
 * copies the last buffer back. The buffers are the kernel's arguments. The function exits the
 * program after an error of HIP. */
void run_wave(const char *code_object, const char *kernel, const buffer *buffers, int count);

/* Returns element i of the random matrix that `seed` selects. The element is an integer from
 * `least` to `most`, because sums of products of small integers are exact in fp32. */
int sample(int seed, int i, int least, int most);

/* Returns the value of a float code with one sign bit, `exponent_bits` exponent bits with the bias
 * `bias`, and `mantissa_bits` mantissa bits. */
float small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias);

/* Prints a corner of D = A B and compares all of D with sums that the host computes. A is m x k
 * and B is k x n, both row-major. Returns the program's exit status, which is 0 if D is right. */
int check_product(const char *title, const float *a, const float *b, const float *d, int m, int n,
                  int k);

#endif
