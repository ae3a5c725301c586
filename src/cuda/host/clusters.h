/* Tells how many clusters of thread blocks run at once on a GPU. A cluster must lie in one GPC (a
 * part of the GPU), so this number can be less than the number of SMs divided by the size of a
 * cluster. */
#ifndef BSMM_CUDA_HOST_CLUSTERS_H
#define BSMM_CUDA_HOST_CLUSTERS_H

#include "cuda/runtime/device.h"

/* Returns the number of clusters of `blocks` thread blocks, 1 to 8, that run at once if an SM runs
 * one thread block at a time. The number is at least 1. It is the same on all GPUs of a model. */
uint32_t bsmm_cuda_clusters_at_once(const bsmm_cuda_device *device, uint32_t blocks);

#endif
