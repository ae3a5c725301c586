/* Declares conversions on a GPU that together run every kernel for converting, moving and packing
 * matrices. */
#ifndef BSMM_TEST_GPU_CONVERSIONS_H
#define BSMM_TEST_GPU_CONVERSIONS_H

/* Quantizes, dequantizes, moves scales and packs on the GPU of this name, and compares the results
 * with those of the CPU. */
void gpu_conversions_run(const char *name);

#endif
