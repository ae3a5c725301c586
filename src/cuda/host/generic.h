/* The product that takes any operands (cuda_sm80_bf16.c), for kernels that need it behind their
 * own: queued after them, it does nothing unless their gate is open. */
#ifndef BSMM_CUDA_HOST_GENERIC_H
#define BSMM_CUDA_HOST_GENERIC_H

#include "cuda/host/kernel.h"
#include "cuda/sm80/bf16_params.h"

/* NULL if it takes the product, else the reason. */
const char *bsmm_cuda_generic_refuse(const bsmm_product *p, char *why, size_t size);

/* What a plan keeps of it. */
typedef struct bsmm_cuda_generic {
    bsmm_bf16_job job;
    bsmm_cuda_ready ready;
} bsmm_cuda_generic;

/* Loads what the run needs. is_gated: the run will be given a gate. */
bsmm_status bsmm_cuda_generic_make(const bsmm_product *p, bool is_gated, bsmm_cuda_generic *made);

/* What it is told of the product, and the memory of one that was made without. */
bsmm_bf16_job bsmm_cuda_generic_job(const bsmm_product *p);
void bsmm_cuda_generic_bind(const bsmm_product *p, bsmm_bf16_job *job);

/* Queues it in p->stream, with the device's context current. gate: device memory behind it is read
 * when the kernel runs; NULL: always open. */
bsmm_status bsmm_cuda_generic_run(const bsmm_product *p, const bsmm_cuda_generic *made,
                                  const bsmm_cuda_gate *gate);

/* Its bound, as bsmm_kernel.bound. */
double bsmm_cuda_generic_bound(const bsmm_product *p);

#endif
