/* Prepares A for the small-M kernels: a separate kernel converts it once to an image in the layout
 * that they read.
 *
 * A column is a row of A, or one of the parts into which its values are split. A step is 128
 * elements along K, and a chunk is 8. For each step, chunk and column the image has 4 x 16 bytes,
 * one for each of the 4 threads that share a row of a fragment. For wgmma, 4 bytes of each of these
 * threads are adjacent, so a chunk consists of 4 parts with 16 bytes for each column.
 *
 * A value that does not fit in bf16 is stored as NaN. Its row's results become NaN and are then
 * recomputed in double. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_PREPARE_H
#define BSMM_CUDA_SM90A_SMALL_M_PREPARE_H

#include "cuda/ptx/halves.h"
#include "cuda/sm90a/small_m_stage.h"

/* Reorders eight bf16 values, from the order of K to the pairs in which weights are decoded. */
static __device__ __forceinline__ uint4 small_m_arrange(uint32_t narrow, uint4 w) {
    if (narrow)
        return make_uint4(__byte_perm(w.x, w.z, 0x5410), __byte_perm(w.x, w.z, 0x7632),
                          __byte_perm(w.y, w.w, 0x5410), __byte_perm(w.y, w.w, 0x7632));
    return make_uint4(__byte_perm(w.x, w.y, 0x5410), __byte_perm(w.x, w.y, 0x7632),
                      __byte_perm(w.z, w.w, 0x5410), __byte_perm(w.z, w.w, 0x7632));
}

/* Splits two f16 values into two bf16 parts each. Returns the high parts, which are truncated, and
 * stores the remainders in *low. The parts have 8 and 3 bits of mantissa, so the split is exact. */
static __device__ __forceinline__ uint32_t small_m_split_f16(uint32_t codes, uint32_t *low) {
    float x = ptx_f32_of_f16(codes & 0xffff), y = ptx_f32_of_f16(codes >> 16);
    uint32_t xh = __float_as_uint(x) & 0xffff0000u, yh = __float_as_uint(y) & 0xffff0000u;
    *low = ptx_bf16x2_of_f32(y - __uint_as_float(yh), x - __uint_as_float(xh));
    return __byte_perm(xh, yh, 0x7632);
}

/* Decodes two e4m3 codes, each of which lies in the high byte of a 16-bit half. */
static __device__ __forceinline__ uint32_t decode_e4m3_pair(uint32_t spread, uint32_t scale) {
    uint32_t bits = (spread >> 4 & 0x07f007f0u) | (spread & 0x80008000u);
    /* 2^120 in both bf16 halves corrects the exponent bias. */
    return ptx_mul_bf16x2(ptx_mul_bf16x2(bits, 0x7b807b80u), scale);
}

/* Returns an e8m0 scale as bf16 in both halves. A scale below 2^-124 becomes NaN, because some
 * products with it do not fit in bf16. */
static __device__ __forceinline__ uint32_t small_m_fold_scale(uint32_t code) {
    return code < 3 || code == 255 ? 0x7fc07fc0u : code * 0x00800080u;
}

/* Decodes eight e4m3 codes that lie in one scale block. */
static __device__ __forceinline__ uint4 decode_values_e4m3(uint2 w, uint32_t scale_code) {
    uint32_t nans = (bsmm_e4m3_nans(w.x) | bsmm_e4m3_nans(w.y)) & 0x80808080u;
    uint32_t scale = nans ? 0x7fc07fc0u : small_m_fold_scale(scale_code);
    return make_uint4(decode_e4m3_pair(__byte_perm(w.x, 0, 0x1404), scale),
                      decode_e4m3_pair(__byte_perm(w.x, 0, 0x3424), scale),
                      decode_e4m3_pair(__byte_perm(w.y, 0, 0x1404), scale),
                      decode_e4m3_pair(__byte_perm(w.y, 0, 0x3424), scale));
}

/* Returns part `part` of one value of any format. A part has 8 bits of mantissa. If the parts
 * together do not represent the value, the first part becomes NaN. fp32 scales are not applied
 * here. */
static __device__ __forceinline__ uint32_t small_m_split(const bsmm_small_m_params *p, uint32_t row,
                                                         uint32_t k, uint32_t part) {
    float rest = bsmm_gpu_elem(&p->a, bsmm_gpu_code(&p->a, row, k));
    if (p->a.scale != BSMM_SCALE_F32) rest *= bsmm_gpu_scale(&p->a, row, k);
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < p->parts; i++) {
        uint32_t piece = __float_as_uint(rest) & 0xffff0000u;
        rest -= __uint_as_float(piece);
        if (i == part) wanted = piece >> 16;
    }
    return rest == 0 || part > 0 ? wanted : 0x7fc0;
}

static __device__ __noinline__ uint32_t small_m_split_pair(const bsmm_small_m_params *p,
                                                           uint32_t row, uint32_t k,
                                                           uint32_t part) {
    uint32_t low = k < p->k ? small_m_split(p, row, k, part) : 0;
    uint32_t high = k + 1 < p->k ? small_m_split(p, row, k + 1, part) : 0;
    return low | high << 16;
}

/* Stores a chunk of 8 elements along K of a column in the image. Its four words go together to one
 * thread of the main loop. For wgmma they go to four 16-byte parts, each of which holds all
 * columns. */
