/* Element, scale and layout formats as everything else asks about them: how many there are, and
 * what follows from a format's row. The rows are elem.def, scale.def and layout.def. */
#ifndef BSMM_ELEM_H
#define BSMM_ELEM_H

#include "base/base.h"

/* Counts include the value 0, so that arrays of this size take any valid value as an index. */
enum {
#define ELEM(id, ...) BSMM_ELEM_ROW_##id,
#include "format/elem.def"
#undef ELEM
    BSMM_ELEM_ROWS,
    BSMM_ELEM_COUNT = BSMM_ELEM_ROWS + 1 /* NONE has no row */
};
enum {
#define SCALE(id, ...) BSMM_SCALE_ROW_##id,
#include "format/scale.def"
#undef SCALE
    BSMM_SCALE_COUNT
};
enum {
#define LAYOUT(id, ...) BSMM_LAYOUT_ROW_##id,
#include "format/layout.def"
#undef LAYOUT
    BSMM_LAYOUT_COUNT
};

/* What code branches on; elem.c computes it from the row's figures. */
typedef struct bsmm_elem_traits {
    bool in_matrices;   /* false: for scales alone */
    bool wide;          /* more than 8 bits: f32, f16 and bf16 alone */
    bool narrow;        /* 8 bits and fewer, in matrices */
    bool small_integer; /* at most 6 bits; values are integers times min_subnormal, at most 63 */
    bool exact_in_bf16, exact_in_f16;
    bool shifts_to_f16; /* a finite code's exponent and mantissa are those of a finite f16, whose
                           value differs by a power of two alone */
    bool has_inf;
    bool lone_nan; /* the only NaN is the sign bit by itself (fnuz) */
} bsmm_elem_traits;

/* [bsmm_elem]; nothing is true of NONE. */
extern const bsmm_elem_traits bsmm_elem_traits_of[BSMM_ELEM_COUNT];

/* The two that are asked most; of any number. */
static inline bool bsmm_elem_is_wide(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].wide;
}
static inline bool bsmm_elem_is_narrow(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].narrow;
}

#endif
