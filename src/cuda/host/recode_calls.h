/* Implements the conversions of matrices in bsmm_backend (quantize, dequantize, copy scales, ...)
 * for CUDA. These functions only queue kernels. Pointers must be aligned to the size of one
 * element. The fast kernels need an alignment of 16 bytes. For other pointers, slower kernels run.
 */
#ifndef BSMM_CUDA_HOST_RECODE_CALLS_H
#define BSMM_CUDA_HOST_RECODE_CALLS_H

#include "cuda/runtime/device.h"
#include "cuda/sm80/relayout_params.h"
#include "gpu/recode_jobs.h"

bsmm_status bsmm_cuda_quantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_make_quantizer(const bsmm_recode *job, void *to);
bsmm_status bsmm_cuda_run_quantizer(const bsmm_recode *job, const void *from);
bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job);
bsmm_status bsmm_cuda_relayout(const bsmm_recode *job);
bsmm_status bsmm_cuda_amax(const bsmm_recode *job);
bsmm_status bsmm_cuda_move_codes(const bsmm_recode *job);

/* Queues a memset that sets dst's scales to 0, if their layout has padding. */
bsmm_status bsmm_cuda_clear_padding(const bsmm_recode *job);

/* Describes a copy of scales to another layout that a plan prepares. Each run provides only the
 * stream and the addresses. */
typedef struct bsmm_cuda_ready_relayout {
    /* `launch` is the launch of the kernel that copies the scales. Its handle is NULL if there are
     * no scales. */
    bsmm_cuda_ready launch;
    /* `copy` says which kernel copies: move_regions, whose parameters are copy.regions, or
     * move_scales, whose parameters are copy.regions.job. */
    bsmm_relayout_copy copy;
} bsmm_cuda_ready_relayout;

/* Describes the copies of the scales of one or two matrices to another layout. A plan prepares
 * them. */
typedef struct bsmm_cuda_ready_relayouts {
    bsmm_cuda_ready_relayout of[2];
    /* `both` is the launch of one kernel that makes the copies of both matrices. Its handle is NULL
     * if there is only one copy or none, or if there are too many thread blocks for one launch. */
    bsmm_cuda_ready both;
} bsmm_cuda_ready_relayouts;

/* Prepares the copy of scales that a job describes. The kernel is chosen for the alignment of the
 * job's addresses. If an address is NULL, each run must provide one that is a multiple of 16 bytes.
 */
bsmm_status bsmm_cuda_ready_relayout_make(const bsmm_recode *job, bsmm_cuda_ready_relayout *ready);

/* Queues the copy of scales that a plan has prepared. The device's context must be current. */
bsmm_status bsmm_cuda_ready_relayout_launch(const bsmm_cuda_device *device,
                                            const bsmm_cuda_ready_relayout *ready, void *stream,
                                            const void *from, void *to);

/* Prepares the copies of scales that two jobs describe. A job is NULL if there is nothing to copy.
 */
bsmm_status bsmm_cuda_ready_relayouts_make(const bsmm_cuda_device *device,
                                           const bsmm_recode *const jobs[2],
                                           bsmm_cuda_ready_relayouts *ready);

/* Queues the copies of scales that a plan has prepared, in one launch if possible. The addresses of
 * a copy that was not prepared are ignored. The device's context must be current. */
bsmm_status bsmm_cuda_ready_relayouts_launch(const bsmm_cuda_device *device,
                                             const bsmm_cuda_ready_relayouts *ready, void *stream,
                                             const void *const from[2], void *const to[2]);

enum {
    /* BSMM_RECODE_THREADS is the number of threads per block of the conversion kernels. */
    BSMM_RECODE_THREADS = 256,
    /* BSMM_RECODE_MOST_DOWN is the largest number of thread blocks along the grid's y axis. */
    BSMM_RECODE_MOST_DOWN = 65535
};

/* Launches a conversion kernel with a grid of x by y thread blocks on the job's stream. */
bsmm_status bsmm_recode_launch(const bsmm_recode *job, const bsmm_cuda_function *function,
                               int64_t x, int64_t y, void **arguments);

#endif
