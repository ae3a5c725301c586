/* From an element format's row to the codecs that kernels use. */
#include "gpu/params.h"

#include <math.h>

static uint32_t special_of(uint32_t elem) {
    return elem == BSMM_ELEM_E4M3 ? 0x7f : elem == BSMM_ELEM_E5M2 ? 0x7c : 0x80;
}

bsmm_narrow_codec bsmm_narrow_codec_of(uint32_t elem) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    uint32_t shift = 23 - info->mantissa_bits, sign = 1u << (info->bits - 1);
    bool fnuz = elem == BSMM_ELEM_E4M3FNUZ || elem == BSMM_ELEM_E5M2FNUZ;
    return (bsmm_narrow_codec){
        .up = 32 - info->bits,
        .down = 32 - info->bits - shift,
        .mask = 0x80000000u | (sign - 1) << shift,
        .unbias = bsmm_pow2(127 - info->bias),
        .sign = sign,
        .special = special_of(elem),
        .inf = elem == BSMM_ELEM_E5M2 ? 0x7c : 0xff,
        .lone_nan = fnuz ? 0x80 : 0x100,
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
    uint32_t up = mantissa - info->mantissa_bits; /* of the magnitude, from bit 0 */
    uint32_t unbias = (uint32_t)(2 * (to_bf16 ? 127 : 15) - info->bias) << mantissa;
    uint32_t down = 15 - magnitude - up;
    return (bsmm_pair_codec){.down = down,
                             .up = 1u << (8 - down),
                             .mask = (((1u << magnitude) - 1) << up) * 0x00010001u,
                             .unbias = unbias * 0x00010001u,
                             .special = (0x80 - special_of(elem)) * 0x01010101u};
}
