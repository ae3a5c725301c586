/* This is the inner loop of the mixed-input kernels (mixed_kernels.h). A step is 128 elements along
 * K, and a chunk is 32. A warpgroup decodes the next chunk of weights while wgmma multiplies the
 * current one. */
#ifndef BSMM_CUDA_SM90A_MIXED_MULTIPLY_H
#define BSMM_CUDA_SM90A_MIXED_MULTIPLY_H

#include "cuda/ptx/arith.h"
#include "cuda/sm90a/mixed_weights.h"
#include "cuda/sm90a/small_m_group.h"

#define WGMMA_NAME  mixed_wgmma_f16_32
#define WGMMA_HOLD  mixed_hold_f16_32
#define WGMMA_WORDS 1
#define WGMMA_N     32
#define WGMMA_SHAPE "m64n32k16"
#define WGMMA_TYPES "f32.f16.f16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  mixed_wgmma_f16_64
#define WGMMA_HOLD  mixed_hold_f16_64
#define WGMMA_WORDS 1
#define WGMMA_N     64
#define WGMMA_SHAPE "m64n64k16"
#define WGMMA_TYPES "f32.f16.f16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  mixed_wgmma_f16_96
#define WGMMA_HOLD  mixed_hold_f16_96
#define WGMMA_WORDS 1
#define WGMMA_N     96
#define WGMMA_SHAPE "m64n96k16"
#define WGMMA_TYPES "f32.f16.f16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  mixed_wgmma_f16_128
#define WGMMA_HOLD  mixed_hold_f16_128
#define WGMMA_WORDS 1
#define WGMMA_N     128
#define WGMMA_SHAPE "m64n128k16"
#define WGMMA_TYPES "f32.f16.f16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

#define WGMMA_NAME  mixed_wgmma_f16_256
#define WGMMA_HOLD  mixed_hold_f16_256
#define WGMMA_WORDS 1
#define WGMMA_N     256
#define WGMMA_SHAPE "m64n256k16"
#define WGMMA_TYPES "f32.f16.f16"
#define WGMMA_TAIL  ", 1, 1, 0"
#include "cuda/ptx/wgmma_one.h"

/* MIXED_CHUNKS is the number of chunks (32 elements along K) in a step (128 elements along K). */
enum { MIXED_CHUNKS = 4 };

/* Decodes four e4m3 codes to f16. NaN stays NaN. */
static __device__ __forceinline__ void mixed_four_halves(uint32_t codes, uint32_t pairs[2]) {
    pairs[0] = ptx_f16x2_of_e4m3x2(codes & 0xffff);
    pairs[1] = ptx_f16x2_of_e4m3x2(codes >> 16);
}

/* Decodes 8 weights of one row of B to f16 and multiplies them by their scales. The weights are
 * those that this thread multiplies in chunk number `chunk` (32 elements of K) of a step. pairs[i]
 * receives two f16 numbers. In B, the second one lies 1 element after the first with 8-bit weights,
 * 2 elements with 4-bit weights and 4 elements with 6-bit weights, because the instructions that
 * decode a word of codes separate the codes in this way. */
static __device__ __forceinline__ void mixed_chunk_half(const int format, const uint4 *w,
                                                        const int chunk, const uint32_t factor[2],
                                                        uint32_t pairs[4]) {
    if (small_m_is_4bit(format)) {
        uint32_t codes[2], even[2], odd[2];
        bsmm_e2m1_to_e4m3(small_m_word(w, chunk), codes);
        mixed_four_halves(codes[0], even);
        mixed_four_halves(codes[1], odd);
        pairs[0] = even[0], pairs[1] = odd[0], pairs[2] = even[1], pairs[3] = odd[1];
    } else if (small_m_is_6bit(format)) {
        const uint2 six = small_m_six(w, chunk);
        if (format == SMALL_M_MXFP6_E2M3)
            bsmm_e2m3_halves(six.x, six.y, pairs);
        else
            bsmm_e3m2_halves(six.x, six.y, pairs);
    } else {
        mixed_four_halves(small_m_word(w, 2 * (chunk % 2)), pairs);
        mixed_four_halves(small_m_word(w, 2 * (chunk % 2) + 1), pairs + 2);
    }
    /* The epilogue multiplies sums by the scale of a whole row, so this code must not multiply
     * weights by it. */
    if (format == SMALL_M_FP8_ROWS) return;
    const uint32_t f = factor[format == SMALL_M_NVFP4 ? chunk / 2 : 0];
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = bsmm_ptx_mul_f16x2(pairs[i], f);
}

/* Starts one wgmma instruction, which multiplies 16 elements along K: sums = (add ? sums : 0) +
 * products. The operands are f16, and `tiles` is the number of tiles of 8 columns. */
static __device__ __forceinline__ void
mixed_wgmma_f16(const int tiles, float *sums, const uint32_t f[4], uint64_t a, uint32_t add) {
    if (tiles == 4) mixed_wgmma_f16_32(sums, f, a, add);
    if (tiles == 8) mixed_wgmma_f16_64(sums, f, a, add);
    if (tiles == 12) mixed_wgmma_f16_96(sums, f, a, add);
    if (tiles == 16) mixed_wgmma_f16_128(sums, f, a, add);
    if (tiles == 32) mixed_wgmma_f16_256(sums, f, a, add);
}

/* Starts the two wgmma instructions that multiply one chunk, i.e. 32 elements along K. They compute
 * sums = (add ? sums : 0) + products. The operands are f16 if `half` is true. Otherwise they are
 * bf16, and small_m_multiply_chunk starts the instructions. */
static __device__ __forceinline__ void mixed_multiply_chunk(const bool half, const int tiles,
                                                            float *sums, const uint32_t f[8],
                                                            uint64_t a, uint32_t add) {
    if (!half) {
        small_m_multiply_chunk(tiles, sums, f, a, add);
        return;
    }
    ptx_wgmma_fence();
    mixed_wgmma_f16(tiles, sums, f, a, add);
    mixed_wgmma_f16(tiles, sums, f + 4, a + (2 * SMALL_M_GROUP_PART(tiles) >> 4), 1);
    ptx_wgmma_commit();
}

/* Decodes the thread's weights of one chunk (32 elements along K), 8 of each of two rows of B, to
 * the registers `f`, from which wgmma reads them. The weights become f16 if `to_half` is true, else
 * bf16. If e4m3 becomes bf16, bit 7 of a byte of nans[i] is set if a weight of row i is NaN. */
static __device__ __forceinline__ void mixed_decode(const int format, const bool to_half,
                                                    const int chunk, const small_m_words *words,
                                                    const small_m_factors *factors, uint32_t f[8],
                                                    uint32_t nans[2]) {
    const int half = small_m_is_4bit(format) ? 0 : chunk / 2;
    const int block = small_m_is_6bit(format) ? 0 : half;
    uint32_t low[4], high[4];
    if (to_half) {
        mixed_chunk_half(format, &words->w[half][0], chunk, factors->f[block][0], low);
        mixed_chunk_half(format, &words->w[half][1], chunk, factors->f[block][1], high);
    } else {
        small_m_chunk(format, &words->w[half][0], chunk, factors->f[block][0], low, &nans[0]);
        small_m_chunk(format, &words->w[half][1], chunk, factors->f[block][1], high, &nans[1]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        f[2 * i] = low[i], f[2 * i + 1] = high[i];
}

#endif
