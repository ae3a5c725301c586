/* Each thread block stores its rank in the cluster at the end of its dynamic shared memory, reads
 * it back and reports it. Tests thus see whether a launch has set up the clusters and the dynamic
 * shared memory. */
#include "cuda/ptx/cluster.h"

extern __shared__ uint32_t memory[];

extern "C" __global__ void probe_launch(uint32_t *ranks, uint32_t shared_words) {
    memory[shared_words - 1 - threadIdx.x] = ptx_cluster_rank();
    __syncthreads();
    if (threadIdx.x == 0) ranks[blockIdx.x] = memory[shared_words - 1];
}
