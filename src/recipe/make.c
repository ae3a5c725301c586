/* Computes the constants that recipes need from the table of element formats. */
#include "recipe/make.h"

#include <math.h>
#include <string.h>

static void set_zero_sign(bsmm_coder *coder, bsmm_zero_sign rule, bool one_zero) {
    coder->zero_and = rule == BSMM_ZERO_KEEPS_SIGN ? UINT32_MAX : 0;
    coder->zero_or = rule == BSMM_ZERO_MINUS ? 0x80000000u : 0;
    coder->zero_code_and = rule == BSMM_ZERO_CODE_PLUS || one_zero ? 0 : UINT32_MAX;
}

bsmm_coder bsmm_coder_make(uint32_t elem, bool saturate, bsmm_ties ties, bsmm_zero_sign zero_sign) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    uint32_t shift = 23 - info->mantissa_bits, sign = 1u << (info->bits - 1);
    bsmm_coder coder;
    memset(&coder, 0, sizeof coder); /* The padding, which GPU kernels get too, is zero. */
    coder.shift = shift;
    coder.rebias = ((uint32_t)(info->bias - 127) << 23) + ((1u << shift) >> 1) - 1;
    coder.min_normal = bsmm_float_bits((float)info->min_normal);
    coder.magic = bsmm_float_bits(ldexpf((float)info->min_subnormal, 23));
    coder.max_code = bsmm_elem_encode(elem, INFINITY, saturate);
    coder.nan_code = bsmm_elem_encode(elem, NAN, true) & ~sign;
    coder.sign_shift = 32 - info->bits;
    coder.down = ties == BSMM_TIES_DOWN;
    bool one_zero = bsmm_elem_encode(elem, -0.0, true) == 0;
    coder.nan_sign = one_zero ? sign : 0;
    coder.nan_code |= coder.nan_sign;
    set_zero_sign(&coder, zero_sign, one_zero);
    return coder;
}

bsmm_tensor_step bsmm_tensor_step_make(uint32_t elem, uint32_t source_elem, bool pow2) {
    const bsmm_elem_info *info = bsmm_elem_row(elem), *source = bsmm_elem_row(source_elem);
    bsmm_tensor_step step;
    memset(&step, 0, sizeof step); /* The padding, which GPU kernels get too, is zero. */
    step.max = (float)info->max;
    step.emax = ilogb(info->max);
    step.mantissa_bits = info->mantissa_bits;
    step.source_elem = source_elem;
    step.source_max = (float)source->max;
    step.source_min_normal = (float)source->min_normal;
    step.multiplier = 1;
    step.divisor = 1;
    step.pow2 = pow2;
    return step;
}
