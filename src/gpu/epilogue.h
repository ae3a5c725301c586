/* This is the epilogue of GPU kernels. It converts an accumulator to a stored element of D. It
 * computes (alpha * accumulator + beta * C + bias) / (global scale of D) in double and rounds the
 * result once. The factor alpha includes the global scales of A and B. A global scale is the
 * second-level scale of a whole tensor. */
#ifndef BSMM_GPU_EPILOGUE_H
#define BSMM_GPU_EPILOGUE_H

#include "gpu/operand.h"

typedef struct bsmm_gpu_epilogue {
    void *d;
    /* `c` is C and `bias` is the bias vector. Each is NULL if the GEMM has none. */
    const void *c, *bias;
    /* `d_row` and `d_col` are the strides of D's rows and columns, in elements. */
    uint64_t d_row, d_col;
    uint64_t c_row, c_col;
    double alpha, beta;
    /* `globals` points to the global scales of A, B and D in device memory. NULL means 1. */
    const float *globals[3];
    /* divides[i] is nonzero if values of A, B or D (i = 0, 1, 2) are divided by their global scale
     * instead of multiplied by it. */
    uint32_t divides[3];
    uint32_t d_elem, c_elem, bias_elem;
    uint32_t d_nan; /* `d_nan` is the code that is stored for a NaN result. */
    /* `d_codec` holds the constants that encode D's elements if they have 8 bits. */
    bsmm_narrow_codec d_codec;
} bsmm_gpu_epilogue;

/* Loads element `index` of an fp32, f16 or bf16 array. */
BSMM_DEVICE float bsmm_gpu_epilogue_load(uint32_t elem, const void *from, uint64_t index) {
    if (elem == BSMM_ELEM_F32) return ((const float *)from)[index];
    uint32_t code = ((const uint16_t *)from)[index];
    return elem == BSMM_ELEM_F16 ? bsmm_gpu_f16_value(code) : bsmm_bits_float(code << 16);
}

/* Rounds a double to fp32 by rounding to odd: an inexact result is truncated, and its last bit is
 * set to 1. A second rounding, to 22 bits or fewer, then gives the same result as one rounding of
 * the double. */
BSMM_DEVICE float bsmm_gpu_epilogue_odd(double value) {
    float toward_zero = bsmm_double_toward_zero(value);
    uint32_t inexact = (double)toward_zero != value;
    return bsmm_bits_float(bsmm_float_bits(toward_zero) | inexact);
}

