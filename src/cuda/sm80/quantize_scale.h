/* Computes block scales for the kernels that quantize. The rule for the scales comes from the
 * recipe (the way of quantizing that the caller has chosen) in the job. */
#ifndef BSMM_CUDA_SM80_QUANTIZE_SCALE_H
#define BSMM_CUDA_SM80_QUANTIZE_SCALE_H

#include "cuda/ptx/convert.h"
#include "gpu/recode_lane.h"

/* Returns a / b for b > 0, correctly rounded. `reciprocal` is 1 / b, rounded. The first correction
 * step gives one of the two fp32 neighbors of the exact quotient, and the second step (Markstein's)
 * rounds correctly. This requires that the quotient and the remainders are far from the ends of
 * fp32's range. If the quotient is too small for that, the result may be inexact. This does no
 * harm, because every result format rounds such a quotient to 0. */
static __device__ __forceinline__ float quotient(float a, float b, float reciprocal) {
    float q = a * reciprocal;
    q = fmaf(fmaf(-b, q, a), reciprocal, q);
    q = fmaf(fmaf(-b, q, a), reciprocal, q);
    /* The multiplications lose the sign of a zero, so the code gives the quotient the sign of
     * `a`. */
    return __uint_as_float(__float_as_uint(q) | (__float_as_uint(a) & 0x80000000u));
}

/* Computes a block's scale and its factor by the job's rule. The function is not inlined, because
 * there are many rules, and a kernel calls it only once per block. */
static __device__ __noinline__ bsmm_block_step block_step(const bsmm_quantize_job *job,
                                                          uint32_t amax, float multiplier,
                                                          float divisor) {
    bsmm_tensor_step t = job->tensor;
    t.multiplier = multiplier;
    t.divisor = divisor;
    return bsmm_block_by(job->steps.block, __uint_as_float(amax), &t);
}

/* Holds the constants that all blocks of a tensor share. Each thread block computes them once and
 * keeps them in shared memory. */
typedef struct quantize_level {
    /* These numbers depend on the tensor's second-level scale. To compute a block's scale, a rule
     * multiplies the block's largest magnitude by `multiplier` or divides it by `divisor`. */
    float multiplier, divisor;
    /* e4m3_scale computes a block's scale from the largest magnitude in the block. `by` is the
     * number by which it multiplies or divides that magnitude, as the recipe says. `reciprocal` is
     * 1 / by. */
    float by, reciprocal;
    /* `known` is nonzero if `by` and factors[0] lie between 2^-60 and 2^60 (is_moderate). Only then
     * may threads use the fast division, i.e. a multiplication by the reciprocal and corrections,
     * because it gives the rounded quotient only for such numbers. The other elements of `factors`
     * need no test, because they differ from factors[0] by less than a factor of 2. */
    uint32_t known;
    /* The elements of blocks with the e4m3 scale 1 + i / 8 are multiplied or divided by factors[i].
     */
    float factors[8];
} quantize_level;

enum { LEVEL_FACTORS = 8 };

/* Returns true if the value lies between 2^-60 and 2^60. */
static __device__ __forceinline__ bool is_moderate(float value) {
    return __float_as_uint(value) - (67u << 23) <= 120u << 23;
}

/* Computes the constants that all blocks of a tensor share. Threads 0 to 7 call this function.
 * Thread i computes the factor with which a block is quantized whose e4m3 scale is 1 + i / 8. The
 * factor of any other scale follows from one of these eight: if a scale is multiplied by a power of
 * two, its factor is multiplied by a power of two. */
