/* This file declares the properties of the element formats, and counts the element formats, scale
 * formats and scale layouts. All of this is computed from the tables elem.def, scale.def and
 * layout.def. */
#ifndef BSMM_ELEM_H
#define BSMM_ELEM_H

#include "base/base.h"

/* The enums below count the entries of each table. BSMM_ELEM_COUNT also counts the value 0 (NONE),
 * so an array of that many entries can be indexed by any valid value. */
enum {
#define ELEM(id, ...) BSMM_ELEM_ROW_##id,
#include "format/elem.def"
#undef ELEM
    BSMM_ELEM_ROWS,
    BSMM_ELEM_COUNT = BSMM_ELEM_ROWS + 1 /* BSMM_ELEM_NONE has no entry in elem.def. */
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

/* These are the properties of an element format. Code branches on these properties instead of on
 * the format's name, so that a new format needs no change in that code. elem.c computes them from
 * the table. */
typedef struct bsmm_elem_traits {
    /* `in_matrices` is true if matrices may have this format. If it is false, only scales have
     * it. */
    bool in_matrices;
    bool wide;   /* `wide` means more than 8 bits. It is true only for f32, f16 and bf16. */
    bool narrow; /* `narrow` means at most 8 bits, and a format that matrices use. */
    /* `small_integer` is true if the format has at most 6 bits and every value is an integer of
     * magnitude 0 to 63 times min_subnormal. */
    bool small_integer;
    bool exact_in_bf16, exact_in_f16;
    /* `shifts_to_f16` is true if the codes of all finite values can be converted to f16 by a shift
     * of their exponent and mantissa bits. The value of the f16 code is the element's value times a
     * power of two, which is the same for all codes of the format. */
    bool shifts_to_f16;
    bool has_inf;
    /* `lone_nan` is true if the only NaN is the code in which just the sign bit is set (fnuz
     * formats). */
    bool lone_nan;
} bsmm_elem_traits;

/* `bsmm_elem_traits_of` holds the properties of each element format, indexed by bsmm_elem. All
 * properties of NONE are false. */
extern const bsmm_elem_traits bsmm_elem_traits_of[BSMM_ELEM_COUNT];

/* These functions return the fields `wide` and `narrow` of bsmm_elem_traits for the element format
 * `elem`. They return false if the number `elem` is no element format. */
static inline bool bsmm_elem_is_wide(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].wide;
}
static inline bool bsmm_elem_is_narrow(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].narrow;
}

#endif
