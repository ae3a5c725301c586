/* Dequantizes rows of codes of 4, 6 and 8 bits to f32, f16 and bf16, and anything else one element
 * at a time. Bound by memory: 2.5 to 5 bytes move for a value. */
#include "cuda/ptx/arith.h"
#include "cuda/ptx/convert.h"
#include "cuda/recode_lane.h"
#include "cuda/sm80/pack_memory.h"

static __device__ __forceinline__ uint32_t load_scale_code(const bsmm_dequantize_job *job,
                                                           uint32_t row, uint64_t column_offset) {
    uint64_t at = bsmm_axis_at(&job->row_map, row) + column_offset;
    return job->scale == 3 ? __ldg((const uint32_t *)job->scales + at) : __ldg(job->scales + at);
}

/* As load_scales and scale_of of the packing kernels. */
static __device__ __forceinline__ void load_scale_codes(const bsmm_dequantize_job *job, int items,
                                                        uint32_t row0, uint32_t rows_apart,
                                                        uint64_t column, bool wanted,
                                                        uint32_t *mine) {
    uint32_t share = job->share, lane = threadIdx.x & (share - 1);
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t row = row0 + (i * share + lane) * rows_apart;
        if (i * share >= items) continue;
        mine[i] = wanted && row < job->rows ? load_scale_code(job, row, column) : 0;
    }
}

static __device__ __forceinline__ uint32_t code_of(const bsmm_dequantize_job *job,
                                                   const uint32_t *mine, int i) {
    uint32_t share = job->share, lane = threadIdx.x % PACK_WARP;
    uint32_t code = share == 4 ? mine[i / 4] : share == 2 ? mine[i / 2] : mine[i];
    return __shfl_sync(0xffffffffu, code, (lane & ~(share - 1)) + (i & (share - 1)));
}

/* 8 packed codes to one per byte. */
static __device__ __forceinline__ void spread_item(int bits, const uint32_t *raw, uint32_t *codes) {
    if (bits == 4)
        bsmm_spread4(raw[0], codes);
    else
        item_codes(bits, 8, raw, codes);
}

/* bsmm_lane_scale_value without branches; 255 of e8m0 gives Inf, which is rare too. */
static __device__ __forceinline__ float quick_scale(const bsmm_dequantize_job *job, uint32_t code) {
    uint32_t bits = job->scale == 3 ? code : code ? code << 23 : 0x00400000u;
#if __CUDA_ARCH__ >= 890
    uint32_t e4m3 =
        __float_as_uint(bsmm_ptx_cvt_f32_f16((uint16_t)bsmm_ptx_cvt_f16x2_e4m3x2((uint16_t)code)));
#else
    uint32_t e4m3 = __float_as_uint(bsmm_e4m3_value(code));
#endif
    return __uint_as_float(job->scale == 2 ? e4m3 : bits);
}

static __device__ __forceinline__ bool within(float factor, int binades) {
    int exponent = (int)(__float_as_uint(factor) >> 23 & 0xff) - 127;
    return exponent >= -binades && exponent <= binades;
}

/* What the fast ways take: every code finite, and factors so far from fp32's ends that products and
 * what is left of them are exact. */
static __device__ __forceinline__ bool is_usual(const bsmm_dequantize_job *job, int bits,
                                                const uint32_t *codes, float scale, float global) {
    float first = job->scale != 3 ? scale : 1, second = job->scale != 3 ? global : scale;
    uint32_t found = 0;
    for (int i = 0; i < 2 && bits == 8; i++) {
        uint32_t lone = codes[i] ^ 0x80808080u;
        found |= job->codec.lone_nan == 0x80
                     ? (lone - 0x01010101u) & ~lone
                     : (codes[i] & 0x7f7f7f7fu) + (0x80 - job->codec.special) * 0x01010101u;
    }
    bool known =
        job->way == BSMM_WAY_EXACT ? first - first == 0 : within(first, 20) && within(second, 60);
    return !(found & 0x80808080u) && known && job->way != BSMM_WAY_DOUBLE;
}

/* a * b or a / b to odd: towards zero, and the last bit set when there is a rest. */
static __device__ __forceinline__ float to_odd(float result, float rest) {
    return rest != 0 ? __uint_as_float(__float_as_uint(result) | 1) : result;
}

static __device__ __forceinline__ float multiplied(int wide, float a, float b) {
    float cut = __fmul_rz(a, b);
    return wide ? a * b : to_odd(cut, fmaf(a, b, -cut));
}

static __device__ __forceinline__ float divided(int wide, float a, float b) {
    float cut = __fdiv_rz(a, b);
    return wide ? __fdiv_rn(a, b) : to_odd(cut, fmaf(-cut, b, a));
}

