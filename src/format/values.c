/* The values of all codes of 8 bits and fewer, computed by the compiler; tested against
 * bsmm_elem_decode, code by code. */
#include "format/format.h"

#include <math.h>

/* A magnitude with m mantissa bits is a whole number of the least subnormal `ulp`. */
#define EXPONENT(c, m) ((c) >> (m))
#define WHOLE(c, m)    ((uint64_t)((c) & ((1u << (m)) - 1)) | (uint64_t)(EXPONENT(c, m) != 0) << (m))
#define MAGNITUDE(c, m, ulp)                                                                       \
    ((double)(WHOLE(c, m) << (EXPONENT(c, m) - (EXPONENT(c, m) != 0))) * (ulp))
#define SIGN(c, bits)           ((c) >> ((bits)-1) ? -1.0 : 1.0)
#define REST(c, bits)           ((c) & ((1u << ((bits)-1)) - 1))
#define SIGNED(c, bits, m, ulp) (SIGN(c, bits) * MAGNITUDE(REST(c, bits), m, ulp))

#define E2M1(c)     SIGNED(c, 4, 1, 0x1p-1)
#define E2M3(c)     SIGNED(c, 6, 3, 0x1p-3)
#define E3M2(c)     SIGNED(c, 6, 2, 0x1p-4)
#define E4M3(c)     (REST(c, 8) == 0x7f ? (double)NAN : SIGNED(c, 8, 3, 0x1p-9))
#define E4M3FNUZ(c) ((c) == 0x80 ? (double)NAN : SIGNED(c, 8, 3, 0x1p-10))
#define E5M2(c)                                                                                    \
    (REST(c, 8) > 0x7c    ? (double)NAN                                                            \
     : REST(c, 8) == 0x7c ? SIGN(c, 8) * (double)INFINITY                                          \
                          : SIGNED(c, 8, 2, 0x1p-16))
#define E5M2FNUZ(c)    ((c) == 0x80 ? (double)NAN : SIGNED(c, 8, 2, 0x1p-17))
#define BIT(c, b, two) ((c) >> (b)&1 ? (two) : 1.0)
#define E8M0(c)                                                                                    \
    ((c) == 0xff                                                                                   \
         ? (double)NAN                                                                             \
         : 0x1p-127 * BIT(c, 0, 0x1p1) * BIT(c, 1, 0x1p2) * BIT(c, 2, 0x1p4) * BIT(c, 3, 0x1p8) *  \
               BIT(c, 4, 0x1p16) * BIT(c, 5, 0x1p32) * BIT(c, 6, 0x1p64) * BIT(c, 7, 0x1p128))

#define FOUR(of, c)    of(c), of((c) + 1u), of((c) + 2u), of((c) + 3u)
#define SIXTEEN(of, c) FOUR(of, c), FOUR(of, (c) + 4u), FOUR(of, (c) + 8u), FOUR(of, (c) + 12u)
#define CODES64(of, c)                                                                             \
    SIXTEEN(of, c), SIXTEEN(of, (c) + 16u), SIXTEEN(of, (c) + 32u), SIXTEEN(of, (c) + 48u)
#define CODES256(of) CODES64(of, 0u), CODES64(of, 64u), CODES64(of, 128u), CODES64(of, 192u)

static const double e2m1[16] = {SIXTEEN(E2M1, 0u)};
static const double e2m3[64] = {CODES64(E2M3, 0u)};
static const double e3m2[64] = {CODES64(E3M2, 0u)};
static const double e4m3[256] = {CODES256(E4M3)};
static const double e4m3fnuz[256] = {CODES256(E4M3FNUZ)};
static const double e5m2[256] = {CODES256(E5M2)};
static const double e5m2fnuz[256] = {CODES256(E5M2FNUZ)};
static const double e8m0[256] = {CODES256(E8M0)};

static const double *const tables[] = {
    [BSMM_ELEM_E2M1] = e2m1,         [BSMM_ELEM_E2M3] = e2m3,         [BSMM_ELEM_E3M2] = e3m2,
    [BSMM_ELEM_E4M3] = e4m3,         [BSMM_ELEM_E4M3FNUZ] = e4m3fnuz, [BSMM_ELEM_E5M2] = e5m2,
    [BSMM_ELEM_E5M2FNUZ] = e5m2fnuz, [BSMM_ELEM_E8M0] = e8m0,
};

const double *bsmm_elem_values(uint32_t elem) {
    return elem < BSMM_COUNT(tables) ? tables[elem] : NULL;
}
