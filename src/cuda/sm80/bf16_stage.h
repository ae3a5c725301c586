/* Decodes one step of an operand to bf16 in shared memory. A step is 32 elements along K. A plane
 * holds one bf16 part of each value, as rows of 32 elements, and there are as many planes as parts.
 * A value that its parts do not represent exactly is stored as NaN; the results that it affects are
 * recomputed in double. */
#ifndef BSMM_CUDA_SM80_BF16_STAGE_H
#define BSMM_CUDA_SM80_BF16_STAGE_H

#include "cuda/sm80/bf16_params.h"

/* The bytes of one plane of an operand's tile in shared memory: one bf16 per element. */
enum { BF16_PLANE = BSMM_BF16_TILE * BSMM_BF16_K * 2 };

/* A slow path. It is inlined in kernels whose register allocation a function call would
 * constrain. */
#ifndef BF16_RARE
#    define BF16_RARE __noinline__
#endif

/* Eight codes along K, one in each uint32. */
typedef struct bf16_codes {
    uint32_t c[8];
} bf16_codes;

static __device__ __forceinline__ uint32_t bf16_load16(const uint8_t *from) {
    return *(const uint16_t *)(const void *)from;
}

/* Loads 8 codes, beginning at a multiple of 8. 6-bit codes must be aligned to 2 bytes. All others
 * must be aligned to the size of the 8 codes, but at most to 16 bytes. */
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
        /* Loads the first 32 of the 48 bits of 8 codes of 6 bits. */
        w[0] = bf16_load16(from) | bf16_load16(from + 2) << 16;
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

/* Returns an element's scale, or 1 if scales are applied to accumulators instead. */
static __device__ __forceinline__ float bf16_scale_at(const bsmm_bf16_side *side, uint32_t row,
                                                      uint32_t k) {
    return side->outside ? 1 : bsmm_gpu_scale(&side->o, row, k);
}

/* Returns element times scale in fp32, for any operand. With an fp32 scale the product may have
 * more than 24 bits and is rounded once. The result is NaN if underflow loses bits. This is the
 * slow path for values that bf16_is_plain rejects. */
static __device__ BF16_RARE float bf16_value_at(const bsmm_bf16_side *side, uint32_t row,
                                                uint32_t k) {
    float element = bsmm_gpu_elem(&side->o, bsmm_gpu_code(&side->o, row, k));
    float scale = bf16_scale_at(side, row, k);
    float value = element * scale;
    bool cut = fabsf(value) < 0x1p-126f && (double)element * (double)scale != (double)value;
    return cut ? __uint_as_float(0x7fc00000u) : value;
}

/* Returns true if eight elements can be loaded at once and have one scale that cannot take their
 * products out of fp32's range. */
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

/* Truncates a value to its first 8 bits and leaves the remainder in *rest. */
static __device__ __forceinline__ uint32_t bf16_take_part(float *rest) {
    uint32_t bits = __float_as_uint(*rest) & 0xffff0000u;
    *rest = *rest - __uint_as_float(bits);
    return bits;
}

/* Splits two values into parts and packs each pair of parts in one uint32 per plane. ORs the
 * values' bits into `any`. */
static __device__ __forceinline__ void bf16_split(const int parts, float low, float high,
                                                  uint32_t words[], uint32_t *any) {
    *any |= __float_as_uint(low) | __float_as_uint(high);
#pragma unroll
    for (int part = 0; part < parts; part++) {
        uint32_t l = bf16_take_part(&low), h = bf16_take_part(&high);
        words[part] = __byte_perm(l, h, 0x7632);
    }
    /* A nonzero remainder means that the parts do not represent the value. Inf leaves NaN as its
     * remainder, which is nonzero too. */
    if (low != 0) words[0] = (words[0] & 0xffff0000u) | 0x7fc0;
    if (high != 0) words[0] = (words[0] & 0xffffu) | 0x7fc00000u;
}

/* Decodes eight values along K into all planes, 16 bytes each. Returns true if a value is nonzero.
 * With more than one plane it stores single uint32s, to limit register pressure. */
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

/* Decodes one step of a tile to shared memory, as [part][row][32]. Sets nonzero[row] if the row has
 * a nonzero value. */
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

/* Copies to shared memory the scales of one step that are applied to accumulators. A scale that is
 * so large or small that the product of two might leave fp32's range becomes NaN. */
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
