/* Converts A for the small-M kernels (few rows of A). The result is an image of A: bf16 values in
 * the layout that the main loop reads.
 *
 * A column is one row of A. If A is f16 or f32, each row of A is split into two or three rows of
 * bf16 numbers, and each of these is a column. A step is 128 elements along K, and a chunk is 8
 * elements, i.e. 16 bytes.
 *
 * Four threads share a row of an mma fragment. The main loop reads 64 bytes of a column at a time:
 * one chunk for each of the four threads. If the kernel multiplies by mma.sync, the image stores
 * these four chunks one after another. If it multiplies by wgmma, the 64 bytes are divided into
 * four pieces of 16 bytes, and piece i has 32-bit word i of each of the four chunks. The image then
 * stores piece 0 of all columns, followed by piece 1 of all columns, and so on.
 *
 * A value that does not fit in bf16 is stored as NaN. All results of that row of A then become NaN,
 * and the epilogue recomputes them in double. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_PREPARE_H
#define BSMM_CUDA_SM90A_SMALL_M_PREPARE_H

#include "cuda/ptx/halves.h"
#include "cuda/sm90a/small_m_stage.h"

/* The main loop decodes weights in pairs. It puts two elements that are 4 apart along K (4-bit and
 * 6-bit weights, `narrow`) or 2 apart (8-bit weights) into one 32-bit word (small_m_weights.h). The
 * elements of A must have the same order. This function reorders eight bf16 values of A from the
 * order along K to the order of decoded weights. */
static __device__ __forceinline__ uint4 small_m_arrange(uint32_t narrow, uint4 w) {
    if (narrow)
        return make_uint4(__byte_perm(w.x, w.z, 0x5410), __byte_perm(w.x, w.z, 0x7632),
                          __byte_perm(w.y, w.w, 0x5410), __byte_perm(w.y, w.w, 0x7632));
    return make_uint4(__byte_perm(w.x, w.y, 0x5410), __byte_perm(w.x, w.y, 0x7632),
                      __byte_perm(w.z, w.w, 0x5410), __byte_perm(w.z, w.w, 0x7632));
}

/* Splits two f16 values into two bf16 numbers each. Returns the high numbers and stores the low
 * ones in *low. The high number has the value's first 8 significant bits, and the low number has
 * the other 3, so the split is exact. */
static __device__ __forceinline__ uint32_t small_m_split_f16(uint32_t codes, uint32_t *low) {
    float x = ptx_f32_of_f16(codes & 0xffff), y = ptx_f32_of_f16(codes >> 16);
    uint32_t xh = __float_as_uint(x) & 0xffff0000u, yh = __float_as_uint(y) & 0xffff0000u;
    *low = ptx_bf16x2_of_f32(y - __uint_as_float(yh), x - __uint_as_float(xh));
    return __byte_perm(xh, yh, 0x7632);
}

/* Decodes two e4m3 codes to bf16 and multiplies them by a scale. Each code lies in the high byte of
 * a 16-bit half of `spread`. */
static __device__ __forceinline__ uint32_t decode_e4m3_pair(uint32_t spread, uint32_t scale) {
    uint32_t bits = (spread >> 4 & 0x07f007f0u) | (spread & 0x80008000u);
    /* Both bf16 numbers of the word are multiplied by 2^120, which corrects the exponent bias of
     * the decoded e4m3 elements. */
    return ptx_mul_bf16x2(ptx_mul_bf16x2(bits, 0x7b807b80u), scale);
}

/* Returns an e8m0 scale as bf16 in both 16-bit halves. A scale below 2^-124 becomes NaN, because
 * its product with some e4m3 values does not fit in bf16. */
static __device__ __forceinline__ uint32_t small_m_fold_scale(uint32_t code) {
    return code < 3 || code == 255 ? 0x7fc07fc0u : code * 0x00800080u;
}

/* Decodes eight e4m3 elements of A that share one e8m0 scale to bf16, and multiplies them by the
 * scale. */
