/* The product that takes any operands (cuda_sm80_bf16.c), for kernels that need it behind their
 * own: queued after them, it does nothing unless their gate is open. */
#ifndef BSMM_CUDA_HOST_GENERIC_H
#define BSMM_CUDA_HOST_GENERIC_H

#include "core/kernel.h"
#include "cuda/sm80/bf16_params.h"

/* NULL if it takes the product, else the reason. */
const char *bsmm_cuda_generic_refuse(const bsmm_product *p, char *why, size_t size);

/* Loads what the run needs. */
bsmm_status bsmm_cuda_generic_prepare(const bsmm_product *p);

/* What it is told of the product. */
bsmm_bf16_job bsmm_cuda_generic_job(const bsmm_product *p);

/* Queues it in p->stream. gate: device memory behind it is read when the kernel runs; NULL: always
 * open. */
bsmm_status bsmm_cuda_generic_run(const bsmm_product *p, const bsmm_cuda_gate *gate);

/* Its bound, as bsmm_kernel.bound. */
double bsmm_cuda_generic_bound(const bsmm_product *p);

#endif
