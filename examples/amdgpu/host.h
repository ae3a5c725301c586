/* The host's part of the examples: libamdhip64.so by dlopen, buffers, one wave, a check. */
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
 * the buffers as its arguments, and copies the last one back. Ends the program if HIP refuses. */
void run_wave(const char *code_object, const char *kernel, const buffer *buffers, int count);

/* Returns element i of the random matrix that `seed` selects. It is an integer from `least` to
 * `most`. Sums of products of small integers are exact in fp32. */
int sample(int seed, int i, int least, int most);

/* The value of a small float's code: sign, exponent of that many bits with that bias, mantissa. */
float small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias);

/* Prints the corner of D = A B (a and b row-major, B (k, n)) and compares all of D with the host's
 * sums. Returns the program's exit status. */
int check_product(const char *title, const float *a, const float *b, const float *d, int m, int n,
                  int k);

#endif