static __device__ __forceinline__ uint4 decode_values_e4m3(uint2 w, uint32_t scale_code) {
    uint32_t nans = (bsmm_e4m3_nans(w.x) | bsmm_e4m3_nans(w.y)) & 0x80808080u;
    uint32_t scale = nans ? 0x7fc07fc0u : small_m_fold_scale(scale_code);
    return make_uint4(decode_e4m3_pair(__byte_perm(w.x, 0, 0x1404), scale),
                      decode_e4m3_pair(__byte_perm(w.x, 0, 0x3424), scale),
                      decode_e4m3_pair(__byte_perm(w.y, 0, 0x1404), scale),
                      decode_e4m3_pair(__byte_perm(w.y, 0, 0x3424), scale));
}

/* Decodes eight e2m1 elements of A that share one scale to bf16, and multiplies them by the scale,
 * which is e8m0 or e4m3. bf16 holds each product exactly. */
static __device__ __forceinline__ uint4 decode_values_e2m1(uint32_t codes, uint32_t scale_kind,
                                                           uint32_t scale_code) {
    uint32_t scale = 0x3f803f80u, pairs[4];
    if (scale_kind == BSMM_SCALE_E8M0) scale = small_m_fold_scale(scale_code);
    if (scale_kind == BSMM_SCALE_E4M3)
        scale = (scale_code & 0x7f) == 0x7f
                    ? 0x7fc07fc0u
                    : decode_e4m3_pair(scale_code * 0x01000100u, 0x3f803f80u);
    bsmm_e2m1_pairs(codes, pairs);
#pragma unroll
    for (int i = 0; i < 4; i++)
        /* 2^126 in both bf16 halves corrects the exponent bias of decoded e2m1. */
        pairs[i] = ptx_mul_bf16x2(ptx_mul_bf16x2(pairs[i], 0x7e807e80u), scale);
    /* pairs[i] holds elements i and i + 4 of the eight elements. */
    return make_uint4(
        __byte_perm(pairs[0], pairs[1], 0x5410), __byte_perm(pairs[2], pairs[3], 0x5410),
        __byte_perm(pairs[0], pairs[1], 0x7632), __byte_perm(pairs[2], pairs[3], 0x7632));
}

/* Splits one value of A, of any format, into p->parts bf16 numbers with 8 significant bits each,
 * and returns the bits of number `part`. The value includes its block scale, but not an fp32 scale,
 * because the main loop multiplies sums by fp32 scales. If the sum of the bf16 numbers is not
 * exactly the value, number 0 becomes NaN, so that the results become NaN and are computed again in
 * double. */
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

/* Stores eight bf16 values of a column of A, i.e. chunk number `chunk` along K, in A's image (A in
 * the order in which the main loop reads it). A column is one row of A, or one bf16 part of a row.
 * For mma.sync, the 16 bytes stay together, because one thread of the main loop reads them at once.
 * For wgmma, the image of a step consists of parts with 16 bytes for each column, and the four
 * words of the chunk go to four of these parts. */
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

/* Splits eight f16 values of a row of A into two bf16 numbers each. Returns the high numbers, and
 * stores the low numbers in *low. The kernels multiply the low numbers like another row of A. */
static __device__ __forceinline__ uint4 small_m_read_f16(uint4 v, uint4 *low) {
    uint4 high;
    high.x = small_m_split_f16(v.x, &low->x);
    high.y = small_m_split_f16(v.y, &low->y);
    high.z = small_m_split_f16(v.z, &low->z);
    high.w = small_m_split_f16(v.w, &low->w);
    return high;
}

/* Holds eight values of a row of A in their stored format, and the e8m0 or e4m3 code of
 * their scale. */
typedef struct small_m_raw {
    uint4 codes;
    uint32_t scale;
} small_m_raw;

/* Loads eight values of a row of A, beginning with element k. `source` is p->source, and a constant
 * in kernels for one source. Values past the end of K are zeros. If `source` is no constant,
 * kernels whose A is never e2m1 pass false for `e2m1`, so that the compiler leaves out the code for
 * it. */
