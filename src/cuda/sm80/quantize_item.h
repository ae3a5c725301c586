/* Quantizes an item, i.e. 16 values along a row, which one thread converts. */
#ifndef BSMM_CUDA_SM80_QUANTIZE_ITEM_H
#define BSMM_CUDA_SM80_QUANTIZE_ITEM_H

#include "cuda/sm80/quantize_e2m1.h"
#include "cuda/sm80/quantize_scale.h"

enum { QUANTIZE_THREADS = 256 };

static __device__ __forceinline__ void load_item(int words, const void *from, uint32_t *raw) {
    for (int i = 0; i < words / 4; i++) {
        uint4 v = __ldg((const uint4 *)from + i);
        raw[4 * i] = v.x, raw[4 * i + 1] = v.y, raw[4 * i + 2] = v.z, raw[4 * i + 3] = v.w;
    }
}

/* Loads the first n of a thread's 16 values of a row. Sets the other values to 0. */
static __device__ __forceinline__ void load_part(int bytes, const void *from, uint32_t n,
                                                 uint32_t *raw) {
    for (int i = 0; i < 16; i++) {
        uint32_t value = 0;
        if ((uint32_t)i < n)
            value =
                bytes == 4 ? __ldg((const uint32_t *)from + i) : __ldg((const uint16_t *)from + i);
        if (bytes == 4)
            raw[i] = value;
        else
            raw[i / 2] = i % 2 ? raw[i / 2] | value << 16 : value;
    }
}

/* Returns value i of a thread's 16 values as f32. */
static __device__ __forceinline__ float item_value(uint32_t elem, const uint32_t *raw, int i) {
    if (elem == BSMM_LANE_F32) return __uint_as_float(raw[i]);
    if (elem == BSMM_LANE_F16) return bsmm_lane_f16(raw[i / 2] >> 16 * (i % 2) & 0xffff);
    return __uint_as_float(i % 2 ? raw[i / 2] & 0xffff0000u : raw[i / 2] << 16);
}

/* Returns the largest magnitude of 16 values as fp32 bits. Magnitudes above `limit`, e.g. NaN, are
 * ignored. */
static __device__ __forceinline__ uint32_t item_amax_below(uint32_t elem, const uint32_t *raw,
                                                           uint32_t limit) {
    uint32_t amax = 0;
    for (int i = 0; i < 16; i++) {
        uint32_t a = __float_as_uint(item_value(elem, raw, i)) & 0x7fffffffu;
        amax = max(amax, a > limit ? 0 : a);
    }
    return amax;
}

/* Returns the largest magnitude of 16 values as fp32 bits. Values of 16 bits are compared as
 * integers without their sign bits, because these integers have the same order as the
 * magnitudes. */
static __device__ __forceinline__ uint32_t item_amax(uint32_t elem, const uint32_t *raw) {
    uint32_t most = 0;
    for (int i = 0; i < 16 && elem == BSMM_LANE_F32; i++)
        most = max(most, raw[i] & 0x7fffffffu);
    if (elem == BSMM_LANE_F32) return most;
    for (int i = 0; i < 8; i++)
        most = __vmaxu2(most, raw[i] & 0x7fff7fffu);
    most = max(most >> 16, most & 0xffff);
    return elem == BSMM_LANE_BF16 ? most << 16 : __float_as_uint(bsmm_lane_f16(most));
}

/* Returns true if the fast functions for encoding may be used for a block: all its values must be
 * finite, and the factor that multiplies them must be a normal number. `amax` has the fp32 bits of
 * the block's largest magnitude. */
static __device__ __forceinline__ bool is_tame(uint32_t amax, float factor) {
    uint32_t a = __float_as_uint(factor) & 0x7fffffffu;
    return amax < 0x7f800000u && a - 0x00800000u < 0x7f000000u;
}

/* Returns true if the GPU's architecture has instructions (cvt) that convert to 8-bit floats. */
static __device__ __forceinline__ bool has_conversions(void) {
#if __CUDA_ARCH__ >= 890
    return true;
#else
    return false;
#endif
}

