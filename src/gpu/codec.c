/* Makes the constants with which kernels encode and decode an element format. The function derives
 * them from the format's entry in the table of elements (format/elem.def). */
#include "gpu/params.h"

#include <math.h>

/* Returns true if the device code supports an element format. The device code decodes formats by
 * the constants of bsmm_narrow_codec. For a format that is missing in this function, the constants
 * may be wrong. */
bool bsmm_gpu_knows_elem(uint32_t elem) {
    static const bool known[BSMM_ELEM_COUNT] = {
        [BSMM_ELEM_F32] = true,      [BSMM_ELEM_F16] = true,  [BSMM_ELEM_BF16] = true,
        [BSMM_ELEM_E4M3] = true,     [BSMM_ELEM_E5M2] = true, [BSMM_ELEM_E4M3FNUZ] = true,
        [BSMM_ELEM_E5M2FNUZ] = true, [BSMM_ELEM_E3M2] = true, [BSMM_ELEM_E2M3] = true,
        [BSMM_ELEM_E2M1] = true,
    };
    return elem < BSMM_ELEM_COUNT && known[elem];
}

/* Returns the smallest magnitude code of an 8-bit format that is not finite. 0x80 means that every
 * magnitude code is finite. */
static uint32_t special_of(uint32_t elem) {
    return isfinite(bsmm_elem_decode(elem, 0x7f)) ? 0x80
           : bsmm_elem_traits_of[elem].has_inf    ? bsmm_elem_encode(elem, INFINITY, false)
                                                  : 0x7f;
}

bsmm_narrow_codec bsmm_narrow_codec_of(uint32_t elem) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    uint32_t shift = 23 - info->mantissa_bits, sign = 1u << (info->bits - 1);
    const bsmm_elem_traits *traits = &bsmm_elem_traits_of[elem];
    return (bsmm_narrow_codec){
        .up = 32 - info->bits,
        .down = 32 - info->bits - shift,
        .mask = 0x80000000u | (sign - 1) << shift,
        .unbias = bsmm_pow2(127 - info->bias),
        .sign = sign,
        .special = special_of(elem),
        .inf = traits->has_inf ? bsmm_elem_encode(elem, INFINITY, false) : 0xff,
        .lone_nan = traits->lone_nan ? 0x80 : 0x100,
        .low = (int32_t)ilogb(info->min_subnormal),
        .high = (int32_t)ilogb(info->max) + 1,
        .shift = shift,
        .rebias = ((uint32_t)(info->bias - 127) << 23) + ((1u << shift) >> 1) - 1,
        .min_normal = bsmm_float_bits((float)info->min_normal),
        .magic = bsmm_float_bits(ldexpf((float)info->min_subnormal, 23)),
        .max_code = bsmm_elem_encode(elem, INFINITY, true),
    };
}

bsmm_pair_codec bsmm_pair_codec_of(uint32_t elem, bool to_bf16) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    uint32_t mantissa = to_bf16 ? 7 : 10, magnitude = info->bits - 1;
    /* `up` is the left shift that moves a magnitude from bit 0 to its position in a 16-bit
     * float. */
    uint32_t up = mantissa - info->mantissa_bits;
    uint32_t unbias = (uint32_t)(2 * (to_bf16 ? 127 : 15) - info->bias) << mantissa;
    uint32_t down = 15 - magnitude - up;
    return (bsmm_pair_codec){.down = down,
                             .up = 1u << (8 - down),
                             .mask = (((1u << magnitude) - 1) << up) * 0x00010001u,
                             .unbias = unbias * 0x00010001u,
                             .special = (0x80 - special_of(elem)) * 0x01010101u};
}
