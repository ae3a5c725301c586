/* Quantizes a block of 16 values along a row, which one thread converts, to nvfp4 by the default
 * rule for scales. PyTorch's library torchao has the same rule. Zeros keep their signs. */
#ifndef BSMM_CUDA_SM80_QUANTIZE_NV_H
#define BSMM_CUDA_SM80_QUANTIZE_NV_H

#include "cuda/sm80/pack_words.h"
#include "cuda/sm80/quantize_item.h"

/* Computes the constants that all blocks of a tensor share, by the default rule for nvfp4 scales
 * (make_level computes them for other rules). Threads 0 to 7 call this function. A block's elements
 * are multiplied by a factor that depends on the block's scale. Thread i computes factors[i], which
 * is 2^-14 times the factor for the scale 1 + i / 8. The power 2^-14 turns e2m1's smallest normal
 * number into f16's smallest normal number. */
static __device__ __forceinline__ void nv_level(const bsmm_quantize_job *job, uint32_t thread,
                                                quantize_level *level) {
    bsmm_tensor_step t = job->tensor;
    if (job->amax) t = bsmm_lane_tensor(&job->tensor, &job->steps, __ldg(job->amax));
    float factor = bsmm_e4m3_torchao_factor((7u << 3) + thread, &t);
    level->factors[thread] = factor * 0x1p-14f;
    if (thread) return;
    level->multiplier = t.multiplier;
    level->divisor = t.divisor;
    level->by = t.multiplier;
    level->reciprocal = bsmm_div(1, t.multiplier);
    level->known = is_moderate(t.multiplier) & is_moderate(factor);
}

#if __CUDA_ARCH__ >= 890
/* Computes the e4m3 scale of a block whose largest magnitude is `amax`, and returns its code. Sets
 * *factor to the block's factor times 2^-14. Sets *rare if the slow path must quantize the block
 * instead, for one of two reasons. The first reason is that `amax` is too large or too small for
 * the fast division quotient(). The second reason is that the scale exceeds e4m3's range. The
 * scaled values may then be larger than nv_rounded allows. */
static __device__ __forceinline__ uint32_t nv_scale(const quantize_level *level, uint32_t amax,
                                                    float *factor, bool *rare) {
    float part = quotient(__uint_as_float(amax), 6, 1 / 6.0f);
    float scale = fmaxf(quotient(part, level->by, level->reciprocal), 0x1p-6f);
    uint32_t code = bsmm_ptx_cvt_e4m3x2(0, scale), exponent = code >> 3;
    *rare |= ((amax != 0) & !is_moderate(__uint_as_float(amax))) | (scale > 464);
    *factor =
        __uint_as_float(__float_as_uint(level->factors[code & 7]) + (7 << 23) - (exponent << 23));
    return code;
}
#endif

/* Rounds the magnitude of a value to e2m1. The caller has multiplied the value by 2^-14, and the
 * result is 2^-14 times an e2m1 number. The magnitude must be below 7 * 2^-14. Because of this
 * condition, the function is faster than e2m1_rounded. */
static __device__ __forceinline__ float nv_rounded(float value) {
    uint32_t unit = (__float_as_uint(value) & 0x7f800000u) + (22u << 23);
    float magic = __uint_as_float(max(unit, (127u - 14 + 22) << 23));
    return (fabsf(value) + magic) - magic;
}

/* Returns a word with the e2m1 code of value 2 i in the top 4 bits of its lower half, and that of
 * value 2 i + 1 in the top 4 bits of its upper half. */
static __device__ __forceinline__ uint32_t nv_tops(uint32_t elem, const uint32_t *raw, float factor,
                                                   int i) {
    float low = tame_value(elem, raw, 2 * i) * factor;
    float high = tame_value(elem, raw, 2 * i + 1) * factor;
    uint32_t signs =
        elem == BSMM_LANE_F32 ? __byte_perm(raw[2 * i], raw[2 * i + 1], 0x7632) : raw[i];
    return bsmm_ptx_cvt_f16x2(nv_rounded(high), nv_rounded(low)) * 8 | (signs & 0x80008000u);
}

