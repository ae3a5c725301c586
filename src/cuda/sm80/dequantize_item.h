/* Dequantizes an item, i.e. the codes of 8 elements along a row, which one thread converts. The
 * functions find the item's block scale and test whether a fast path is correct for it. A fast path
 * must give the same bits as the slow path in gpu/recode_lane.h.
 *
 * Many functions have these parameters. `scale` is the type of the block scale: 1 is e8m0, 2 is
 * e4m3, and 3 is fp32. `way` is the method of decoding, a value of the enum bsmm_dequantize_way or
 * of the enum at the end of this file. `to_bf16` is true if results are bf16. Kernels for a single
 * combination pass constants, so that the compiler removes all other cases. Other kernels pass
 * fields of the job. */
#ifndef BSMM_CUDA_SM80_DEQUANTIZE_ITEM_H
#define BSMM_CUDA_SM80_DEQUANTIZE_ITEM_H

#include "cuda/ptx/arith.h"
#include "cuda/ptx/convert.h"
#include "cuda/sm80/pack_memory.h"
#include "gpu/recode_lane.h"
#include "gpu/small_m_weights.h"

/* load_scale_codes loads scale codes, and code_of returns the code for the thread's elements in row
 * i. A thread dequantizes 8 elements along K in each of `items` rows. In each row, the elements of
 * `scale_lanes` adjacent threads lie in one scale block, so these threads need the same codes. They
 * divide the rows among them: each thread loads the codes of some rows and passes them to the other
 * threads by shuffles. */
static __device__ __forceinline__ void
load_scale_codes(const bsmm_dequantize_job *job, uint32_t scale, uint32_t scale_lanes, int items,
                 uint32_t row0, uint32_t row_stride, uint64_t column, bool wanted, uint32_t *mine) {
    uint32_t lane = threadIdx.x & (scale_lanes - 1);
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t row = row0 + (i * scale_lanes + lane) * row_stride;
        if (i * scale_lanes >= items) continue;
        mine[i] = wanted && row < job->rows ? bsmm_lane_load_scale(job, scale, row, column) : 0;
    }
}

static __device__ __forceinline__ uint32_t code_of(uint32_t scale_lanes, const uint32_t *mine,
                                                   int i) {
    uint32_t lane = threadIdx.x % PACK_WARP;
    uint32_t code = scale_lanes == 4 ? mine[i / 4] : scale_lanes == 2 ? mine[i / 2] : mine[i];
    return __shfl_sync(0xffffffffu, code, (lane & ~(scale_lanes - 1)) + (i & (scale_lanes - 1)));
}

/* Spreads 8 packed elements of 4 or 6 bits to one element per byte. */
static __device__ __forceinline__ void spread_item(int bits, const uint32_t *raw, uint32_t *codes) {
    if (bits == 4)
        bsmm_spread4(raw[0], codes);
    else
        item_codes(bits, 8, raw, codes);
}

/* Returns the value of a scale code, without the branches of bsmm_lane_scale_value. For the e8m0
 * code 255 it returns Inf instead of NaN. That does no harm, because is_usual rejects both Inf and
 * NaN, and the slow path runs. */
static __device__ __forceinline__ float quick_scale(uint32_t scale, uint32_t code) {
    uint32_t bits = scale == 3 ? code : code ? code << 23 : 0x00400000u;
#if __CUDA_ARCH__ >= 890
    uint32_t e4m3 =
        __float_as_uint(bsmm_ptx_cvt_f32_f16((uint16_t)bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)code)));
#else
    uint32_t e4m3 = __float_as_uint(bsmm_e4m3_value(code));
#endif
    return __uint_as_float(scale == 2 ? e4m3 : bits);
}

static __device__ __forceinline__ bool within(float factor, int binades) {
    int exponent = (int)(__float_as_uint(factor) >> 23 & 0xff) - 127;
    return exponent >= -binades && exponent <= binades;
}

/* Returns true if the fast paths are correct for the 8 elements of one row. This requires that
 * every element is finite. The block scale (`factor`) and the scale of the whole tensor (`global`)
 * must be so far from the ends of fp32's range that the fast paths compute products and their
 * remainders exactly. A block scale may also be 0. */
