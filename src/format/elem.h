/* Numbers and traits of the element, scale and layout formats. Both follow from the rows of the
 * tables elem.def, scale.def and layout.def. */
#ifndef BSMM_ELEM_H
#define BSMM_ELEM_H

#include "base/base.h"

/* The counts include the value 0 (NONE), so that an array of this size can be indexed by any valid
 * value. */
enum {
#define ELEM(id, ...) BSMM_ELEM_ROW_##id,
#include "format/elem.def"
#undef ELEM
    BSMM_ELEM_ROWS,
    BSMM_ELEM_COUNT = BSMM_ELEM_ROWS + 1 /* NONE has no row in elem.def */
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

/* Traits of an element format: the properties on which code branches instead of on the format's
 * name. elem.c computes them from the row's figures. */
typedef struct bsmm_elem_traits {
    bool in_matrices; /* matrices may have it; false: it is for scales alone */
    bool wide;        /* more than 8 bits: only f32, f16 and bf16 */
    bool narrow;      /* 8 bits or fewer, and used in matrices */
    /* The format has at most 6 bits, and its values are integers up to 63 times min_subnormal. */
    bool small_integer;
    bool exact_in_bf16, exact_in_f16;
    /* The exponent and mantissa of a finite code, moved to their places in an f16, give the same
     * value except for a power of two. */
    bool shifts_to_f16;
    bool has_inf;
    bool lone_nan; /* the only NaN is the code with the sign bit alone (fnuz) */
} bsmm_elem_traits;

/* The traits of each element format, indexed by bsmm_elem. All traits of NONE are false. */
extern const bsmm_elem_traits bsmm_elem_traits_of[BSMM_ELEM_COUNT];

/* These functions test the two traits that code needs most. They accept any number, also one that
 * is no element format. */
static inline bool bsmm_elem_is_wide(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].wide;
}
static inline bool bsmm_elem_is_narrow(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].narrow;
}

#endif
