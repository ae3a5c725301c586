/* Declares a series of conversions on a GPU that runs every kernel for converting matrices, moving
 * scales and packing. */
#ifndef BSMM_TEST_GPU_CONVERSIONS_H
#define BSMM_TEST_GPU_CONVERSIONS_H

/* Quantizes, dequantizes, moves scales and packs on the GPU `name`, and compares the results with
 * those of the CPU. */
void gpu_conversions_run(const char *name);

#endif