static __device__ __forceinline__ uint32_t to_halves(const bsmm_dequantize_job *job, float high,
                                                     float low) {
    return job->dst_elem == BSMM_LANE_BF16 ? bsmm_ptx_cvt_bf16x2(high, low)
                                           : bsmm_ptx_cvt_f16x2(high, low);
}

/* bf16 of element times a scale with few bits, two at a time: the first product is exact, and the
 * second is the one that rounds. */
static __device__ __forceinline__ void exact_bf16(const bsmm_dequantize_job *job, int bits,
                                                  const uint32_t *codes, float scale,
                                                  uint32_t *out) {
    uint32_t factor = (__float_as_uint(scale) >> 16) * 0x00010001u, minus_0 = 0x80008000u;
    for (int i = 0; i < 4; i++) {
        uint32_t halves = __byte_perm(codes[i / 2] << (8 - bits), 0, i % 2 ? 0x3424 : 0x1404);
        uint32_t pair = (halves >> job->pair.down & job->pair.mask) | (halves & 0x80008000u);
        pair = bsmm_ptx_fma_bf16x2(pair, job->pair.unbias, minus_0);
        out[i] = bsmm_ptx_fma_bf16x2(pair, factor, minus_0);
    }
}

/* ---- e2m1 to 16 bits: eight magnitudes of a block, of which all but two are powers of two apart
 * ---- */

/* The low bytes of the eight results, then the high ones, two words each. */
static __device__ __forceinline__ void make_table(const bsmm_dequantize_job *job, float first,
                                                  float second, uint32_t *table) {
    float one = first, more = 1.5f * first;
    if (job->way == BSMM_WAY_MULTIPLY) {
        one = multiplied(0, one, second);
        more = multiplied(0, more, second);
    }
    if (job->way == BSMM_WAY_DIVIDE) {
        one = divided(0, one, second);
        more = divided(0, more, second);
    }
    uint32_t pairs[4];
    pairs[0] = to_halves(job, 0.5f * one, 0 * one);
    pairs[1] = to_halves(job, more, one);
    pairs[2] = to_halves(job, 2 * more, 2 * one);
    pairs[3] = to_halves(job, 4 * more, 4 * one);
    for (int i = 0; i < 2; i++) {
        table[i] = __byte_perm(pairs[2 * i], pairs[2 * i + 1], 0x6420);
        table[2 + i] = __byte_perm(pairs[2 * i], pairs[2 * i + 1], 0x7531);
    }
}

/* 8 packed codes. */
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

/* ---- 8-bit floats that the hardware converts ---- */

/* Elements 2 i and 2 i + 1 as f16. */
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

/* Whether f16 holds a scale that is a power of two; then one product of halves rounds once. */
static __device__ __forceinline__ bool fits_half(float scale) {
    return scale >= 0x1p-24f && scale <= 0x1p15f;
}

static __device__ __forceinline__ void
exact_f16(const bsmm_dequantize_job *job, const uint32_t *codes, float scale, uint32_t *out) {
    uint32_t factor = bsmm_ptx_cvt_f16x2(scale, scale);
    for (int i = 0; i < 4; i++)
        out[i] = bsmm_ptx_mul_f16x2(element_halves(job, codes, i), factor);
}

/* Values of 8 codes by a fast way, before the last rounding. */
static __device__ __forceinline__ void usual_values(const bsmm_dequantize_job *job, bool converts,
                                                    int wide, int way, const uint32_t *codes,
                                                    float first, float second, float *values) {
    for (int i = 0; i < 8; i++) {
        uint32_t pair = converts ? element_halves(job, codes, i / 2) : 0;
        values[i] = converts ? bsmm_ptx_cvt_f32_f16((uint16_t)(pair >> 16 * (i % 2)))
                             : bsmm_narrow_finite(&job->codec, codes[i / 4] >> 8 * (i % 4));
        values[i] *= first;
        if (way == BSMM_WAY_MULTIPLY) values[i] = multiplied(wide, values[i], second);
        if (way == BSMM_WAY_DIVIDE) values[i] = divided(wide, values[i], second);
    }
}

/* What is not usual, by the definition; out of line, for it is rare or slow anyway. */
static __device__ __noinline__ uint32_t define_value(const bsmm_dequantize_job *job, uint32_t code,
                                                     float scale, float global) {
    float element = bsmm_narrow_value(&job->codec, code);
    return bsmm_lane_result(job, bsmm_lane_product(job, element, scale, global));
}

/* n values of an item to element `at`, by the definition. */
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

/* Beside the ways: to 16 bits two at a time, e2m1 by table, 8-bit floats by cvt. */
enum { TO_BF16 = 16, TO_F16 = 17, BY_TABLE = 18, BY_CVT = 32 };

