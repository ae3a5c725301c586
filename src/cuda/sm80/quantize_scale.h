/* Computes the block scales of the quantizing kernels. */
#ifndef BSMM_CUDA_SM80_QUANTIZE_SCALE_H
#define BSMM_CUDA_SM80_QUANTIZE_SCALE_H

#include "cuda/ptx/convert.h"
#include "gpu/recode_lane.h"

/* Returns a / b for b > 0, correctly rounded, from the rounded reciprocal of b. The first
 * correction gives a faithful quotient, and the second (Markstein's) rounds it correctly. Quotients
 * and remainders must be far from the ends of fp32's range. A quotient that is so small that this
 * does not hold becomes 0 in every format here. */
static __device__ __forceinline__ float quotient(float a, float b, float reciprocal) {
    float q = a * reciprocal;
    q = fmaf(fmaf(-b, q, a), reciprocal, q);
    q = fmaf(fmaf(-b, q, a), reciprocal, q);
    /* The quotient gets the sign of `a`, which it has lost if it is zero. */
    return __uint_as_float(__float_as_uint(q) | (__float_as_uint(a) & 0x80000000u));
}

/* Computes a block's scale by the job's rule. It is not inlined, because there are many rules and
 * each is used once per block. */
static __device__ __noinline__ bsmm_block_step block_step(const bsmm_quantize_job *job,
                                                          uint32_t amax, float multiplier,
                                                          float divisor) {
    bsmm_tensor_step t = job->tensor;
    t.multiplier = multiplier;
    t.divisor = divisor;
    return bsmm_block_by(job->steps.block, __uint_as_float(amax), &t);
}

/* Values that all blocks of a tensor share, computed once per thread block. */
typedef struct quantize_level {
    /* The factors of the second-level scale, which applies to the whole tensor. */
    float multiplier, divisor;
    /* The number by which e4m3_scale multiplies or divides, and its reciprocal. */
    float by, reciprocal;
    uint32_t known;   /* Nonzero if `by` and the factors are within the range of is_moderate. */
    float factors[8]; /* The factors for the scales 1 to 1.875. */
} quantize_level;

enum { LEVEL_FACTORS = 8 };

/* Returns true if the value lies within a factor of 2^60 of 1. */
static __device__ __forceinline__ bool is_moderate(float value) {
    return __float_as_uint(value) - (67u << 23) <= 120u << 23;
}

/* Computes what all blocks of a tensor share. Threads 0 to 7 call it. Eight factors suffice,
 * because multiplying a scale by a power of two changes its factor by the same power of two. */
static __device__ __forceinline__ void make_level(const bsmm_quantize_job *job, uint32_t thread,
                                                  quantize_level *level) {
    bsmm_tensor_step t = job->tensor;
    if (job->amax) t = bsmm_lane_tensor(&job->tensor, &job->steps, __ldg(job->amax));
    /* The thread computes the code of one of the scales 1 to 1.875. */
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
/* Returns a block's scale before rounding. It follows the rules of recipe/rules_e4m3.h, but divides
 * by quotient(), so its arguments must be within the range of is_moderate. */
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

/* Computes a block's e4m3 scale for e2m1 elements without divisions. Sets *known to false if a
 * value is outside the range of is_moderate or the scale is not normal. */
static __device__ __forceinline__ bsmm_block_step quick_e4m3(const bsmm_quantize_job *job,
                                                             float amax,
                                                             const quantize_level *level,
                                                             bool *known) {
    float scale = e4m3_scale(job, amax, level);
    uint32_t code = bsmm_ptx_cvt_e4m3x2(0, scale), exponent = code >> 3;
    /* True if the factor grows with the scale, because elements are divided by it. */
    bool grows = job->steps.step == BSMM_STEP_DIVIDE;
    uint32_t binades = grows ? exponent - 7 : 7 - exponent;
    float factor = __uint_as_float(__float_as_uint(level->factors[code & 7]) + (binades << 23));
    *known = ((amax == 0) | is_moderate(amax)) & level->known & (exponent != 0);
    return bsmm_block_step_of(code, factor);
}
#endif

/* Computes a block's scale. The most common rule is inlined. */
static __device__ __forceinline__ bsmm_block_step quick_step(const bsmm_quantize_job *job,
                                                             uint32_t amax, float multiplier,
                                                             float divisor) {
    if (job->steps.block == BSMM_BLOCK_E8M0_FLOOR)
        return bsmm_e8m0_floor(__uint_as_float(amax), &job->tensor);
    return block_step(job, amax, multiplier, divisor);
}

/* Computes a block's scale like quick_step, and inlines the rules for e4m3 scales of e2m1 elements
 * too. */
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