static __device__ __forceinline__ void make_level(const bsmm_quantize_job *job, uint32_t thread,
                                                  quantize_level *level) {
    bsmm_tensor_step t = job->tensor;
    if (job->amax) t = bsmm_lane_tensor(&job->tensor, &job->steps, __ldg(job->amax));
    /* `code` is the e4m3 code of the scale 1 + thread / 8. */
    uint32_t code = (7u << 3) + thread;
    float by = t.multiplier, factor = 1;
    if (job->steps.block == BSMM_BLOCK_E4M3_TORCHAO) factor = bsmm_e4m3_torchao_factor(code, &t);
    if (job->steps.block == BSMM_BLOCK_E4M3_TE) {
        by = bsmm_mul(t.divisor, 1 / t.max);
        factor = bsmm_e4m3_te_factor(code, &t);
    }
    if (job->steps.block == BSMM_BLOCK_E4M3_MODELOPT) {
        by = bsmm_mul(t.max, t.multiplier);
        factor = bsmm_e4m3_modelopt_factor(code, &t);
    }
    if (job->steps.block == BSMM_BLOCK_E4M3_COMPRESSED_TENSORS) {
        by = t.divisor;
        factor = bsmm_e4m3_compressed_tensors_factor(code, &t);
    }
    level->factors[thread] = factor;
    if (thread) return;
    level->multiplier = t.multiplier;
    level->divisor = t.divisor;
    level->by = by;
    level->reciprocal = bsmm_div(1, by);
    level->known = is_moderate(by) & is_moderate(factor);
}

#if __CUDA_ARCH__ >= 890
/* Returns a block's scale before it is rounded to e4m3, by the rules of recipe/rules_e4m3.h. The
 * function divides by the fast function quotient(), so dividends and divisors must lie between
 * 2^-60 and 2^60 (is_moderate). */
static __device__ __forceinline__ float e4m3_scale(const bsmm_quantize_job *job, float amax,
                                                   const quantize_level *level) {
    bsmm_block_rule rule = job->steps.block;
    if (rule == BSMM_BLOCK_E4M3_TE) return amax * level->by;
    if (rule == BSMM_BLOCK_E4M3_MODELOPT)
        return fmaxf(quotient(amax, level->by, level->reciprocal), 0x1p-9f);
    float part = quotient(amax, 6, 1 / 6.0f);
    if (rule == BSMM_BLOCK_E4M3_COMPRESSED_TENSORS)
        return level->by * bsmm_round_to(&job->tensor, part);
    return fmaxf(quotient(part, level->by, level->reciprocal), 0x1p-6f);
}

/* Computes the e4m3 scale and the factor of a block of e2m1 elements without divisions. Sets *known
 * to false if a value does not lie between 2^-60 and 2^60 (is_moderate) or the scale is not normal.
 * The caller must then not use the result. */
static __device__ __forceinline__ bsmm_block_step quick_e4m3(const bsmm_quantize_job *job,
                                                             float amax,
                                                             const quantize_level *level,
                                                             bool *known) {
    float scale = e4m3_scale(job, amax, level);
    uint32_t code = bsmm_ptx_cvt_e4m3x2(0, scale), exponent = code >> 3;
    /* level->factors has the factors of scales from 1 to 1.875, whose exponent field is 7. For
     * another exponent, the factor is multiplied by a power of two. `grows` is true if elements are
     * divided by the factor, which then grows with the scale. Otherwise elements are multiplied by
     * the factor, which shrinks as the scale grows. */
    bool grows = job->steps.step == BSMM_STEP_DIVIDE;
    uint32_t binades = grows ? exponent - 7 : 7 - exponent;
    float factor = __uint_as_float(__float_as_uint(level->factors[code & 7]) + (binades << 23));
    *known = ((amax == 0) | is_moderate(amax)) & level->known & (exponent != 0);
    return bsmm_block_step_of(code, factor);
}
#endif

/* Computes a block's scale, and the factor by which the block's values are multiplied or divided.
 * The most common rule is inlined, which saves time. */
static __device__ __forceinline__ bsmm_block_step quick_step(const bsmm_quantize_job *job,
                                                             uint32_t amax, float multiplier,
                                                             float divisor) {
    if (job->steps.block == BSMM_BLOCK_E8M0_FLOOR)
        return bsmm_e8m0_floor(__uint_as_float(amax), &job->tensor);
    return block_step(job, amax, multiplier, divisor);
}

/* Computes a block's scale and factor by any rule. e4m3 scales of e2m1 elements take a fast path,
 * which is inlined. */
static __device__ __forceinline__ bsmm_block_step quick_step_by(const bsmm_quantize_job *job,
                                                                uint32_t amax,
                                                                const quantize_level *level) {
#if __CUDA_ARCH__ >= 890
    if (job->tables) {
        bool known;
        bsmm_block_step step = quick_e4m3(job, __uint_as_float(amax), level, &known);
        if (known) return step;
    }
#endif
    return quick_step(job, amax, level->multiplier, level->divisor);
}

#endif