static __device__ __forceinline__ void nv_item(uint32_t elem, const uint32_t *raw, float factor,
                                               uint32_t *to) {
    uint32_t tops[8];
    for (int i = 0; i < 8; i++)
        tops[i] = nv_tops(elem, raw, factor, i);
    to[0] = e2m1_packed(tops);
    to[1] = e2m1_packed(tops + 4);
}

static __device__ __forceinline__ item_position nv_position(const bsmm_quantize_job *job,
                                                            uint32_t row0, uint32_t k) {
    const uint64_t line = job->dst_lines.row_step / 2;
    const uint32_t row_stride = QUANTIZE_THREADS >> job->lanes_log2;
    const uint32_t n = k < job->cols ? min(job->cols - k, 16) : 0;
    item_position p = {row0, row_stride, n, job->dst + row0 * line + k / 2, row_stride * line};
    return p;
}

/* Stores the scale codes of a thread's blocks. The thread has one block in each of `items` rows,
 * and byte i of `codes` is the scale code in its row number i. Four adjacent threads have four
 * adjacent blocks of the same rows. If job->by_words is set, they exchange their codes so that each
 * of them stores all four codes of one row by one instruction. */
static __device__ __forceinline__ void nv_store_scales(const bsmm_quantize_job *job, int items,
                                                       const item_position *position, uint32_t k,
                                                       uint32_t codes) {
    if (job->by_words) {
        uint32_t mine = threadIdx.x % 4, row = position->row0 + mine * position->row_stride;
        uint32_t word = transposed_bytes(codes, 1);
        uint64_t at = word_at(&job->words, row, k / 64);
        if (mine < (uint32_t)items && row < job->rows && position->n)
            *(uint32_t *)(job->scales + at) = word;
        return;
    }
    uint64_t column = bsmm_axis_at(&job->col_map, min(k, job->cols - 1));
#pragma unroll 1
    for (int i = 0; i < items; i++) {
        uint32_t row = position->row0 + i * position->row_stride;
        if (row < job->rows && position->n)
            bsmm_lane_store_scale(job, row, column, codes >> 8 * i & 0xff);
    }
}

/* Quantizes one block of 16 values by the slow path and returns its scale code. */
static __device__ __forceinline__ uint32_t nv_define_item(const bsmm_quantize_job *job,
                                                          uint32_t elem, uint32_t n,
                                                          const uint8_t *from, uint8_t *to,
                                                          const quantize_level *level) {
    uint32_t raw[16], four[4], codes[2];
    load_part(elem == BSMM_LANE_F32 ? 4 : 2, from, n, raw);
    bsmm_block_step block =
        block_step(job, item_amax(elem, raw), level->multiplier, level->divisor);
    for (int j = 0; j < 4; j++)
        four[j] = any_four(job, block.factor, item_value(elem, raw, 4 * j),
                           item_value(elem, raw, 4 * j + 1), item_value(elem, raw, 4 * j + 2),
                           item_value(elem, raw, 4 * j + 3));
    cut_codes(n, four);
    pack_codes(4, four, codes);
    if (n) store_codes(job, 4, to, n, codes);
    return block.code;
}

/* Quantizes the blocks of a thread in all of its rows by the slow path. The function is not
 * inlined, because it rarely runs and must not increase the register pressure of the fast path. */
static __device__ __noinline__ void nv_define(const bsmm_quantize_job *job, uint32_t elem,
                                              int items, uint32_t row0, uint32_t k,
                                              const quantize_level *level) {
    const uint32_t bytes = elem == BSMM_LANE_F32 ? 4 : 2;
    const item_position p = nv_position(job, row0, k);
    uint32_t scales = 0;
#pragma unroll 1
    for (int i = 0; i < items; i++) {
        uint32_t row = row0 + i * p.row_stride;
        const uint8_t *from = job->src + (row * job->src_lines.row_step + k) * bytes;
        scales |=
            nv_define_item(job, elem, row < job->rows ? p.n : 0, from, p.to + i * p.to_step, level)
            << 8 * i;
    }
    nv_store_scales(job, items, &p, k, scales);
}

#endif