static __device__ __forceinline__ bool is_usual(const bsmm_dequantize_job *job, int bits,
                                                uint32_t scale, uint32_t way, const uint32_t *codes,
                                                float factor, float global) {
    float first = scale != 3 ? factor : 1, second = scale != 3 ? global : factor;
    uint32_t found = 0;
    for (int i = 0; i < 2 && bits == 8; i++) {
        uint32_t lone = codes[i] ^ 0x80808080u;
        found |= job->codec.lone_nan == 0x80
                     ? (lone - 0x01010101u) & ~lone
                     : (codes[i] & 0x7f7f7f7fu) + (0x80 - job->codec.special) * 0x01010101u;
    }
    bool known = way == BSMM_WAY_EXACT ? first - first == 0
                                       : (first == 0 || within(first, 20)) &&
                                             ((scale == 3 && second == 0) || within(second, 60));
    return !(found & 0x80808080u) && known && way != BSMM_WAY_DOUBLE;
}

/* Returns an exact value rounded to odd. `result` is the exact value rounded toward zero, and
 * `rest` is the exact value minus `result`. If `rest` is nonzero, `result` is inexact, and the
 * function sets its last bit. */
static __device__ __forceinline__ float to_odd(float result, float rest) {
    return rest != 0 ? __uint_as_float(__float_as_uint(result) | 1) : result;
}

static __device__ __forceinline__ float multiplied(int wide, float a, float b) {
    float cut = __fmul_rz(a, b);
    return wide ? a * b : to_odd(cut, fmaf(a, b, -cut));
}

/* Returns a / b, rounded to odd: if the quotient is inexact, it is truncated and its last bit is
 * set. The variable `quotient` is one of the two fp32 neighbors of the exact quotient. The sign of
 * the remainder `rest` says whether the magnitude of `quotient` is too large, and the function then
 * takes the neighbor below it. If a is 0, the function returns `first`, because `quotient` would be
 * +0 also for a result of -0. */
static __device__ __forceinline__ float divided_to_odd(float a, float b, float reciprocal) {
    const float first = a * reciprocal;
    float quotient = fmaf(fmaf(-first, b, a), reciprocal, first);
    float rest = fmaf(-quotient, b, a);
    uint32_t bits = __float_as_uint(quotient);
    uint32_t beyond = (__float_as_uint(rest) ^ __float_as_uint(b) ^ bits) >> 31;
    if (a == 0) return first;
    return rest != 0 ? __uint_as_float((bits - beyond) | 1) : quotient;
}

/* Returns a / b in fp32. If `wide` is set, the result is stored as f32, and the quotient is rounded
 * to nearest. Otherwise the result is rounded to f16 or bf16 later, and the quotient is rounded to
 * odd, so that both roundings together give the same as one. `reciprocal` is 1 / b, rounded to
 * nearest. */
static __device__ __forceinline__ float divided(int wide, float a, float b, float reciprocal) {
    return wide ? __fdiv_rn(a, b) : divided_to_odd(a, b, reciprocal);
}

static __device__ __forceinline__ uint32_t to_halves(bool to_bf16, float high, float low) {
    return to_bf16 ? bsmm_ptx_cvt_bf16x2(high, low) : bsmm_ptx_cvt_f16x2(high, low);
}

/* Multiplies two decoded elements in bf16 by their block scale. Decoded elements still have the
 * wrong exponent bias. The first multiplication, by `unbias`, corrects it and is exact. The second
 * one, by the scale `factor`, is the only one that can round. bf16 must hold the scale exactly. */
static __device__ __forceinline__ uint32_t twice_scaled(uint32_t pair, uint32_t unbias,
                                                        uint32_t factor) {
    const uint32_t minus_0 = 0x80008000u;
    return bsmm_ptx_fma_bf16x2(bsmm_ptx_fma_bf16x2(pair, unbias, minus_0), factor, minus_0);
}

