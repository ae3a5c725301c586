/* The host code that the examples share: it loads libamdhip64.so, copies buffers, runs one wave,
 * and checks the result. */
#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct buffer {
    void *host;
    size_t bytes;
} buffer;

/* Copies the buffers to the device, runs `kernel` of the code object on one wave of 64 lanes with
 * the buffers as its arguments, and copies the last buffer back. Exits the program after an error
 * of HIP. */
void run_wave(const char *code_object, const char *kernel, const buffer *buffers, int count);

/* Returns element i of the random matrix that `seed` selects, an integer from `least` to `most`.
 * Sums of products of such integers are exact in fp32 while they are small. */
int sample(int seed, int i, int least, int most);

/* Returns the value of a code with one sign bit, `exponent_bits` bits of exponent with `bias`, and
 * `mantissa_bits` bits of mantissa. */
float small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias);

/* Prints the corner of D = A B and compares all of D with sums that the host computes. A is m x k
 * and B is k x n, both row-major. Returns the program's exit status: 0 if D is right. */
int check_product(const char *title, const float *a, const float *b, const float *d, int m, int n,
                  int k);

#endif
