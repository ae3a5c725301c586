/* This function wraps the PTX instruction that prefetches a cache line. */
#ifndef BSMM_CUDA_PTX_PREFETCH_H
#define BSMM_CUDA_PTX_PREFETCH_H

/* PTX ISA 9.7.9.17 "prefetch": fetches the cache line of an address in global memory into L2. */
static __device__ __forceinline__ void ptx_prefetch_l2(const void *from) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

#endif