/* Encodes four values, one result per byte, by the rules of any recipe. This is the slow path for
 * rare blocks and rare recipes. The function is not inlined, because its code is long. */
static __device__ __noinline__ uint32_t any_four(const bsmm_quantize_job *job, float factor,
                                                 float a, float b, float c, float d) {
    bsmm_lane_encoder e = bsmm_lane_encoder_of(job, factor);
    return bsmm_lane_encode(job, &e, a) | bsmm_lane_encode(job, &e, b) << 8 |
           bsmm_lane_encode(job, &e, c) << 16 | bsmm_lane_encode(job, &e, d) << 24;
}

/* Returns value number i of a thread's 16 values as f32. If the values are f16, they are converted
 * by one instruction, which does not keep the payload of a NaN. The caller must therefore make sure
 * that no value is NaN; item_value has no such condition. */
static __device__ __forceinline__ float tame_value(uint32_t elem, const uint32_t *raw, int i) {
    if (elem != BSMM_LANE_F16) return item_value(elem, raw, i);
    return bsmm_ptx_cvt_f32_f16((uint16_t)(raw[i / 2] >> 16 * (i % 2)));
}

/* Returns true if the fast division quotient() is correct for all values of a block. This requires
 * that the divisor `factor` and the largest quotient lie between 2^-60 and 2^60. `amax` has the
 * fp32 bits of the block's largest magnitude. */
static __device__ __forceinline__ bool divides_well(uint32_t amax, float factor) {
    int divisor = (int)(__float_as_uint(factor) >> 23 & 0xff) - 127, most = (int)(amax >> 23) - 127;
    return divisor >= -60 && divisor <= 60 && most - divisor <= 60 && most <= 60;
}

/* Multiplies or divides a thread's 16 values of one row by the factor of their block. is_tame must
 * be true for the block, i.e. all values must be finite and the factor must be normal. */
static __device__ __forceinline__ void tame_values(const bsmm_quantize_job *job, uint32_t elem,
                                                   float factor, const uint32_t *raw,
                                                   float *values) {
    if (job->steps.step == BSMM_STEP_DIVIDE) {
        float reciprocal = __frcp_rn(factor);
        for (int i = 0; i < 16; i++)
            values[i] = quotient(tame_value(elem, raw, i), factor, reciprocal);
    } else
        for (int i = 0; i < 16; i++)
            values[i] = tame_value(elem, raw, i) * factor;
}

/* Encodes a magnitude, given as fp32 bits, as e2m1 by two formulas, and takes the larger result.
 * For magnitudes of at least 1, the code is the exponent and the first mantissa bit of the rounded
 * magnitude, and the first formula gives it. To round, the constant c adds half of the last
 * mantissa bit that remains, less one unit of the dropped bits. c also corrects the exponent bias.
 * For magnitudes of at most 1, the code is twice the magnitude, rounded, and the second formula
 * gives it. Where a formula does not give the code, its result is not larger than the code, so the
 * maximum of both is the code. */
static __device__ __forceinline__ uint32_t e2m1_code(bool down, uint32_t a) {
    const uint32_t c = ((1u - 127u) << 23) + (1u << 21) - 1;
    int normal = (int)(a + c + (down ? 0 : a >> 22 & 1)) >> 22;
    /* If `down` is set, 0.25 and 0.75, which lie halfway between two e2m1 numbers, round down. */
    int small = down ? (a > 0x3e800000u) + (a > 0x3f400000u)
                     : (int)(__float_as_uint(__uint_as_float(a) + 0x1p22f) - 0x4a800000u);
    return (uint32_t)min(max(normal, min(small, 2)), 7);
}

static __device__ __forceinline__ void e2m1_codes(const bsmm_quantize_job *job, bool down,
                                                  const float *values, uint32_t *four) {
    for (int i = 0; i < 16; i++) {
        uint32_t bits = __float_as_uint(values[i]), a = bits & 0x7fffffffu;
        uint32_t code = bsmm_coder_sign(&job->coder, bits, a, e2m1_code(down, a));
        four[i / 4] = (i % 4 ? four[i / 4] : 0) | code << 8 * (i % 4);
    }
}