static __device__ __forceinline__ void exact_bf16(const bsmm_dequantize_job *job, int bits,
                                                  const uint32_t *codes, float scale,
                                                  uint32_t *out) {
    uint32_t factor = (__float_as_uint(scale) >> 16) * 0x00010001u;
    for (int i = 0; i < 4; i++) {
        uint32_t halves = __byte_perm(codes[i / 2] << (8 - bits), 0, i % 2 ? 0x3424 : 0x1404);
        uint32_t pair = (halves >> job->pair.down & job->pair.mask) | (halves & 0x80008000u);
        out[i] = twice_scaled(pair, job->pair.unbias, factor);
    }
}

/* Decodes 8 packed e2m1 elements to bf16 and multiplies them by their block scale. */
static __device__ __forceinline__ void exact_bf16_of_e2m1(uint32_t codes, float scale,
                                                          uint32_t *out) {
    uint32_t factor = (__float_as_uint(scale) >> 16) * 0x00010001u, pairs[4];
    bsmm_e2m1_pairs(codes, pairs);
    for (int i = 0; i < 4; i++)
        pairs[i] = twice_scaled(pairs[i], 0x7e807e80u /* 0x7e80 is 2^126 in bf16. */, factor);
    for (int i = 0; i < 2; i++) {
        out[i] = __byte_perm(pairs[2 * i], pairs[2 * i + 1], 0x5410);
        out[2 + i] = __byte_perm(pairs[2 * i], pairs[2 * i + 1], 0x7632);
    }
}

/* Makes a table of results for the eight magnitudes of e2m1 (0, 0.5, 1, 1.5, 2, 3, 4 and 6) in a
 * block. A result is the magnitude times `first`, then multiplied or divided by `second` as `way`
 * says, and rounded to 16 bits (bf16 or f16). The first two words of the table hold the low bytes
 * of the eight results, and the last two words hold their high bytes. The function applies the
 * factors only to 1 and 1.5, because all other magnitudes are a power of two times 1 or 1.5, or
 * 0. */
static __device__ __forceinline__ void make_table(uint32_t way, bool to_bf16, float first,
                                                  float second, float reciprocal, uint32_t *table) {
    float one = first, more = 1.5f * first;
    if (way == BSMM_WAY_MULTIPLY) {
        one = multiplied(0, one, second);
        more = multiplied(0, more, second);
    }
    if (way == BSMM_WAY_DIVIDE) {
        one = divided(0, one, second, reciprocal);
        more = divided(0, more, second, reciprocal);
    }
    uint32_t pairs[4];
    pairs[0] = to_halves(to_bf16, 0.5f * one, 0 * one);
    pairs[1] = to_halves(to_bf16, more, one);
    pairs[2] = to_halves(to_bf16, 2 * more, 2 * one);
    pairs[3] = to_halves(to_bf16, 4 * more, 4 * one);
    for (int i = 0; i < 2; i++) {
        table[i] = __byte_perm(pairs[2 * i], pairs[2 * i + 1], 0x6420);
        table[2 + i] = __byte_perm(pairs[2 * i], pairs[2 * i + 1], 0x7531);
    }
}

/* Converts 8 packed e2m1 elements to 16-bit results by a look-up in the table of make_table. */
static __device__ __forceinline__ void look_up(const uint32_t *table, uint32_t codes,
                                               uint32_t *out) {
    uint32_t magnitudes = codes & 0x77777777u, even = codes << 4;
    for (int i = 0; i < 2; i++) {
        uint32_t four = magnitudes >> 16 * i;
        uint32_t low = __byte_perm(table[0], table[1], four);
        uint32_t high = __byte_perm(table[2], table[3], four);
        high ^= __byte_perm(even, codes, i ? 0x7362 : 0x5140) & 0x80808080u;
        out[2 * i] = __byte_perm(low, high, 0x5140);
        out[2 * i + 1] = __byte_perm(low, high, 0x7362);
    }
}

/* Converts elements 2 i and 2 i + 1 of a thread's 8 elements to f16 and returns both in one word.
 */
static __device__ __forceinline__ uint32_t element_halves(const bsmm_dequantize_job *job,
                                                          const uint32_t *codes, int i) {
#if __CUDA_ARCH__ >= 890
    if (job->hardware == 3)
        return bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)(codes[i / 2] >> 16 * (i % 2)));
