/* Chooses a kernel of the bf16 product (bf16_product.h) and fills its parameters. A thread block
 * computes a tile of D with `tile` rows and `tile` columns. The backend of the device passes this
 * number to the functions here. */
#ifndef BSMM_GPU_BF16_JOBS_H
#define BSMM_GPU_BF16_JOBS_H

#include "gpu/bf16_product.h"
#include "gpu/params.h"

bsmm_bf16_kind bsmm_gpu_bf16_choose(const bsmm_product *p);

/* Returns NULL if the kernels can index the product's extents with 32 bits. Otherwise writes the
 * reason to `why` and returns it. */
const char *bsmm_gpu_bf16_refuse(const bsmm_product *p, int64_t tile, char *why, size_t size);

bsmm_bf16_job bsmm_gpu_bf16_job_of(const bsmm_product *p, int64_t tile);

/* Sets the pointers of a job. The job was made from the same product before the addresses of its
 * matrices were known. */
void bsmm_gpu_bf16_job_bind(const bsmm_product *p, bsmm_bf16_job *job);

#endif