static __device__ __forceinline__ void coder_codes(const bsmm_quantize_job *job,
                                                   const float *values, uint32_t *four) {
    for (int i = 0; i < 16; i++) {
        uint32_t bits = __float_as_uint(values[i]), a = bits & 0x7fffffffu;
        uint32_t code = bsmm_coder_sign(&job->coder, bits, a, bsmm_coder_nearest(&job->coder, a));
        four[i / 4] = (i % 4 ? four[i / 4] : 0) | code << 8 * (i % 4);
    }
}

/* Encodes a thread's 16 values to four words with four results each, one per byte. is_tame must be
 * true for the block, i.e. all values must be finite and the factor must be normal. */
static __device__ __forceinline__ void tame_codes(const bsmm_quantize_job *job, int bits,
                                                  const float *values, uint32_t *four) {
    if (bits == 4) {
        if (job->coder.down)
            e2m1_codes(job, true, values, four);
        else
            e2m1_codes(job, false, values, four);
        return;
    }
#if __CUDA_ARCH__ >= 890
    if (bits == 8 && job->hardware) {
        for (int i = 0; i < 4; i++) {
            const float *v = values + 4 * i;
            four[i] = job->hardware == 3
                          ? bsmm_ptx_cvt_e4m3x2(v[1], v[0]) | bsmm_ptx_cvt_e4m3x2(v[3], v[2]) << 16
                          : bsmm_ptx_cvt_e5m2x2(v[1], v[0]) | bsmm_ptx_cvt_e5m2x2(v[3], v[2]) << 16;
        }
        return;
    }
#endif
    coder_codes(job, values, four);
}

/* Returns true if the fast function e2m1_item may encode a block that is multiplied by `factor`,
 * which must be a power of two. e2m1_item computes in the type of the values. f16 has a small
 * range, so the function multiplies f16 values in two steps, and exponents of the factor below -28
 * or above 28 are still refused. With bf16, every factor that a block of finite values can have is
 * allowed. */
static __device__ __forceinline__ bool takes_pairs(const bsmm_quantize_job *job, uint32_t elem,
                                                   int bits, float factor) {
    uint32_t f = __float_as_uint(factor);
    int exponent = (int)(f >> 23) - 127;
    if (bits != 4 || elem == BSMM_LANE_F32 || !job->pairs || (f & 0x7fffff)) return false;
    return elem == BSMM_LANE_BF16 || (exponent >= -28 && exponent <= 28);
}

/* Packs 16 results to `bits` bits each, which are bits / 2 words in `to`. `four` has one result per
 * byte. */
static __device__ __forceinline__ void pack_codes(int bits, const uint32_t *four, uint32_t *to) {
    if (bits == 8)
        for (int i = 0; i < 4; i++)
            to[i] = four[i];
    if (bits == 4)
        for (int i = 0; i < 2; i++) {
            uint32_t low = four[2 * i] | four[2 * i] >> 4,
                     high = four[2 * i + 1] | four[2 * i + 1] >> 4;
            to[i] = __byte_perm(low, high, 0x6420);
        }
    if (bits == 6) {
        uint32_t w[4];
        for (int i = 0; i < 4; i++)
            w[i] = (four[i] & 0x3f) | (four[i] >> 2 & 0xfc0) | (four[i] >> 4 & 0x3f000) |
                   (four[i] >> 6 & 0xfc0000);
        to[0] = w[0] | w[1] << 24;
        to[1] = w[1] >> 8 | w[2] << 16;
        to[2] = w[2] >> 16 | w[3] << 8;
    }
}

static __device__ __forceinline__ void store_whole(int bits, uint8_t *to, const uint32_t *codes) {
    if (bits == 8) *(uint4 *)to = make_uint4(codes[0], codes[1], codes[2], codes[3]);
    if (bits == 4) *(uint2 *)to = make_uint2(codes[0], codes[1]);
    for (int i = 0; i < 3 && bits == 6; i++)
        ((uint32_t *)to)[i] = codes[i];
}

