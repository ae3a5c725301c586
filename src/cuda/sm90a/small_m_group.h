/* The main loop of a small-M kernel for 17 to 32 columns, where four warps multiply together by
 * wgmma. A column is a row of A, or a part of one.
 *
 * The decoded weights of the four warps have the register layout of mma.m16n8k16, and they are the
 * 64-row operand of wgmma. A's columns are its second operand, in shared memory. The hardware reads
 * them once for four warps, and they occupy no registers. Accumulators are bitwise identical to
 * those of mma.sync. */
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

/* Sizes in bytes of a chunk of A in shared memory (small_m_prepare.h), and of one of its four
 * parts. */
enum {
    SMALL_M_GROUP_PART = 16 * BSMM_SMALL_M_COLUMNS,
    SMALL_M_GROUP_CHUNK = 4 * SMALL_M_GROUP_PART
};

/* The decoded weights of a thread that wgmma reads: a chunk of 8 elements along K, for two wgmma of
 * 16 elements of K. There are two fragments, so that one is decoded while the other is multiplied.
 * A third or fourth fragment gains nothing. */
enum { SMALL_M_FRAGMENTS = 2 };
typedef struct small_m_fragments {
    uint32_t f[SMALL_M_FRAGMENTS][8];
} small_m_fragments;

static __device__ __forceinline__ void small_m_hold_fragment(uint32_t f[8]) {
    ptx_wgmma_hold_words(f);
    ptx_wgmma_hold_words(f + 4);
}

/* Waits until all wgmma instructions of this warpgroup have finished. */
static __device__ __forceinline__ void small_m_wait_products(small_m_fragments *fragments) {
    PTX_WGMMA_WAIT(0);
#pragma unroll
    for (int i = 0; i < SMALL_M_FRAGMENTS; i++)
        small_m_hold_fragment(fragments->f[i]);
}

static __device__ __forceinline__ uint64_t small_m_describe(uint32_t address) {
    return ptx_wgmma_descriptor_plain(address, SMALL_M_GROUP_PART, 128);
}

/* Starts the wgmma of one chunk: sums = (add ? sums : 0) + products. `a` is the descriptor of A's
 * chunk. */
static __device__ __forceinline__ void small_m_multiply_chunk(float *sums, const uint32_t f[8],
                                                              uint64_t a, uint32_t add) {
    ptx_wgmma_fence();
    small_m_wgmma(sums, f, a, add);
    small_m_wgmma(sums, f + 4, a + (2 * SMALL_M_GROUP_PART >> 4), 1);
    ptx_wgmma_commit();
}

/* Multiplies one step, which is 128 elements along K of 16 rows per warp: sums = (add ? sums : 0) +
 * products. The wgmma of the last chunk still run when it returns. With 4-bit weights it reads half
 * `half` of words and factors, and with 8-bit weights both halves. */
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
