/* Makes the packers' tables of element values, once per process, from the tables of src/format. */
#include "cpu/pack/pack.h"

#include <math.h>
#include <pthread.h>

static bsmm_pack_table tables[BSMM_ELEM_COUNT];
/* `scales` holds the values of the codes of 1-byte scale formats. */
static float scales[BSMM_SCALE_COUNT][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_integers(uint32_t elem, bsmm_pack_table *t) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    t->log2_multiple = -ilogb(info->min_subnormal);
    int32_t multiple = 1 << t->log2_multiple;
    t->largest = (int32_t)(info->max * multiple);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t code = i & ((1u << info->bits) - 1);
        t->a[i] = (int8_t)(bsmm_elem_decode(elem, code) * multiple);
        t->b[i] = (int8_t)(t->a[i] + t->largest);
    }
}

static void make_table(uint32_t elem, bsmm_pack_table *t) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    t->lowest_bit = ilogb(info->min_subnormal);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t code = i & ((1u << info->bits) - 1);
        uint32_t bf16 = bsmm_elem_encode(BSMM_ELEM_BF16, bsmm_elem_decode(elem, code), false);
        t->low[i] = (uint8_t)(bf16 & 0xff);
        t->high[i] = (uint8_t)(bf16 >> 8);
    }
    if (bsmm_elem_traits_of[elem].small_integer) make_integers(elem, t);
}

static void make_tables(void) {
    for (uint32_t elem = 1; elem < BSMM_ELEM_COUNT; elem++) {
        tables[elem].elem = elem;
        if (bsmm_elem_is_narrow(elem)) make_table(elem, &tables[elem]);
    }
    for (uint32_t scale = 0; scale < BSMM_SCALE_COUNT; scale++)
        for (uint32_t code = 0; code < 256 && bsmm_scale_row_of(scale)->bytes == 1; code++)
            scales[scale][code] = (float)bsmm_elem_decode(bsmm_scale_row_of(scale)->elem, code);
}

const bsmm_pack_table *bsmm_pack_table_of(uint32_t elem) {
    pthread_once(&once, make_tables);
    return &tables[elem];
}

const float *bsmm_pack_scales_of(uint32_t scale) {
    pthread_once(&once, make_tables);
    return scales[scale];
}
