/* Declares a test that converts matrices, moves scales and packs operands on a GPU. The test runs
 * every kernel for these tasks. */
#ifndef BSMM_TEST_GPU_CONVERSIONS_H
#define BSMM_TEST_GPU_CONVERSIONS_H

/* Quantizes, dequantizes, moves scales and packs on the GPU `name`, and compares the results with
 * those of the CPU. */
void gpu_conversions_run(const char *name);

#endif
