#ifndef BSMM_CUDA_PTX_CLUSTER_H
#define BSMM_CUDA_PTX_CLUSTER_H

static inline uint32_t ptx_cluster_rank(void) {
    return emulated_rank();
}

#endif