static __device__ __forceinline__ void
small_m_store_chunk(const bsmm_small_m_params *p, uint32_t chunk, uint32_t column, uint4 v) {
    uint32_t inner = chunk % 16;
    uint32_t fragment = p->narrow ? inner % 4 : inner / 8 * 2 + inner % 2;
    uint32_t thread = p->narrow ? inner / 4 : inner / 2 % 4;
    uint8_t *to = p->a_image + ((uint64_t)(chunk / 16) * 4 + fragment) * p->columns * 64;
    v = small_m_arrange(p->narrow, v);
    if (!p->for_wgmma) {
        *(uint4 *)(to + column * 64 + thread * 16) = v;
        return;
    }
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    to += column * 16 + thread * 4;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++, to += p->columns * 16)
        *(uint32_t *)to = words[i];
}

/* Splits eight f16 values. The second parts form the next column. */
static __device__ __forceinline__ uint4 small_m_read_f16(uint4 v, uint4 *low) {
    uint4 high;
    high.x = small_m_split_f16(v.x, &low->x);
    high.y = small_m_split_f16(v.y, &low->y);
    high.z = small_m_split_f16(v.z, &low->z);
    high.w = small_m_split_f16(v.w, &low->w);
    return high;
}

/* Holds eight values of a row as they are stored, and the code of their scale. */
typedef struct small_m_raw {
    uint4 codes;
    uint32_t scale;
} small_m_raw;

/* Loads eight values from column k on. They are zeros past the end of K. */
static __device__ __forceinline__ void small_m_load(const bsmm_small_m_params *p, uint32_t row,
                                                    uint32_t k, small_m_raw *to) {
    const uint8_t *from = p->a.data + row * p->a_pitch;
    to->codes = make_uint4(0, 0, 0, 0);
    to->scale = 127;
    if (k >= p->k) return;
    if (p->source == BSMM_SMALL_M_E4M3) {
        uint2 codes = *(const uint2 *)(from + k);
        to->codes.x = codes.x;
        to->codes.y = codes.y;
        if (p->a.scale == BSMM_SCALE_E8M0) to->scale = p->a.scales[row * p->a_scale_pitch + k / 32];
    } else {
        to->codes = *(const uint4 *)(from + k * 2);
    }
}

/* Converts eight values to bf16: parts[0] and, for f16, parts[1]. */
static __device__ __forceinline__ void small_m_convert(const bsmm_small_m_params *p,
                                                       const small_m_raw *raw, uint4 parts[2]) {
    parts[0] = raw->codes;
    parts[1] = make_uint4(0, 0, 0, 0);
    if (p->source == BSMM_SMALL_M_F16)
        parts[0] = small_m_read_f16(raw->codes, &parts[1]);
    else if (p->source == BSMM_SMALL_M_E4M3)
        parts[0] = decode_values_e4m3(make_uint2(raw->codes.x, raw->codes.y), raw->scale);
}

/* Returns part `part` of eight values of any format. */
static __device__ __forceinline__ uint4 small_m_read_any(const bsmm_small_m_params *p, uint32_t row,
                                                         uint32_t k, uint32_t part) {
    uint4 v;
    v.x = small_m_split_pair(p, row, k, part);
    v.y = small_m_split_pair(p, row, k + 2, part);
    v.z = small_m_split_pair(p, row, k + 4, part);
    v.w = small_m_split_pair(p, row, k + 6, part);
    return v;
}

static __device__ __forceinline__ uint32_t small_m_magnitude(uint4 v) {
    return (v.x | v.y | v.z | v.w) & 0x7fff7fffu;
}

/* Prepares one chunk of one row, for any format of A. */
static __device__ __noinline__ uint32_t small_m_prepare_any(const bsmm_small_m_params *p,
                                                            uint32_t row, uint32_t chunk) {
    uint32_t any = 0;
    for (uint32_t part = 0; part < p->parts; part++) {
        uint4 v = small_m_read_any(p, row, chunk * 8, part);
        small_m_store_chunk(p, chunk, row * p->parts + part, v);
        any |= small_m_magnitude(v);
    }
    return any;
}

/* Prepares one chunk of one row, with zeros past the end of K. Returns nonzero if a value is
 * nonzero. */
static __device__ __forceinline__ uint32_t small_m_prepare_chunk(const bsmm_small_m_params *p,
                                                                 uint32_t row, uint32_t chunk) {
    const uint32_t column = row * p->parts;
    if (p->source == BSMM_SMALL_M_ANY) return small_m_prepare_any(p, row, chunk);
    small_m_raw raw;
    uint4 parts[2];
    small_m_load(p, row, chunk * 8, &raw);
    small_m_convert(p, &raw, parts);
    small_m_store_chunk(p, chunk, column, parts[0]);
    if (p->parts == 2) small_m_store_chunk(p, chunk, column + 1, parts[1]);
    return small_m_magnitude(parts[0]) | small_m_magnitude(parts[1]);
}

/* Stores the fp32 scale of a row and step, for each column of the row. */
static __device__ __forceinline__ void small_m_prepare_scale(const bsmm_small_m_params *p,
                                                             uint32_t row, uint32_t step) {
    float scale = 1;
    if (p->a.scale == BSMM_SCALE_F32)
        scale = small_m_tame(bsmm_gpu_scale(&p->a, row, step * BSMM_SMALL_M_K));
    for (uint32_t part = 0; part < p->parts; part++)
        p->a_image_scales[step * p->scale_columns + row * p->parts + part] = scale;
}

#endif
