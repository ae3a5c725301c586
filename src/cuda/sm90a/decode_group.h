/* The second part of a decode kernel for 17 to 32 columns: products by warpgroups. The weights of
 * four warps, decoded to where mma.m16n8k16 has them, are the 64-row operand of wgmma; A's columns,
 * in shared memory, the other: it is read once for four warps, and no registers hold it. Sums have
 * the bits that mma.sync gives. */
#ifndef BSMM_CUDA_DECODE_GROUP_H
#define BSMM_CUDA_DECODE_GROUP_H

#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/decode_multiply.h"

#define WGMMA_NAME  decode_wgmma
#define WGMMA_HOLD  decode_hold
#define WGMMA_WORDS 1
#define WGMMA_N     32
#define WGMMA_SHAPE "m64n32k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

/* Of a chunk in shared memory (decode_prepare.h): bytes of one of its four parts, and of all. */
enum { DECODE_GROUP_PART = 16 * BSMM_DECODE_COLUMNS, DECODE_GROUP_CHUNK = 4 * DECODE_GROUP_PART };

/* What products read of a thread's weights: a chunk of 8 along K for two times 16 of K. One is
 * decoded while the other is multiplied; a third or fourth gains nothing. */
enum { DECODE_FRAGMENTS = 2 };
typedef struct decode_fragments {
    uint32_t f[DECODE_FRAGMENTS][8];
} decode_fragments;

static __device__ __forceinline__ void decode_hold_fragment(uint32_t f[8]) {
    ptx_wgmma_hold_words(f);
    ptx_wgmma_hold_words(f + 4);
}

/* All products are done. */
static __device__ __forceinline__ void decode_wait_products(decode_fragments *fragments) {
    PTX_WGMMA_WAIT(0);
#pragma unroll
    for (int i = 0; i < DECODE_FRAGMENTS; i++)
        decode_hold_fragment(fragments->f[i]);
}

static __device__ __forceinline__ uint64_t decode_describe(uint32_t address) {
    return ptx_wgmma_descriptor_plain(address, DECODE_GROUP_PART, 128);
}

/* sums = (add ? sums : 0) + a chunk, whose A is at the descriptor. */
static __device__ __forceinline__ void decode_multiply_chunk(float *sums, const uint32_t f[8],
                                                             uint64_t a, uint32_t add) {
    ptx_wgmma_fence();
    decode_wgmma(sums, f, a, add);
    decode_wgmma(sums, f + 4, a + (2 * DECODE_GROUP_PART >> 4), 1);
    ptx_wgmma_commit();
}

/* sums = (add ? sums : 0) + one step: 128 along K of 16 rows a warp; the last chunk's products are
 * under way when it returns. Half `half` of words and factors with 4 bits, both with 8. */
static __device__ __forceinline__ void decode_group_step(const int format, const int half,
                                                         const decode_words *words,
                                                         const decode_factors *factors, uint64_t a,
                                                         decode_fragments *fragments, float *sums,
                                                         const uint32_t add, uint32_t nans[2]) {
#pragma unroll
    for (int chunk = 0; chunk < 4; chunk++) {
        const int h = format <= DECODE_NVFP4 ? half : chunk / 2;
        uint32_t *f = fragments->f[chunk % DECODE_FRAGMENTS], low[4], high[4];
        decode_chunk(format, &words->w[h][0], chunk, factors->f[h][0], low, &nans[0]);
        decode_chunk(format, &words->w[h][1], chunk, factors->f[h][1], high, &nans[1]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            f[2 * i] = low[i], f[2 * i + 1] = high[i];
        decode_multiply_chunk(sums, f, a + (chunk * DECODE_GROUP_CHUNK >> 4), add || chunk > 0);
        PTX_WGMMA_WAIT(DECODE_FRAGMENTS - 1);
        decode_hold_fragment(fragments->f[(chunk + 1) % DECODE_FRAGMENTS]);
    }
}

#endif
