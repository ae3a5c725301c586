/* These tables have the value of every code of each format with at most 8 bits. The compiler
 * computes the tables, so they need no initialization at run time. A test compares each value with
 * bsmm_elem_decode. */
#include "format/format.h"

#include <math.h>

/* The magnitude of a code is an integer multiple of the format's smallest subnormal, `ulp`.
 * EXPONENT and WHOLE extract the exponent and the mantissa (with its implicit bit) from code c,
 * which has m mantissa bits. MAGNITUDE shifts the mantissa by the exponent and multiplies by
 * ulp. */
#define EXPONENT(c, m) ((c) >> (m))
#define WHOLE(c, m)    ((uint64_t)((c) & ((1u << (m)) - 1)) | (uint64_t)(EXPONENT(c, m) != 0) << (m))
#define MAGNITUDE(c, m, ulp)                                                                       \
    ((double)(WHOLE(c, m) << (EXPONENT(c, m) - (EXPONENT(c, m) != 0))) * (ulp))
#define SIGN(c, bits)           ((c) >> ((bits)-1) ? -1.0 : 1.0)
#define REST(c, bits)           ((c) & ((1u << ((bits)-1)) - 1))
#define FINITE(c, bits, m, ulp) (SIGN(c, bits) * MAGNITUDE(REST(c, bits), m, ulp))

/* These macros give the value of code c, one macro for each kind of element format (elem.def). */
#define VALUE_SIGNED(c, bits, m, ulp, max, inf)                                                    \
    (REST(c, bits) <= (max)            ? FINITE(c, bits, m, ulp)                                   \
     : (inf) && REST(c, bits) == (inf) ? SIGN(c, bits) * (double)INFINITY                          \
                                       : (double)NAN)
#define VALUE_FNUZ(c, bits, m, ulp, max, inf)                                                      \
    ((c) == 1u << ((bits)-1) ? (double)NAN : FINITE(c, bits, m, ulp))
#define BIT(c, b, two) ((c) >> (b)&1 ? (two) : 1.0)
#define VALUE_POWERS(c, bits, m, ulp, max, inf)                                                    \
    ((c) == 0xff                                                                                   \
         ? (double)NAN                                                                             \
         : 0x1p-127 * BIT(c, 0, 0x1p1) * BIT(c, 1, 0x1p2) * BIT(c, 2, 0x1p4) * BIT(c, 3, 0x1p8) *  \
               BIT(c, 4, 0x1p16) * BIT(c, 5, 0x1p32) * BIT(c, 6, 0x1p64) * BIT(c, 7, 0x1p128))

#define FOUR(of, c, ...)                                                                           \
    of((c), __VA_ARGS__), of((c) + 1u, __VA_ARGS__), of((c) + 2u, __VA_ARGS__),                    \
        of((c) + 3u, __VA_ARGS__)
#define CODES_16(of, c, ...)                                                                       \
    FOUR(of, c, __VA_ARGS__), FOUR(of, (c) + 4u, __VA_ARGS__), FOUR(of, (c) + 8u, __VA_ARGS__),    \
        FOUR(of, (c) + 12u, __VA_ARGS__)
#define CODES_64(of, c, ...)                                                                       \
    CODES_16(of, c, __VA_ARGS__), CODES_16(of, (c) + 16u, __VA_ARGS__),                            \
        CODES_16(of, (c) + 32u, __VA_ARGS__), CODES_16(of, (c) + 48u, __VA_ARGS__)
#define CODES_256(of, c, ...)                                                                      \
    CODES_64(of, c, __VA_ARGS__), CODES_64(of, (c) + 64u, __VA_ARGS__),                            \
        CODES_64(of, (c) + 128u, __VA_ARGS__), CODES_64(of, (c) + 192u, __VA_ARGS__)

/* ARRAY_<bits> defines the table of a format with that many bits, and NAME_<bits> is its name.
 * Formats with 16 or 32 bits have no table, so NAME_16 and NAME_32 are NULL. */
#define ARRAY_4(id, of, ...)  static const double of_##id[16] = {CODES_16(of, 0u, __VA_ARGS__)};
#define ARRAY_6(id, of, ...)  static const double of_##id[64] = {CODES_64(of, 0u, __VA_ARGS__)};
#define ARRAY_8(id, of, ...)  static const double of_##id[256] = {CODES_256(of, 0u, __VA_ARGS__)};
#define ARRAY_16(id, of, ...) enum { no_array_of_##id };
#define ARRAY_32(id, of, ...) enum { no_array_of_##id };
#define NAME_4(id)            of_##id
#define NAME_6(id)            of_##id
#define NAME_8(id)            of_##id
#define NAME_16(id)           NULL
#define NAME_32(id)           NULL

#define ELEM(id, text, kind, bits, e, m, b, mx, mn, ulp, max, inf, ...)                            \
    ARRAY_##bits(id, VALUE_##kind, bits, m, ulp, max, inf)
#include "format/elem.def"
#undef ELEM

static const double *const tables[] = {
#define ELEM(id, text, kind, bits, ...) [BSMM_ELEM_##id] = NAME_##bits(id),
#include "format/elem.def"
#undef ELEM
};

const double *bsmm_elem_values(uint32_t elem) {
    return elem < BSMM_COUNT(tables) ? tables[elem] : NULL;
}