/* Stores the first n of a thread's 16 results. Two results of 4 bits share a byte, and four results
 * of 6 bits share 3 bytes. If n ends inside such a group, the group is stored as a whole. */
static __device__ __forceinline__ void store_codes(const bsmm_quantize_job *job, int bits,
                                                   uint8_t *to, uint32_t n, const uint32_t *codes) {
    uint32_t bytes = bits == 8 ? n : bits == 4 ? (n + 1) / 2 : (n + 3) / 4 * 3;
    if (job->aligned_dst && n == 16) {
        store_whole(bits, to, codes);
        return;
    }
    for (int i = 0; i < 2 * bits; i++)
        if ((uint32_t)i < bytes) to[i] = (uint8_t)(codes[i / 4] >> 8 * (i % 4));
}

/* Sets result number n and all later ones to 0. They lie past the end of the row, where padding
 * must be +0. Quantizing a padding value of 0 may have given -0. */
static __device__ __forceinline__ void cut_codes(uint32_t n, uint32_t *four) {
    for (int i = 0; i < 4; i++) {
        int left = max((int)n - 4 * i, 0);
        if (left < 4) four[i] &= (1u << 8 * left) - 1;
    }
}

/* Encodes a thread's 16 values of one row to packed results. `amax` is the largest magnitude of the
 * scale block of these values, as fp32 bits. The recipe multiplies or divides the block by
 * `factor`. */
static __device__ __forceinline__ void encode_item(const bsmm_quantize_job *job, uint32_t elem,
                                                   int bits, uint32_t amax, float factor,
                                                   uint32_t n, const uint32_t *raw, uint32_t *to) {
    uint32_t four[4];
    bool usual = job->steps.step != BSMM_STEP_COMPARE && is_tame(amax, factor) &&
                 (job->steps.step != BSMM_STEP_DIVIDE || divides_well(amax, factor));
    /* The fast path is for values without NaN. Usually `amax` is NaN if the block contains a NaN.
     * Some recipes ignore NaN, and `amax` is then the largest of the other values. In this case the
     * code looks for NaN in the 16 values themselves. */
    if (job->steps.skips_nan) usual &= item_amax(elem, raw) < 0x7f800000u;
    if (usual) {
        float values[16];
        tame_values(job, elem, factor, raw, values);
        tame_codes(job, bits, values, four);
    } else
        for (int i = 0; i < 4; i++)
            four[i] = any_four(job, factor, item_value(elem, raw, 4 * i),
                               item_value(elem, raw, 4 * i + 1), item_value(elem, raw, 4 * i + 2),
                               item_value(elem, raw, 4 * i + 3));
    cut_codes(n, four);
    pack_codes(bits, four, to);
}

/* Returns true if the job selects the fast path `quick` and a kernel for results of `bits` bits
 * contains it. */
static __device__ __forceinline__ bool has_quick(const bsmm_quantize_job *job, int bits,
                                                 uint32_t quick) {
    bool mine = bits == 8   ? quick == BSMM_QUICK_E4M3_MULTIPLY || quick == BSMM_QUICK_E4M3_DIVIDE
                : bits == 6 ? quick >= BSMM_QUICK_E2M3
                            : quick >= BSMM_QUICK_E2M1_MULTIPLY && quick < BSMM_QUICK_E2M3;
    return mine && job->quick == quick && job->aligned_dst && has_conversions();
}

/* Returns true if the fast path `quick` is correct for a block of values. `amax` has the fp32 bits
 * of the block's largest magnitude. The recipe multiplies or divides the block by `factor`. */
