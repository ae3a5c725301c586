/* This is the inner loop of a small-M kernel (few rows of A) for 17 to 128 columns. A column is one
 * row of A, or one of the two or three rows of bf16 numbers whose sum is an f16 or f32 row of A.
 *
 * The four warps of a warpgroup multiply together by wgmma. The operands swap roles: the first
 * operand of wgmma is 64 rows of the weights B, and its second operand is the columns. A thread
 * decodes its weights into registers, in the register layout of mma.m16n8k16. wgmma reads the
 * columns from shared memory. One read serves four warps, and the columns occupy no registers. The
 * kernels for fewer columns use mma.sync instead. Both instructions give bitwise identical
 * accumulators. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_GROUP_H
#define BSMM_CUDA_SM90A_SMALL_M_GROUP_H

#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/small_m_multiply.h"

#define WGMMA_NAME  small_m_wgmma_32
#define WGMMA_HOLD  small_m_hold_32
#define WGMMA_WORDS 1
#define WGMMA_N     32
#define WGMMA_SHAPE "m64n32k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  small_m_wgmma_64
#define WGMMA_HOLD  small_m_hold_64
#define WGMMA_WORDS 1
#define WGMMA_N     64
#define WGMMA_SHAPE "m64n64k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  small_m_wgmma_96
#define WGMMA_HOLD  small_m_hold_96
#define WGMMA_WORDS 1
#define WGMMA_N     96
#define WGMMA_SHAPE "m64n96k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  small_m_wgmma_128
#define WGMMA_HOLD  small_m_hold_128
#define WGMMA_WORDS 1
#define WGMMA_N     128
#define WGMMA_SHAPE "m64n128k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  small_m_wgmma_256
#define WGMMA_HOLD  small_m_hold_256
#define WGMMA_WORDS 1
#define WGMMA_N     256
#define WGMMA_SHAPE "m64n256k16"
#define WGMMA_TYPES "f32.bf16.bf16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

static __device__ __forceinline__ void small_m_hold(const int tiles, float *sums) {
    if (tiles == 4) small_m_hold_32(sums);
    if (tiles == 8) small_m_hold_64(sums);
    if (tiles == 12) small_m_hold_96(sums);
    if (tiles == 16) small_m_hold_128(sums);
    if (tiles == 32) small_m_hold_256(sums);
}

/* Starts one wgmma instruction, which multiplies 16 elements along K: sums = (add ? sums : 0) +
 * products. `tiles` is the number of tiles of 8 columns, and a column is one row of A or one bf16
 * part of a row. */
static __device__ __forceinline__ void small_m_wgmma(const int tiles, float *sums,
                                                     const uint32_t *f, uint64_t a, uint32_t add) {
    if (tiles == 4) small_m_wgmma_32(sums, f, a, add);
    if (tiles == 8) small_m_wgmma_64(sums, f, a, add);
    if (tiles == 12) small_m_wgmma_96(sums, f, a, add);
    if (tiles == 16) small_m_wgmma_128(sums, f, a, add);
    if (tiles == 32) small_m_wgmma_256(sums, f, a, add);
}

/* These macros return the bytes of a chunk of A in shared memory, and of one of the chunk's four
 * parts. `tiles` is the number of tiles of 8 columns. A column is one row of A, or one of the bf16
 * rows whose sum is an f16 or f32 row of A. A chunk is 32 elements along K of all columns. Four
 * threads of a warp decode the weights of one row of B, 8 elements each, and the elements of a
 * chunk are stored in the order in which these threads decode. A part holds 16 bytes of each
 * column. */
#define SMALL_M_GROUP_PART(tiles)  (16 * 8 * (tiles))
#define SMALL_M_GROUP_CHUNK(tiles) (4 * SMALL_M_GROUP_PART(tiles))

/* A fragment is a thread's decoded weights for 32 elements of K, i.e. for two wgmma instructions. A
 * thread has two fragments, so that it can decode weights to one while wgmma reads the other. A
 * third or fourth fragment did not make the kernels faster. */
enum { SMALL_M_FRAGMENTS = 2 };
/* Holds the fragments of one thread in registers, from which wgmma reads them. */
typedef struct small_m_fragments {
    uint32_t f[SMALL_M_FRAGMENTS][8];
} small_m_fragments;

static __device__ __forceinline__ void small_m_hold_fragment(uint32_t f[8]) {
    ptx_wgmma_hold_words(f);
    ptx_wgmma_hold_words(f + 4);
}

static __device__ __forceinline__ void small_m_wait_products(small_m_fragments *fragments) {
    PTX_WGMMA_WAIT(0);
#pragma unroll
    for (int i = 0; i < SMALL_M_FRAGMENTS; i++)
        small_m_hold_fragment(fragments->f[i]);
}

static __device__ __forceinline__ uint64_t small_m_describe(const int tiles, uint32_t address) {
    return ptx_wgmma_descriptor_plain(address, SMALL_M_GROUP_PART(tiles), 128);
}

/* Starts the two wgmma instructions that multiply one chunk, i.e. 32 elements along K. If `add` is
 * not 0, they add the products to `sums`, else they overwrite `sums`. `a` is the wgmma descriptor
 * of the chunk of A in shared memory. `f` holds the thread's decoded weights, which wgmma reads
 * from registers. */
static __device__ __forceinline__ void small_m_multiply_chunk(const int tiles, float *sums,
                                                              const uint32_t f[8], uint64_t a,
                                                              uint32_t add) {
    const uint64_t second = a + (2 * SMALL_M_GROUP_PART(tiles) >> 4);
    ptx_wgmma_fence();
    small_m_wgmma(tiles, sums, f, a, add);
    small_m_wgmma(tiles, sums, f + 4, second, 1);
    ptx_wgmma_commit();
}

/* Decodes and multiplies one step (128 elements along K) of 16 rows of weights per warp: sums =
 * (add ? sums : 0) + products. The last wgmma instructions may still run when the function returns.
 * `words` holds two halves of 32 bytes of the thread's encoded weights. For 4-bit weights, a half
 * is a whole step, and `half` says which one is multiplied. For 6-bit and 8-bit weights, the step
 * takes both halves, and `half` is ignored. */
static __device__ __forceinline__ void
small_m_group_step(const int format, const int tiles, const int half, const small_m_words *words,
                   const small_m_factors *factors, uint64_t a, small_m_fragments *fragments,
                   float *sums, const uint32_t add, uint32_t nans[2]) {
#pragma unroll
    for (int chunk = 0; chunk < 4; chunk++) {
        const int h = small_m_is_4bit(format) ? half : chunk / 2;
        const int b = small_m_is_6bit(format) ? 0 : h;
        uint32_t *f = fragments->f[chunk % SMALL_M_FRAGMENTS], low[4], high[4];
        small_m_chunk(format, &words->w[h][0], chunk, factors->f[b][0], low, &nans[0]);
        small_m_chunk(format, &words->w[h][1], chunk, factors->f[b][1], high, &nans[1]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            f[2 * i] = low[i], f[2 * i + 1] = high[i];
        small_m_multiply_chunk(tiles, sums, f, a + (chunk * SMALL_M_GROUP_CHUNK(tiles) >> 4),
                               add || chunk > 0);
        PTX_WGMMA_WAIT(SMALL_M_FRAGMENTS - 1);
        small_m_hold_fragment(fragments->f[(chunk + 1) % SMALL_M_FRAGMENTS]);
    }
}

#endif
