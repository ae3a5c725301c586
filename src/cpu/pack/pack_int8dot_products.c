/* Holds the table of products of two scales, by which a kernel avoids multiplying scales
 * (pack_int8dot.h, "looked-up layout"). */
#include "cpu/pack/pack_int8dot.h"

bool bsmm_int8_has_products(const bsmm_product *p) {
    return p->a.m.format.scale == BSMM_SCALE_E4M3 && p->b.m.format.scale != BSMM_SCALE_F32;
}

/* The table gives products of two scales. It has a row of 16 entries for each e4m3 scale of A,
 * which is (8 + m) / 8 * 2^e. The index `i` of an entry is four bits of B's scale as an fp32
 * number: the upper three mantissa bits and, above them, the lowest bit of the exponent field. The
 * other exponent bits are applied to the entry later.
 *
 * ENTRY computes entry `i`, where `f` is 2^(e - 7). It is half of the product of A's scale and the
 * part of B's scale that `i` states. The factor of a half makes up for BSMM_INT8_PRODUCT_BIAS,
 * which subtracts 126 and not fp32's bias 127 from the other exponent bits. */
#define ENTRY(f, m, i) (f) * (float)((8 + (m)) * (8 + (i) % 8) * ((i) < 8 ? 1 : 2))
#define FOUR(f, m, i)                                                                              \
    ENTRY(f, m, i), ENTRY(f, m, (i) + 1), ENTRY(f, m, (i) + 2), ENTRY(f, m, (i) + 3)
#define ROW(f, m)                                                                                  \
    { FOUR(f, m, 0), FOUR(f, m, 4), FOUR(f, m, 8), FOUR(f, m, 12) }
#define ROWS(f)                                                                                    \
    ROW(f, 0), ROW(f, 1), ROW(f, 2), ROW(f, 3), ROW(f, 4), ROW(f, 5), ROW(f, 6), ROW(f, 7)
#define SIGNED_ROWS(sign)                                                                          \
    {                                                                                              \
        ROWS(sign 0x1p-19f), ROWS(sign 0x1p-18f), ROWS(sign 0x1p-17f), ROWS(sign 0x1p-16f),        \
            ROWS(sign 0x1p-15f), ROWS(sign 0x1p-14f), ROWS(sign 0x1p-13f), ROWS(sign 0x1p-12f),    \
            ROWS(sign 0x1p-11f), ROWS(sign 0x1p-10f), ROWS(sign 0x1p-9f), ROWS(sign 0x1p-8f),      \
            ROWS(sign 0x1p-7f), ROWS(sign 0x1p-6f), ROWS(sign 0x1p-5f), ROWS(sign 0x1p-4f),        \
            ROWS(sign 0x1p-3f), ROWS(sign 0x1p-2f), ROWS(sign 0x1p-1f), ROWS(sign 0x1p0f),         \
            ROWS(sign 0x1p1f)                                                                      \
    }

_Static_assert(BSMM_INT8_PRODUCT_LOWEST == -12 && BSMM_INT8_PRODUCT_ROWS == 21 * 8,
               "the table has a row for every scale");

_Alignas(64) const float bsmm_int8_products[2][BSMM_INT8_PRODUCT_ROWS][BSMM_INT8_PRODUCTS] = {
    SIGNED_ROWS(+), SIGNED_ROWS(-)};
