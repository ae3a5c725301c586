/* Implements the conversions of matrices in bsmm_backend (quantize, dequantize, copy scales, ...)
 * for CUDA. These functions only queue kernels. Pointers must be aligned to the size of one
 * element. The fast kernels need an alignment of 16 bytes. For other pointers, slower kernels run.
 */
#ifndef BSMM_CUDA_HOST_RECODE_CALLS_H
#define BSMM_CUDA_HOST_RECODE_CALLS_H

#include "cuda/runtime/device.h"
#include "gpu/recode_jobs.h"

bsmm_status bsmm_cuda_quantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_relayout(const bsmm_recode *job);
bsmm_status bsmm_cuda_amax(const bsmm_recode *job);
bsmm_status bsmm_cuda_move_codes(const bsmm_recode *job);

/* Queues a memset that sets dst's scales to 0, if their layout has padding. */
bsmm_status bsmm_cuda_clear_padding(const bsmm_recode *job);

/* Loads the kernels that bsmm_cuda_relayout launches, so that a run loads nothing. */
bsmm_status bsmm_cuda_relayout_load(const bsmm_cuda_device *device);

enum {
    /* BSMM_RECODE_THREADS is the number of threads per block of the conversion kernels. */
    BSMM_RECODE_THREADS = 256,
    /* BSMM_RECODE_MOST_DOWN is the largest number of thread blocks along the grid's y axis. */
    BSMM_RECODE_MOST_DOWN = 65535
};

/* Launches a conversion kernel with x times y thread blocks on the job's stream. */
bsmm_status bsmm_recode_launch(const bsmm_recode *job, const bsmm_cuda_function *function,
                               int64_t x, int64_t y, void **arguments);

#endif
