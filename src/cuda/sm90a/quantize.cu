/* The quantizing kernels with the conversions that sm_90 has. */
#include "cuda/sm80/quantize.cu"