static __device__ __forceinline__ void small_m_load(const bsmm_small_m_params *p,
                                                    const uint32_t source, const bool e2m1,
                                                    uint32_t row, uint32_t k, small_m_raw *to) {
    const uint8_t *from = p->a.data + row * p->a_pitch;
    to->codes = make_uint4(0, 0, 0, 0);
    to->scale = 127;
    if (k >= p->k) {
        /* Past the end of K, elements are zeros, and their scale must be finite, because 0 times
         * NaN is NaN. Code 64 is finite in e8m0 and in e4m3. */
        to->scale = 64;
        return;
    }
    if (source == BSMM_SMALL_M_E4M3) {
        uint2 codes = *(const uint2 *)(from + k);
        to->codes.x = codes.x;
        to->codes.y = codes.y;
        if (p->a.scale == BSMM_SCALE_E8M0) to->scale = p->a.scales[row * p->a_scale_pitch + k / 32];
    } else if (e2m1 && source == BSMM_SMALL_M_E2M1) {
        const uint32_t block = p->a.scale == BSMM_SCALE_E8M0 ? 32 : 16;
        to->codes.x = *(const uint32_t *)(from + k / 2);
        to->scale = p->a.scales[row * p->a_scale_pitch + k / block];
    } else {
        to->codes = *(const uint4 *)(from + k * 2);
    }
}

/* Converts eight values of A to bf16. If A is f16, each value is split into two bf16 numbers, whose
 * sum is the value: parts[0] gets the high ones, and parts[1] the low ones. In all other formats
 * parts[0] gets the values, and parts[1] is 0. */
static __device__ __forceinline__ void small_m_convert(const bsmm_small_m_params *p,
                                                       const uint32_t source, const bool e2m1,
                                                       const small_m_raw *raw, uint4 parts[2]) {
    parts[0] = raw->codes;
    parts[1] = make_uint4(0, 0, 0, 0);
    if (source == BSMM_SMALL_M_F16)
        parts[0] = small_m_read_f16(raw->codes, &parts[1]);
    else if (source == BSMM_SMALL_M_E4M3)
        parts[0] = decode_values_e4m3(make_uint2(raw->codes.x, raw->codes.y), raw->scale);
    else if (e2m1 && source == BSMM_SMALL_M_E2M1)
        parts[0] = decode_values_e2m1(raw->codes.x, p->a.scale, raw->scale);
}

/* Splits eight values of A, of any format, into p->parts bf16 numbers each, and returns number
 * `part` of each. */
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

/* Converts one chunk (8 elements along K) of a row of A, in any format, to bf16. Stores it in A's
 * image, i.e. in the order in which the main loop reads A. Returns nonzero if a value is
 * nonzero. */
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

/* Converts one chunk (8 elements along K) of a row of A to bf16 and stores it in A's image, i.e. in
 * the order in which the main loop reads A. Elements past the end of K become zeros. Returns
 * nonzero if a value is nonzero. */
static __device__ __forceinline__ uint32_t small_m_prepare_chunk(const bsmm_small_m_params *p,
                                                                 uint32_t row, uint32_t chunk) {
    const uint32_t column = row * p->parts;
    if (p->source == BSMM_SMALL_M_ANY) return small_m_prepare_any(p, row, chunk);
    small_m_raw raw;
    uint4 parts[2];
    small_m_load(p, p->source, true, row, chunk * 8, &raw);
    small_m_convert(p, p->source, true, &raw, parts);
    small_m_store_chunk(p, chunk, column, parts[0]);
    if (p->parts == 2) small_m_store_chunk(p, chunk, column + 1, parts[1]);
    return small_m_magnitude(parts[0]) | small_m_magnitude(parts[1]);
}

/* Stores the fp32 scale of a row of A for one step of K (128 elements). If each value is the sum of
 * several bf16 parts, the scale is stored once for each part. */
static __device__ __forceinline__ void small_m_prepare_scale(const bsmm_small_m_params *p,
                                                             uint32_t row, uint32_t step) {
    float scale = 1;
    if (p->a.scale == BSMM_SCALE_F32)
        scale = small_m_tame(bsmm_gpu_scale(&p->a, row, step * BSMM_SMALL_M_K));
    for (uint32_t part = 0; part < p->parts; part++)
        p->a_image_scales[step * p->scale_columns + row * p->parts + part] = scale;
}

#endif
