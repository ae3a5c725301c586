/* Each thread block stores its rank in the cluster at the end of its dynamic shared memory and
 * reads it back. Tests see from the ranks whether a launch has set up clusters and dynamic shared
 * memory correctly. */
#include "cuda/ptx/cluster.h"

extern __shared__ uint32_t memory[];

extern "C" __global__ void probe_launch(uint32_t *ranks, uint32_t shared_words) {
    memory[shared_words - 1 - threadIdx.x] = ptx_cluster_rank();
    __syncthreads();
    if (threadIdx.x == 0) ranks[blockIdx.x] = memory[shared_words - 1];
}