#endif
    return __byte_perm(codes[i / 2], 0, i % 2 ? 0x3424 : 0x1404);
}

static __device__ __forceinline__ bool converts(const bsmm_dequantize_job *job, int bits) {
#if __CUDA_ARCH__ >= 890
    return bits == 8 && job->hardware;
#else
    return bits == 8 && job->hardware == 2;
#endif
}

/* Returns true if f16 holds the block scale, which is a power of two. The product of an element and
 * the scale in f16 is then rounded only once. */
static __device__ __forceinline__ bool fits_half(float scale) {
    return scale >= 0x1p-24f && scale <= 0x1p15f;
}

static __device__ __forceinline__ void
exact_f16(const bsmm_dequantize_job *job, const uint32_t *codes, float scale, uint32_t *out) {
    uint32_t factor = bsmm_ptx_cvt_f16x2(scale, scale);
    for (int i = 0; i < 4; i++)
        out[i] = bsmm_ptx_mul_f16x2(element_halves(job, codes, i), factor);
}

/* A result is an element times the block's fp32 scale, rounded to bf16. Rounding the product first
 * to fp32 and then to bf16 may give a wrong result: the fp32 number may lie halfway between two
 * bf16 numbers although the exact product does not. The function finds out whether this can happen
 * in a block. Elements have at most four significant bits, so each of them is a power of two times
 * an odd number up to 15. Eight lanes together test the products of the scale and these eight odd
 * numbers. Returns true if the product of the calling lane is such a case. */
static __device__ __forceinline__ bool halfway(float scale) {
    float number = (float)(threadIdx.x % 8 * 2 + 1), product = number * scale;
    return (__float_as_uint(product) & 0xffff) == 0x8000 && fmaf(number, scale, -product) != 0;
}

static __device__ __forceinline__ void
rounded_bf16(const bsmm_dequantize_job *job, const uint32_t *codes, float scale, uint32_t *out) {
    for (int i = 0; i < 4; i++) {
        uint32_t pair = element_halves(job, codes, i);
        out[i] = bsmm_ptx_cvt_bf16x2(bsmm_ptx_cvt_f32_f16((uint16_t)(pair >> 16)) * scale,
                                     bsmm_ptx_cvt_f32_f16((uint16_t)pair) * scale);
    }
}

/* Exchanges results between two adjacent threads, so that each store of the two threads fills a
 * whole 32-byte sector of memory. Before the exchange, each thread has 8 results of 4 bytes, i.e.
 * the 32 bytes of one sector. But a thread stores only 16 bytes at a time.
 *
 * After the exchange, out[0..3] is half of the even thread's sector: its first half in the even
 * thread and its second half in the odd thread. Likewise, out[4..7] is half of the odd thread's
 * sector. The caller must store out[0..3] at the position *first and out[4..7] at the position
 * *second. Positions count units of 16 bytes from the start of the calling thread's own sector.
 *
 * All threads of the warp must call this function together. */
static __device__ __forceinline__ void exchange_wide(uint32_t *out, int *first, int *second) {
    const bool odd = threadIdx.x % 2;
    for (int i = 0; i < 4; i++) {
        uint32_t given = __shfl_xor_sync(0xffffffffu, odd ? out[i] : out[4 + i], 1);
        out[i] = odd ? given : out[i];
        out[4 + i] = odd ? out[4 + i] : given;
    }
    *first = odd ? -1 : 0;
    *second = odd ? 1 : 2;
}

/* Decodes 8 elements to fp32 and applies their scales by a fast path. Each element is multiplied by
 * `first`, which is exact. The product is then multiplied by `second`, divided by it, or left as it
 * is, depending on `way`. If results have 16 bits, the caller rounds the fp32 numbers later. */
