/* Decodes and encodes bf16, f16, e4m3 and e5m2 by the library's tables of formats. The emulated PTX
 * conversions (cuda/ptx/values.h) call these functions. */
#include "format/format.h"

double emulated_decode(uint32_t elem, uint32_t code);
uint32_t emulated_encode(uint32_t elem, double value);

static const uint32_t elems[] = {BSMM_ELEM_BF16, BSMM_ELEM_F16, BSMM_ELEM_E4M3, BSMM_ELEM_E5M2};

double emulated_decode(uint32_t elem, uint32_t code) {
    return bsmm_elem_decode(elems[elem], code);
}

/* Encodes a value as a GPU does: each 16-bit format has a single NaN, and 8-bit formats
 * saturate. */
uint32_t emulated_encode(uint32_t elem, double value) {
    if (value != value) return elem < 2 ? 0x7fff : 0x7f;
    return bsmm_elem_encode(elems[elem], value, elem >= 2);
}