static __device__ __forceinline__ bool is_quick(const bsmm_quantize_job *job, uint32_t elem,
                                                int bits, uint32_t quick, uint32_t amax,
                                                float factor) {
    bool tame = is_tame(amax, factor);
    if (quick == BSMM_QUICK_E4M3_DIVIDE) return tame & divides_well(amax, factor);
    /* This path divides values by `factor`, and no nonzero value may underflow to 0 in fp32. The
     * smallest nonzero magnitude of f32 is 2^-149, so for f32 `factor` must be at most 1. The
     * smallest nonzero magnitude of the 16-bit formats is 2^-133 (in bf16). Divided by 256 it is
     * still a nonzero fp32 number, so for these formats `factor` may be up to 256. */
    if (quick == BSMM_QUICK_E2M1_PLUS_DIVIDE)
        return tame & divides_well(amax, factor) & (factor <= (elem == BSMM_LANE_F32 ? 1 : 256));
    if (quick == BSMM_QUICK_E2M1_MULTIPLY || quick >= BSMM_QUICK_E2M3)
        return tame & (factor >= 0x1p-112f);
    return tame & (quick != BSMM_QUICK_E2M1_PAIRS || takes_pairs(job, elem, bits, factor));
}

/* Converts four 8-bit floats, one per byte, to 24 bits with four 6-bit codes. The rounding to 8
 * bits has put the bits of the 6-bit magnitude into the lowest five bits of a code
 * (small_float_item). If the code's magnitude is 0x20 or more, the value is too large for 6 bits,
 * and becomes 0x1f, the largest 6-bit magnitude. */
static __device__ __forceinline__ uint32_t six_bit_codes(uint32_t four) {
    const uint32_t over = (four | four << 1) & 0x40404040u;
    const uint32_t codes =
        ((four | (over - (over >> 6))) & 0x1f1f1f1fu) | (four >> 2 & 0x20202020u);
    const uint32_t pairs = (codes & 0x003f003fu) | (codes >> 2 & 0x0fc00fc0u);
    return (pairs & 0xfffu) | (pairs >> 4 & 0xfff000u);
}

/* Quantizes 16 values to packed e2m3 or e3m2 codes by the instruction cvt, which rounds to 8-bit
 * floats. The 8-bit format with the same number of mantissa bits is used: e4m3 for e2m3, and e5m2
 * for e3m2. The values are first multiplied by a power of two, so that the smallest normal number
 * of the 6-bit format becomes that of the 8-bit format. The 8-bit code to which cvt rounds such a
 * value then has the same bits as the 6-bit code. */
static __device__ __forceinline__ void small_float_item(uint32_t elem, uint32_t quick, float factor,
                                                        const uint32_t *raw, uint32_t *to) {
    uint32_t w[4] = {0, 0, 0, 0};
#if __CUDA_ARCH__ >= 890
    factor *= quick == BSMM_QUICK_E2M3 ? 0x1p-6f : 0x1p-12f;
    for (int i = 0; i < 4; i++) {
        float v[4];
        for (int j = 0; j < 4; j++)
            v[j] = tame_value(elem, raw, 4 * i + j) * factor;
        w[i] = six_bit_codes(
            quick == BSMM_QUICK_E2M3
                ? bsmm_ptx_cvt_e4m3x2(v[1], v[0]) | bsmm_ptx_cvt_e4m3x2(v[3], v[2]) << 16
                : bsmm_ptx_cvt_e5m2x2(v[1], v[0]) | bsmm_ptx_cvt_e5m2x2(v[3], v[2]) << 16);
    }
#endif
    to[0] = w[0] | w[1] << 24;
    to[1] = w[1] >> 8 | w[2] << 16;
    to[2] = w[2] >> 16 | w[3] << 8;
}

static __device__ __forceinline__ void quick_item(uint32_t elem, uint32_t quick, float factor,
                                                  const uint32_t *raw, uint32_t *to) {
    bool divides = quick == BSMM_QUICK_E4M3_DIVIDE || quick == BSMM_QUICK_E2M1_PLUS_DIVIDE;
    bool plus = quick == BSMM_QUICK_E2M1_PLUS || quick == BSMM_QUICK_E2M1_PLUS_DIVIDE;
    bool to_e2m1 = plus || quick == BSMM_QUICK_E2M1_MULTIPLY, own = plus || elem == BSMM_LANE_F32;
    float v[16], reciprocal = divides ? __frcp_rn(factor) : 0;
    if (quick == BSMM_QUICK_E2M1_PAIRS) {
        e2m1_item(elem, factor, raw, to);
        return;
    }
    if (quick >= BSMM_QUICK_E2M3) {
        small_float_item(elem, quick, factor, raw, to);
        return;
    }
    if (quick == BSMM_QUICK_E2M1_MULTIPLY) factor *= 0x1p-14f;
    for (int i = 0; i < 16; i++) {
        float value = tame_value(elem, raw, i);
        v[i] = divides ? quotient(value, factor, reciprocal) : value * factor;
        if (plus) v[i] = (v[i] + 0.0f) * 0x1p-14f; /* Adding +0 turns -0 into +0. */
    }
    if (to_e2m1) e2m1_values(v, own ? NULL : raw, to);
#if __CUDA_ARCH__ >= 890
    for (int i = 0; i < 4 && !to_e2m1; i++)
        to[i] = bsmm_ptx_cvt_e4m3x2(v[4 * i + 1], v[4 * i]) |
                bsmm_ptx_cvt_e4m3x2(v[4 * i + 3], v[4 * i + 2]) << 16;
#endif
}

