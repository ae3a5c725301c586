/* The generic GEMM (cuda_sm80_bf16.c) supports all operands and is the fallback of faster kernels.
 * The host always queues it after a faster kernel. It also gives it a gate, i.e. a condition that
 * the generic GEMM tests on the device when it begins (sm80/gate.h). If the faster kernel has
 * computed the product, the gate is closed, and the generic GEMM exits at once. */
#ifndef BSMM_CUDA_HOST_GENERIC_H
#define BSMM_CUDA_HOST_GENERIC_H

#include "cuda/host/kernel.h"
#include "cuda/sm80/bf16_params.h"

/* Returns NULL if the generic GEMM can compute the product, else the reason why not. */
const char *bsmm_cuda_generic_refuse(const bsmm_product *p, char *why, size_t size);

/* Holds the part of a plan's state that belongs to the generic GEMM: the kernel parameters without
 * addresses, and the loaded kernel. */
typedef struct bsmm_cuda_generic {
    bsmm_bf16_job job;
    bsmm_cuda_ready ready;
} bsmm_cuda_generic;

/* Loads the kernel that bsmm_cuda_generic_run launches. Set is_gated if each run will pass a gate,
 * i.e. a condition in device memory under which the kernel computes the product (sm80/gate.h). */
bsmm_status bsmm_cuda_generic_make(const bsmm_product *p, bool is_gated, bsmm_cuda_generic *made);

/* Returns the kernel parameters of the generic GEMM for a product. */
bsmm_bf16_job bsmm_cuda_generic_job(const bsmm_product *p);

/* Queues the generic GEMM in p->stream. The device's context must be current. `gate` is the
 * condition under which the kernel computes the product. The kernel reads the condition from device
 * memory when it runs. If `gate` is NULL, the kernel always computes the product. */
bsmm_status bsmm_cuda_generic_run(const bsmm_product *p, const bsmm_cuda_generic *made,
                                  const bsmm_cuda_gate *gate);

/* Returns the error bound of the generic GEMM, as a multiple of sum |a||b|. */
double bsmm_cuda_generic_bound(const bsmm_product *p);

#endif
