/* Scale formats: which element format a scale's codes have. */
#include "format/format.h"

static const bsmm_scale_row rows[] = {
    [BSMM_SCALE_NONE] = {"none", BSMM_ELEM_NONE, 0},
    [BSMM_SCALE_E8M0] = {"e8m0", BSMM_ELEM_E8M0, 1},
    [BSMM_SCALE_E4M3] = {"e4m3", BSMM_ELEM_E4M3, 1},
    [BSMM_SCALE_F32] = {"f32", BSMM_ELEM_F32, 4},
};

const bsmm_scale_row *bsmm_scale_row_of(uint32_t scale) {
    return scale < BSMM_COUNT(rows) ? &rows[scale] : NULL;
}

uint32_t bsmm_scale_load_code(uint32_t scale, const void *base, uint64_t offset) {
    return bsmm_elem_load(rows[scale].elem, base, offset);
}

double bsmm_scale_load(uint32_t scale, const void *base, uint64_t offset) {
    return bsmm_elem_decode(rows[scale].elem, bsmm_scale_load_code(scale, base, offset));
}

void bsmm_scale_store_code(uint32_t scale, void *base, uint64_t offset, uint32_t code) {
    bsmm_elem_store(rows[scale].elem, base, offset, code);
}
