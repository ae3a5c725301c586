/* The conversions of bsmm_backend for CUDA. They only queue kernels. Pointers must be aligned to
 * one element. The fast kernels need an alignment of 16 bytes, and other pointers take slower
 * kernels. */
#ifndef BSMM_CUDA_HOST_RECODE_CALLS_H
#define BSMM_CUDA_HOST_RECODE_CALLS_H

#include "cuda/runtime/device.h"
#include "gpu/recode_jobs.h"

bsmm_status bsmm_cuda_quantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_relayout(const bsmm_recode *job);
bsmm_status bsmm_cuda_amax(const bsmm_recode *job);
bsmm_status bsmm_cuda_move_codes(const bsmm_recode *job);

/* Loads the kernel of bsmm_cuda_relayout, so that a run that calls it need not. */
bsmm_status bsmm_cuda_relayout_load(const bsmm_cuda_device *device);

/* ---- functions that the conversions share ---- */

enum {
    BSMM_RECODE_THREADS = 256,    /* the threads of a thread block of the conversion kernels */
    BSMM_RECODE_MOST_DOWN = 65535 /* the largest number of thread blocks along the grid's y axis */
};

/* Launches a conversion kernel with x times y thread blocks on the job's stream. */
bsmm_status bsmm_recode_launch(const bsmm_recode *job, const bsmm_cuda_function *function,
                               int64_t x, int64_t y, void **arguments);

#endif