/* Describes where a thread stores its results: 16 results in each of several rows. */
typedef struct item_position {
    uint32_t row0, row_stride;
    /* `n` is the number of the thread's 16 values of a row that lie before the end of the row. */
    uint32_t n;
    uint8_t *to;
    uint64_t to_step;
} item_position;

/* Each thread has 12 bytes to store, and four adjacent threads store 48 consecutive bytes, which
 * begin at a multiple of 16. Each of the first three threads gets bytes of the next thread by
 * shuffles and stores 16 bytes; the fourth one stores nothing. With three stores of 4 bytes in each
 * thread, a warp's store would write only a part of every 32-byte sector. All threads of the warp
 * must call this function. Threads with `valid` false store nothing. */
static __device__ __forceinline__ void store_by_four(bool valid, uint8_t *to,
                                                     const uint32_t *codes) {
    const uint32_t part = threadIdx.x % 4;
    uint32_t next[3];
    for (int i = 0; i < 3; i++)
        next[i] = __shfl_sync(0xffffffffu, codes[i], (threadIdx.x + 1) % 32);
    const bool first = part == 0, second = part == 1;
    if (!valid || part == 3) return;
    *(uint4 *)(to + 4 * part) = make_uint4(first    ? codes[0]
                                           : second ? codes[1]
                                                    : codes[2],
                                           first    ? codes[1]
                                           : second ? codes[2]
                                                    : next[0],
                                           first    ? codes[2]
                                           : second ? next[0]
                                                    : next[1],
                                           first    ? next[0]
                                           : second ? next[1]
                                                    : next[2]);
}

/* Quantizes a thread's 16 values in each of `items` rows by the fast path `quick`. Returns false
 * and does nothing if the job uses another fast path, or if `quick` is not correct for some row of
 * the warp. The caller must then take another path. There are no branches between the rows, so that
 * their latencies overlap. `raw` has `span` words for each row. */
static __device__ __forceinline__ bool quick_items(const bsmm_quantize_job *job, uint32_t elem,
                                                   int bits, uint32_t quick, int items, int span,
                                                   const uint32_t *raw, const uint32_t *amax,
                                                   const float *factors,
                                                   const item_position *position) {
    bool rare = position->n % 16;
    if (!has_quick(job, bits, quick)) return false;
#pragma unroll
    for (int i = 0; i < items; i++)
        rare |= !is_quick(job, elem, bits, quick, amax[i], factors[i]);
    if (__any_sync(0xffffffffu, rare)) return false;
    /* `by_four` is true if each 64 adjacent results of a row, which take 48 bytes, begin at an
     * address that is a multiple of 16. */
    const bool by_four =
        (job->cols | job->dst_lines.row_step) % 64 == 0 && (uintptr_t)job->dst % 16 == 0;
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t codes[4];
        quick_item(elem, quick, factors[i], raw + i * span, codes);
        const bool valid = position->row0 + i * position->row_stride < job->rows && position->n;
        uint8_t *to = position->to + i * position->to_step;
        if (bits == 6 && by_four)
            store_by_four(valid, to, codes);
        else if (valid)
            store_whole(bits, to, codes);
    }
    return true;
}

#endif
