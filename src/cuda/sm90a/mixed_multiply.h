/* This is the inner loop of the mixed-input kernels (sm90a/mixed.cu). A step is 128 elements along
 * K, and a chunk is 32. A warpgroup decodes the next chunk of weights while wgmma multiplies the
 * current one. */
#ifndef BSMM_CUDA_SM90A_MIXED_MULTIPLY_H
#define BSMM_CUDA_SM90A_MIXED_MULTIPLY_H

#include "cuda/sm90a/mixed_weights.h"
#include "cuda/sm90a/small_m_group.h"

/* MIXED_CHUNKS is the number of chunks in a step. */
enum { MIXED_CHUNKS = 4 };

/* Decodes the thread's weights of one chunk, 8 of each of two rows of B, to the registers `f`, from
 * which wgmma reads them. For e4m3, bit 7 of a byte of nans[i] is set if a weight of row i is NaN.
 */
static __device__ __forceinline__ void mixed_decode(const int format, const int chunk,
                                                    const small_m_words *words,
                                                    const small_m_factors *factors, uint32_t f[8],
                                                    uint32_t nans[2]) {
    const int half = small_m_is_4bit(format) ? 0 : chunk / 2;
    const int block = small_m_is_6bit(format) ? 0 : half;
    uint32_t low[4], high[4];
    small_m_chunk(format, &words->w[half][0], chunk, factors->f[block][0], low, &nans[0]);
    small_m_chunk(format, &words->w[half][1], chunk, factors->f[block][1], high, &nans[1]);
#pragma unroll
    for (int i = 0; i < 4; i++)
        f[2 * i] = low[i], f[2 * i + 1] = high[i];
}

#endif