BSMM_DEVICE uint32_t bsmm_gpu_epilogue_bf16(float odd) {
    uint32_t bits = bsmm_float_bits(odd);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Encodes an fp32 number as f16, rounded to the nearest value with ties to even. Overflow gives
 * Inf. If the result is subnormal in f16, the function adds 0.5 in fp32. fp32 numbers near 0.5 have
 * the same unit in the last place, 2^-24, as f16's subnormals. The addition therefore rounds
 * correctly, and the last bits of the sum are the code. */
BSMM_DEVICE uint32_t bsmm_gpu_epilogue_f16(float odd) {
    uint32_t bits = bsmm_float_bits(odd), a = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000;
    if (a >= 0x47800000u) return sign | 0x7c00;
    if (a < 0x38800000u) return sign | (bsmm_float_bits(bsmm_bits_float(a) + 0.5f) - 0x3f000000u);
    return sign | (a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13;
}

/* Returns the code of a value in D's format. f16 and bf16 overflow to Inf, and 8-bit formats
 * saturate. Every NaN gives the same code. */
BSMM_DEVICE uint32_t bsmm_gpu_epilogue_code(const bsmm_gpu_epilogue *e, double value) {
    if (isnan(value)) return e->d_nan;
    if (e->d_elem == BSMM_ELEM_F32) return bsmm_float_bits(bsmm_double_to_float(value));
    float odd = bsmm_gpu_epilogue_odd(value);
    if (e->d_elem == BSMM_ELEM_BF16) return bsmm_gpu_epilogue_bf16(odd);
    if (e->d_elem == BSMM_ELEM_F16) return bsmm_gpu_epilogue_f16(odd);
    uint32_t code = bsmm_narrow_code(&e->d_codec, odd);
    return code == e->d_codec.lone_nan ? 0 : code;
}

BSMM_DEVICE double bsmm_gpu_epilogue_global(const bsmm_gpu_epilogue *e, int i) {
    if (!e->globals[i]) return 1;
    double global = (double)*e->globals[i];
    return e->divides[i] ? 1 / global : global;
}

/* Holds the factors of the epilogue that are the same for all elements of D. Each thread loads them
 * once, before it stores its results. */
typedef struct bsmm_gpu_epilogue_factors {
    double factor; /* `factor` is alpha times the global scales of A and B. */
    double global; /* `global` is the global scale of D, by which results are divided. */
} bsmm_gpu_epilogue_factors;

BSMM_DEVICE bsmm_gpu_epilogue_factors bsmm_gpu_epilogue_begin(const bsmm_gpu_epilogue *e) {
    bsmm_gpu_epilogue_factors f;
    f.factor = e->alpha * bsmm_gpu_epilogue_global(e, 0) * bsmm_gpu_epilogue_global(e, 1);
    f.global = bsmm_gpu_epilogue_global(e, 2);
    return f;
}

/* Returns the code of D(row, col). `sum` is the accumulator, i.e. the dot product of a row of A and
 * a row of B with the block scales applied. */
BSMM_DEVICE uint32_t bsmm_gpu_epilogue_result(const bsmm_gpu_epilogue *e,
                                              const bsmm_gpu_epilogue_factors *f, uint32_t row,
                                              uint32_t col, double sum) {
    double value = f->factor * sum;
    if (e->c)
        value += e->beta *
                 (double)bsmm_gpu_epilogue_load(e->c_elem, e->c, row * e->c_row + col * e->c_col);
    if (e->bias) value += (double)bsmm_gpu_epilogue_load(e->bias_elem, e->bias, col);
    if (f->global != 1) value /= f->global;
    return bsmm_gpu_epilogue_code(e, value);
}

/* Stores `code`, an element in D's format, as D(row, col). */
BSMM_DEVICE void bsmm_gpu_epilogue_put(const bsmm_gpu_epilogue *e, uint32_t row, uint32_t col,
                                       uint32_t code) {
    uint64_t index = row * e->d_row + col * e->d_col;
    if (e->d_elem == BSMM_ELEM_F32)
        ((uint32_t *)e->d)[index] = code;
    else if (e->d_elem == BSMM_ELEM_F16 || e->d_elem == BSMM_ELEM_BF16)
        ((uint16_t *)e->d)[index] = (uint16_t)code;
    else
        ((uint8_t *)e->d)[index] = (uint8_t)code;
}

/* Computes D(row, col) from its accumulator `sum` and stores it. */
BSMM_DEVICE void bsmm_gpu_epilogue_store(const bsmm_gpu_epilogue *e,
                                         const bsmm_gpu_epilogue_factors *f, uint32_t row,
                                         uint32_t col, double sum) {
    bsmm_gpu_epilogue_put(e, row, col, bsmm_gpu_epilogue_result(e, f, row, col, sum));
}

/* Recomputes one dot product in double, because its fp32 accumulator may be wrong: it is NaN or
 * Inf, or so small that terms may have been lost to underflow. All lanes of the warp work together
 * and add in a fixed order. Each lane gets the result. */
BSMM_DEVICE_RARE double bsmm_gpu_epilogue_sum_again(const bsmm_gpu_operand *a,
                                                    const bsmm_gpu_operand *b, uint32_t row,
                                                    uint32_t col, uint32_t k) {
    double sum = 0;
#if defined(__CUDA_ARCH__)
#    pragma unroll 1
#endif
    for (uint32_t i = bsmm_device_lane(); i < k; i += BSMM_LANES)
        sum = fma(bsmm_gpu_value(a, row, i), bsmm_gpu_value(b, col, i), sum);
    for (int distance = BSMM_LANES / 2; distance > 0; distance /= 2)
        sum += bsmm_device_exchange(sum, distance);
    return sum;
}

#endif
