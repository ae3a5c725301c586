/* From a product to the bf16 product's kernel and parameters; `tile`: rows of A, and of B, that a
 * block of a backend's kernels takes. */
#ifndef BSMM_GPU_BF16_JOBS_H
#define BSMM_GPU_BF16_JOBS_H

#include "gpu/bf16_product.h"
#include "gpu/params.h"

bsmm_bf16_kind bsmm_gpu_bf16_choose(const bsmm_product *p);

/* NULL if the extents fit, and D is unscaled; else the reason. */
const char *bsmm_gpu_bf16_refuse(const bsmm_product *p, int64_t tile);

bsmm_bf16_job bsmm_gpu_bf16_job_of(const bsmm_product *p, int64_t tile);

/* Sets the memory of what was made of the same product when it had none. */
void bsmm_gpu_bf16_job_bind(const bsmm_product *p, bsmm_bf16_job *job);

#endif
