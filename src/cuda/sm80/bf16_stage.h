/* One step of an operand comes into shared memory as bf16: rows of 32 along K, in as many planes as
 * it takes parts to hold a value. What they do not hold exactly is stored as NaN, and the results
 * that it touches are summed again. */
#ifndef BSMM_CUDA_SM80_BF16_STAGE_H
#define BSMM_CUDA_SM80_BF16_STAGE_H

#include "cuda/sm80/bf16_params.h"

enum { BF16_PLANE = BSMM_BF16_TILE * BSMM_BF16_K * 2 }; /* bytes */

/* What is seldom done; inline in kernels whose registers calls would bind. */
#ifndef BF16_RARE
#    define BF16_RARE __noinline__
#endif

/* Eight codes along K, one in each word. */
typedef struct bf16_codes {
    uint32_t c[8];
} bf16_codes;

static __device__ __forceinline__ uint32_t bf16_load16(const uint8_t *from) {
    return *(const uint16_t *)(const void *)from;
}

/* 8 codes from a multiple of 8 on: their bytes are aligned to 2 for 6-bit codes, else to all of
 * them (16 bytes at most). */
static __device__ __forceinline__ bf16_codes bf16_load_together(const bsmm_gpu_operand *o,
                                                                uint32_t row, uint32_t k) {
    bf16_codes to;
    const uint8_t *from = o->data + (row * o->row_step + k) * o->bits / 8;
    uint32_t w[8];
    if (o->bits == 4) {
        w[0] = *(const uint32_t *)from;
#pragma unroll
        for (int i = 0; i < 8; i++)
            to.c[i] = w[0] >> 4 * i & 0xf;
    } else if (o->bits == 6) {
        w[0] = bf16_load16(from) | bf16_load16(from + 2) << 16; /* 32 of 48 bits */
        w[1] = bf16_load16(from + 2) >> 8 | bf16_load16(from + 4) << 8;
#pragma unroll
        for (int i = 0; i < 8; i++)
            to.c[i] = w[i / 4] >> 6 * (i % 4) & 0x3f;
    } else if (o->bits == 8) {
        uint2 pair = *(const uint2 *)from;
#pragma unroll
        for (int i = 0; i < 8; i++)
            to.c[i] = (i < 4 ? pair.x : pair.y) >> 8 * (i % 4) & 0xff;
    } else {
        uint4 low = *(const uint4 *)from;
        w[0] = low.x, w[1] = low.y, w[2] = low.z, w[3] = low.w;
        if (o->bits == 32) {
            uint4 high = *(const uint4 *)(from + 16);
            w[4] = high.x, w[5] = high.y, w[6] = high.z, w[7] = high.w;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            to.c[i] = o->bits == 32 ? w[i] : w[i / 2] >> 16 * (i % 2) & 0xffff;
    }
    return to;
}

/* Scales are 1 where they stay outside. */
static __device__ __forceinline__ float bf16_scale_at(const bsmm_bf16_side *side, uint32_t row,
                                                      uint32_t k) {
    return side->outside ? 1 : bsmm_gpu_scale(&side->o, row, k);
}

/* Element times scale in fp32, rounded once where it has more than 24 bits (fp32 scales); NaN where
 * fp32's range cuts bits off. Any operand; for what the fast way below does not take. */
static __device__ BF16_RARE float bf16_value_at(const bsmm_bf16_side *side, uint32_t row,
                                                uint32_t k) {
    float element = bsmm_gpu_elem(&side->o, bsmm_gpu_code(&side->o, row, k));
    float scale = bf16_scale_at(side, row, k);
    float value = element * scale;
    bool cut = fabsf(value) < 0x1p-126f && (double)element * (double)scale != (double)value;
    return cut ? __uint_as_float(0x7fc00000u) : value;
}

/* Whether eight elements come together and have one scale, which cannot take them out of fp32's
 * range. */
static __device__ __forceinline__ bool bf16_is_plain(const bsmm_bf16_side *side, uint32_t k,
                                                     uint32_t end, float scale) {
    bool unscaled = side->o.scale == BSMM_SCALE_NONE || side->outside;
    return side->together && side->one && k + 8 <= end &&
           (unscaled || (side->o.bits <= 8 && !(fabsf(scale) < 0x1p-100f)));
}

static __device__ __forceinline__ void bf16_values(const bsmm_bf16_side *side, uint32_t row,
                                                   uint32_t k, uint32_t end, float values[8]) {
    float scale = side->one ? bf16_scale_at(side, row, k) : 1;
    if (bf16_is_plain(side, k, end, scale)) {
        bf16_codes codes = bf16_load_together(&side->o, row, k);
#pragma unroll
        for (int i = 0; i < 8; i++)
            values[i] = bsmm_gpu_elem(&side->o, codes.c[i]) * scale;
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < 8; i++)
        values[i] = k + i < end ? bf16_value_at(side, row, k + i) : 0;
}

/* Truncates a value to its first 8 bits; the rest stays. */
static __device__ __forceinline__ uint32_t bf16_take_part(float *rest) {
    uint32_t bits = __float_as_uint(*rest) & 0xffff0000u;
    *rest = *rest - __uint_as_float(bits);
    return bits;
}

/* The halves of a word of each plane; `any` grows by the bits of the values. */
static __device__ __forceinline__ void bf16_split(const int parts, float low, float high,
                                                  uint32_t words[], uint32_t *any) {
    *any |= __float_as_uint(low) | __float_as_uint(high);
#pragma unroll
    for (int part = 0; part < parts; part++) {
        uint32_t l = bf16_take_part(&low), h = bf16_take_part(&high);
        words[part] = __byte_perm(l, h, 0x7632);
    }
    /* Inf leaves NaN behind, which is not 0 either. */
    if (low != 0) words[0] = (words[0] & 0xffff0000u) | 0x7fc0;
    if (high != 0) words[0] = (words[0] & 0xffffu) | 0x7fc00000u;
}

/* Eight values along K into all planes, 16 bytes of each; whether any is not 0. Where there are
 * more planes than one, words are stored one by one: registers are scarce then. */
static __device__ __forceinline__ bool bf16_convert(const int parts, const bsmm_bf16_side *side,
                                                    uint32_t row, uint32_t k, uint32_t end,
                                                    uint8_t *to) {
    float values[8];
    uint32_t any = 0, one[4];
    bf16_values(side, row, k, end, values);
#pragma unroll
    for (uint32_t i = 0; i < 8; i += 2) {
        uint32_t words[3];
        bf16_split(parts, values[i], values[i + 1], words, &any);
        one[i / 2] = words[0];
        if (parts == 1) continue;
#pragma unroll
        for (int part = 0; part < parts; part++)
            *(uint32_t *)(to + part * BF16_PLANE + i * 2) = words[part];
    }
    if (parts == 1) *(uint4 *)to = make_uint4(one[0], one[1], one[2], one[3]);
    return any & 0x7fffffffu;
}

/* One step of a tile, [part][row][32]; nonzero[row] is set where there is a value other than 0. */
static __device__ __forceinline__ void bf16_stage(const int parts, const bsmm_bf16_side *side,
                                                  uint32_t first_row, uint32_t k, uint32_t end,
                                                  uint8_t *to, uint32_t *nonzero) {
    uint32_t row = side->by_rows ? threadIdx.x / 4 : threadIdx.x % BSMM_BF16_TILE;
    uint32_t eighth = side->by_rows ? threadIdx.x % 4 : threadIdx.x / BSMM_BF16_TILE;
    uint8_t *at = to + row * BSMM_BF16_K * 2 + eighth * 16;
    if (first_row + row < side->rows && k + eighth * 8 < end) {
        if (bf16_convert(parts, side, first_row + row, k + eighth * 8, end, at)) nonzero[row] = 1;
        return;
    }
#pragma unroll
    for (int part = 0; part < parts; part++)
        *(uint4 *)(at + part * BF16_PLANE) = make_uint4(0, 0, 0, 0);
}

/* The scales that stay outside, of one step. What is so large or small that a product of two could
 * leave fp32's range becomes NaN. */
static __device__ __forceinline__ void
bf16_stage_factors(const bsmm_bf16_side *side, uint32_t first_row, uint32_t k, float *to) {
    for (uint32_t i = threadIdx.x; i < BSMM_BF16_TILE; i += BSMM_BF16_THREADS) {
        float scale = 1;
        if (side->outside && first_row + i < side->rows)
            scale = bsmm_gpu_scale(&side->o, first_row + i, k);
        float magnitude = fabsf(scale);
        bool tame = magnitude == 0 || (magnitude >= 0x1p-62f && magnitude <= 0x1p62f);
        to[i] = tame ? scale : __uint_as_float(0x7fc00000u);
    }
}

#endif
