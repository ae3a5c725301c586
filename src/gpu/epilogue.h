/* From a sum to a stored result, as kernels do it: round((alpha * sum + beta * C + bias) / global)
 * of D, in double, rounded once. */
#ifndef BSMM_GPU_EPILOGUE_H
#define BSMM_GPU_EPILOGUE_H

#include "gpu/operand.h"

typedef struct bsmm_gpu_epilogue {
    void *d;
    const void *c, *bias;  /* NULL: none */
    uint64_t d_row, d_col; /* elements from one row, one column to the next */
    uint64_t c_row, c_col;
    double alpha, beta;
    const float *globals[3]; /* of A, B and D, in the device's memory; NULL: 1 */
    uint32_t divides[3];     /* the global scale is a divisor */
    uint32_t d_elem, c_elem, bias_elem;
    uint32_t d_nan;            /* the code of NaN */
    bsmm_narrow_codec d_codec; /* of an 8-bit D */
} bsmm_gpu_epilogue;

/* fp32, f16 or bf16 number `index`. */
BSMM_DEVICE float bsmm_gpu_epilogue_load(uint32_t elem, const void *from, uint64_t index) {
    if (elem == BSMM_ELEM_F32) return ((const float *)from)[index];
    uint32_t code = ((const uint16_t *)from)[index];
    return elem == BSMM_ELEM_F16 ? bsmm_gpu_f16_value(code) : bsmm_bits_float(code << 16);
}

/* To fp32 by rounding to odd: what is inexact ends in 1, so that a second rounding to 22 bits or
 * fewer gives what one rounding would. */
BSMM_DEVICE float bsmm_gpu_epilogue_odd(double value) {
    float toward_zero = bsmm_double_toward_zero(value);
    uint32_t inexact = (double)toward_zero != value;
    return bsmm_bits_float(bsmm_float_bits(toward_zero) | inexact);
}

BSMM_DEVICE uint32_t bsmm_gpu_epilogue_bf16(float odd) {
    uint32_t bits = bsmm_float_bits(odd);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Nearest even; overflows to Inf. Subnormals: the sum with 2^-1 has their last place. */
BSMM_DEVICE uint32_t bsmm_gpu_epilogue_f16(float odd) {
    uint32_t bits = bsmm_float_bits(odd), a = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000;
    if (a >= 0x47800000u) return sign | 0x7c00;
    if (a < 0x38800000u) return sign | (bsmm_float_bits(bsmm_bits_float(a) + 0.5f) - 0x3f000000u);
    return sign | (a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13;
}

/* The code of a value of D. f16 and bf16 overflow to Inf, 8-bit formats saturate; every NaN is the
 * same. */
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

/* What one thread reads once for all of its results. */
typedef struct bsmm_gpu_epilogue_factors {
    double factor; /* alpha and the operands' global scales */
    double global; /* of D: what is divided by */
} bsmm_gpu_epilogue_factors;

BSMM_DEVICE bsmm_gpu_epilogue_factors bsmm_gpu_epilogue_begin(const bsmm_gpu_epilogue *e) {
    bsmm_gpu_epilogue_factors f;
    f.factor = e->alpha * bsmm_gpu_epilogue_global(e, 0) * bsmm_gpu_epilogue_global(e, 1);
    f.global = bsmm_gpu_epilogue_global(e, 2);
    return f;
}

/* Stores D(row, col) from the sum over K of products of elements and block scales. */
BSMM_DEVICE void bsmm_gpu_epilogue_store(const bsmm_gpu_epilogue *e,
                                         const bsmm_gpu_epilogue_factors *f, uint32_t row,
                                         uint32_t col, double sum) {
    double value = f->factor * sum;
    if (e->c)
        value += e->beta *
                 (double)bsmm_gpu_epilogue_load(e->c_elem, e->c, row * e->c_row + col * e->c_col);
    if (e->bias) value += (double)bsmm_gpu_epilogue_load(e->bias_elem, e->bias, col);
    if (f->global != 1) value /= f->global;
    uint32_t code = bsmm_gpu_epilogue_code(e, value);
    uint64_t index = row * e->d_row + col * e->d_col;
    if (e->d_elem == BSMM_ELEM_F32)
        ((uint32_t *)e->d)[index] = code;
    else if (e->d_elem == BSMM_ELEM_F16 || e->d_elem == BSMM_ELEM_BF16)
        ((uint16_t *)e->d)[index] = (uint16_t)code;
    else
        ((uint8_t *)e->d)[index] = (uint8_t)code;
}

/* A sum again in double, by all lanes together, in one fixed order; every lane gets it. For results
 * whose fp32 sum cannot be trusted: NaN, Inf, or so small that terms may have been lost. */
BSMM_DEVICE_RARE double bsmm_gpu_epilogue_sum_again(const bsmm_gpu_operand *a,
                                                    const bsmm_gpu_operand *b, uint32_t row,
                                                    uint32_t col, uint32_t k) {
    double sum = 0;
    for (uint32_t i = bsmm_device_lane(); i < k; i += BSMM_LANES)
        sum = fma(bsmm_gpu_value(a, row, i), bsmm_gpu_value(b, col, i), sum);
    for (int distance = BSMM_LANES / 2; distance > 0; distance /= 2)
        sum += bsmm_device_exchange(sum, distance);
    return sum;
}

#endif