static __device__ __forceinline__ void usual_values(const bsmm_dequantize_job *job, bool converts,
                                                    int wide, int way, const uint32_t *codes,
                                                    float first, float second, float reciprocal,
                                                    float *values) {
    for (int i = 0; i < 8; i++) {
        uint32_t pair = converts ? element_halves(job, codes, i / 2) : 0;
        values[i] = converts ? bsmm_ptx_cvt_f32_f16((uint16_t)(pair >> 16 * (i % 2)))
                             : bsmm_narrow_finite(&job->codec, codes[i / 4] >> 8 * (i % 4));
        values[i] *= first;
        if (way == BSMM_WAY_MULTIPLY) values[i] = multiplied(wide, values[i], second);
        if (way == BSMM_WAY_DIVIDE) values[i] = divided(wide, values[i], second, reciprocal);
    }
}

/* Dequantizes one element by the slow path in gpu/recode_lane.h, which defines the results that
 * fast paths must reproduce. This function is not inlined, because its callers rarely run or are
 * slow anyway. */
static __device__ __noinline__ uint32_t define_value(const bsmm_dequantize_job *job, uint32_t code,
                                                     float scale, float global) {
    float element = bsmm_narrow_value(&job->codec, code);
    return bsmm_lane_result(job, bsmm_lane_product(job, element, scale, global));
}

/* Dequantizes the first n of a thread's 8 elements of one row by the slow path in
 * gpu/recode_lane.h. Stores the results from index `at` of the destination on. */
static __device__ __forceinline__ void define_item(const bsmm_dequantize_job *job,
                                                   const uint32_t *codes, float scale, float global,
                                                   uint32_t n, uint64_t at) {
    for (int i = 0; i < 8; i++) {
        if ((uint32_t)i >= n) continue;
        uint32_t code = codes[i / 4] >> 8 * (i % 4) & 0xff;
        uint32_t result = define_value(job, code, scale, global);
        if (job->dst_elem == BSMM_LANE_F32)
            ((uint32_t *)job->dst)[at + i] = result;
        else
            ((uint16_t *)job->dst)[at + i] = (uint16_t)result;
    }
}

/* TO_BF16, TO_F16, BY_TABLE and ROUNDED_BF16 are additional values of the parameter `way`, which
 * select fast paths. TO_BF16 and TO_F16 convert two elements at a time. BY_TABLE looks up e2m1
 * elements in a table. ROUNDED_BF16 rounds fp32 products to bf16. The flag BY_CVT converts 8-bit
 * floats by the instruction cvt. CHOSEN means that the kernel is not specialized and takes the
 * value from the job. */
enum { TO_BF16 = 16, TO_F16 = 17, BY_TABLE = 18, ROUNDED_BF16 = 19, CHOSEN = 20, BY_CVT = 32 };

/* Decodes 8 elements of one row by the fast path `fast`. *out receives 8 words of f32, or 4 words
 * with two 16-bit floats each. `codes` has one element per byte, with one exception: in the fast
 * paths BY_TABLE and TO_BF16, elements of 4 bits are packed, two in a byte. */
static __device__ __forceinline__ void decode_item(const bsmm_dequantize_job *job, int bits,
                                                   int wide, uint32_t scale, uint32_t way,
                                                   uint32_t fast, bool to_bf16,
                                                   const uint32_t *codes, float factor,
                                                   float global, float reciprocal, uint32_t *out) {
    float first = scale != 3 ? factor : 1, second = scale != 3 ? global : factor;
    float values[8];
    if (fast == TO_BF16 && bits == 4) {
        exact_bf16_of_e2m1(codes[0], first, out);
    } else if (fast == TO_BF16) {
        exact_bf16(job, bits, codes, first, out);
    } else if (fast == TO_F16) {
        exact_f16(job, codes, first, out);
    } else if (fast == ROUNDED_BF16) {
        rounded_bf16(job, codes, second, out);
    } else if (fast == BY_TABLE) {
        uint32_t table[4];
        make_table(way, to_bf16, first, second, reciprocal, table);
        look_up(table, codes[0], out);
    } else {
        usual_values(job, fast & BY_CVT, wide, fast & ~BY_CVT, codes, first, second, reciprocal,
                     values);
        for (int i = 0; i < 8 && wide; i++)
            out[i] = __float_as_uint(values[i]);
        for (int i = 0; i < 4 && !wide; i++)
            out[i] = to_halves(to_bf16, values[2 * i + 1], values[2 * i]);
    }
}

#endif
