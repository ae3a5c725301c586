/* This file has the table of scale formats. Each scale format is stored as codes of an element
 * format. */
#include "format/format.h"

static const bsmm_scale_row rows[] = {
#define SCALE(id, text, of, size) {.name = text, .elem = BSMM_ELEM_##of, .bytes = size},
#include "format/scale.def"
#undef SCALE
};

#define SCALE(id, text, of, size)                                                                  \
    _Static_assert((int)BSMM_SCALE_##id == (int)BSMM_SCALE_ROW_##id,                               \
                   #id " is not in the order of bsmm_scale");
#include "format/scale.def"
#undef SCALE

/* The switch below lists all scale formats of scale.def. With -Wswitch as an error, the code does
 * not compile if a value of the enum bsmm_scale has no entry in scale.def. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static bool has_row(bsmm_scale scale) {
    switch (scale) {
#define SCALE(id, ...) case BSMM_SCALE_##id:
#include "format/scale.def"
#undef SCALE
        return true;
    }
    return false;
}
#pragma GCC diagnostic pop

const bsmm_scale_row *bsmm_scale_row_of(uint32_t scale) {
    return has_row((bsmm_scale)scale) ? &rows[scale] : NULL;
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