/* 8 usual codes of one block to 8 words of f32, or 4 of pairs. BY_TABLE has them packed. */
static __device__ __forceinline__ void decode_item(const bsmm_dequantize_job *job, int bits,
                                                   int wide, int way, const uint32_t *codes,
                                                   float scale, float global, uint32_t *out) {
    float first = job->scale != 3 ? scale : 1, second = job->scale != 3 ? global : scale;
    float values[8];
    if (way == TO_BF16) {
        exact_bf16(job, bits, codes, first, out);
    } else if (way == TO_F16) {
        exact_f16(job, codes, first, out);
    } else if (way == BY_TABLE) {
        uint32_t table[4];
        make_table(job, first, second, table);
        look_up(table, codes[0], out);
    } else {
        usual_values(job, way & BY_CVT, wide, way & ~BY_CVT, codes, first, second, values);
        for (int i = 0; i < 8 && wide; i++)
            out[i] = __float_as_uint(values[i]);
        for (int i = 0; i < 4 && !wide; i++)
            out[i] = to_halves(job, values[2 * i + 1], values[2 * i]);
    }
}

/* All items of a thread, of `words` words, in one straight line; rows from `there` on do not exist.
 */
static __device__ __forceinline__ void
decode_items(const bsmm_dequantize_job *job, int bits, int wide, int way, int items, int words,
             const uint32_t *codes, const float *scales, float global, uint32_t row0,
             uint32_t rows_apart, uint32_t there, uint64_t at, uint64_t at_step) {
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t out[8];
        uint4 *to = (uint4 *)(job->dst + (at + i * at_step) * (wide ? 4 : 2));
        decode_item(job, bits, wide, way, codes + i * words, scales[i], global, out);
        if (row0 + i * rows_apart >= there) continue;
        to[0] = make_uint4(out[0], out[1], out[2], out[3]);
        if (wide) to[1] = make_uint4(out[4], out[5], out[6], out[7]);
    }
}

#define NAME dequantize_rows_4_f32
#define BITS 4
#define WIDE 1
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_4_f16
#define BITS 4
#define WIDE 0
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_6_f32
#define BITS 6
#define WIDE 1
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_6_f16
#define BITS 6
#define WIDE 0
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_8_f32
#define BITS 8
#define WIDE 1
#include "cuda/sm80/dequantize_body.h"

#define NAME dequantize_rows_8_f16
#define BITS 8
#define WIDE 0
#include "cuda/sm80/dequantize_body.h"

/* ---- anything ---- */

static __device__ uint32_t load_code(const bsmm_dequantize_job *job, uint64_t at) {
    if (job->src_bits == 32) return ((const uint32_t *)job->src)[at];
    if (job->src_bits == 16) return ((const uint16_t *)job->src)[at];
    if (job->src_bits == 8) return job->src[at];
    uint64_t bit = at * job->src_bits;
    const uint8_t *from = job->src + bit / 8;
    uint32_t shift = bit % 8, word = from[0];
    if (shift + job->src_bits > 8) word |= (uint32_t)from[1] << 8;
    return word >> shift & ((1u << job->src_bits) - 1);
}

static __device__ uint32_t decode_any(const bsmm_dequantize_job *job, uint32_t r, uint32_t c) {
    uint32_t code = load_code(job, r * job->src_lines.row_step + c * job->src_lines.col_step);
    float element = job->src_bits > 8 ? bsmm_lane_value(job->src_elem, code)
                                      : bsmm_narrow_value(&job->codec, code);
    float scale = 1, global = job->global ? __ldg(job->global) : 1;
    if (job->scale)
        scale = bsmm_lane_scale_value(job->scale,
                                      load_scale_code(job, r, bsmm_axis_at(&job->col_map, c)));
    return bsmm_lane_result(job, bsmm_lane_product(job, element, scale, global));
}

/* One element a thread, neighbours side by side in the result. */
extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    dequantize_any(const __grid_constant__ bsmm_dequantize_job job) {
    bool by_rows = job.dst_lines.col_step == 1;
    uint32_t fast = blockIdx.x * PACK_THREADS + threadIdx.x;
    for (uint32_t slow = blockIdx.y;; slow += gridDim.y) {
        uint32_t r = by_rows ? slow : fast, c = by_rows ? fast : slow;
        if (r >= job.rows || c >= job.cols) return;
        uint32_t result = decode_any(&job, r, c);
        uint64_t at = r * job.dst_lines.row_step + c * job.dst_lines.col_step;
        if (job.dst_elem == BSMM_LANE_F32)
            ((uint32_t *)job.dst)[at] = result;
        else
            ((uint16_t *)job.dst)[at] = (uint16_t)result;
    }
}
