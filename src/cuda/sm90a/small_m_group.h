/* The second part of a small-M kernel for 17 to 32 columns: products by warpgroups. The weights of
 * four warps, decoded to where mma.m16n8k16 has them, are the 64-row operand of wgmma; A's columns,
 * in shared memory, the other: it is read once for four warps, and no registers hold it. Sums have
 * the bits that mma.sync gives. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_GROUP_H
#define BSMM_CUDA_SM90A_SMALL_M_GROUP_H

#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/small_m_multiply.h"

#define WGMMA_NAME  small_m_wgmma
#define WGMMA_HOLD  small_m_hold
#define WGMMA_WORDS 1
#define WGMMA_N     32
#define WGMMA_SHAPE "m64n32k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

/* Of a chunk in shared memory (small_m_prepare.h): bytes of one of its four parts, and of all. */
enum {
    SMALL_M_GROUP_PART = 16 * BSMM_SMALL_M_COLUMNS,
    SMALL_M_GROUP_CHUNK = 4 * SMALL_M_GROUP_PART
};

/* What products read of a thread's weights: a chunk of 8 along K for two times 16 of K. One is
 * decoded while the other is multiplied; a third or fourth gains nothing. */
enum { SMALL_M_FRAGMENTS = 2 };
typedef struct small_m_fragments {
    uint32_t f[SMALL_M_FRAGMENTS][8];
} small_m_fragments;

static __device__ __forceinline__ void small_m_hold_fragment(uint32_t f[8]) {
    ptx_wgmma_hold_words(f);
    ptx_wgmma_hold_words(f + 4);
}

/* All products are done. */
static __device__ __forceinline__ void small_m_wait_products(small_m_fragments *fragments) {
    PTX_WGMMA_WAIT(0);
#pragma unroll
    for (int i = 0; i < SMALL_M_FRAGMENTS; i++)
        small_m_hold_fragment(fragments->f[i]);
}

static __device__ __forceinline__ uint64_t small_m_describe(uint32_t address) {
    return ptx_wgmma_descriptor_plain(address, SMALL_M_GROUP_PART, 128);
}

/* sums = (add ? sums : 0) + a chunk, whose A is at the descriptor. */
static __device__ __forceinline__ void small_m_multiply_chunk(float *sums, const uint32_t f[8],
                                                              uint64_t a, uint32_t add) {
    ptx_wgmma_fence();
    small_m_wgmma(sums, f, a, add);
    small_m_wgmma(sums, f + 4, a + (2 * SMALL_M_GROUP_PART >> 4), 1);
    ptx_wgmma_commit();
}

/* sums = (add ? sums : 0) + one step: 128 along K of 16 rows a warp; the last chunk's products are
 * under way when it returns. Half `half` of words and factors with 4 bits, both with 8. */
static __device__ __forceinline__ void
small_m_group_step(const int format, const int half, const small_m_words *words,
                   const small_m_factors *factors, uint64_t a, small_m_fragments *fragments,
                   float *sums, const uint32_t add, uint32_t nans[2]) {
#pragma unroll
    for (int chunk = 0; chunk < 4; chunk++) {
        const int h = format <= SMALL_M_NVFP4 ? half : chunk / 2;
        uint32_t *f = fragments->f[chunk % SMALL_M_FRAGMENTS], low[4], high[4];
        small_m_chunk(format, &words->w[h][0], chunk, factors->f[h][0], low, &nans[0]);
        small_m_chunk(format, &words->w[h][1], chunk, factors->f[h][1], high, &nans[1]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            f[2 * i] = low[i], f[2 * i + 1] = high[i];
        small_m_multiply_chunk(sums, f, a + (chunk * SMALL_M_GROUP_CHUNK >> 4), add || chunk > 0);
        PTX_WGMMA_WAIT(SMALL_M_FRAGMENTS - 1);
        small_m_hold_fragment(fragments->f[(chunk + 1) % SMALL_M_FRAGMENTS]);
    }
}

#endif
