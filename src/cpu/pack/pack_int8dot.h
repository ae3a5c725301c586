/* Declares the packing for the CPU kernels that multiply by int8 dot products. Elements of e2m1 and
 * e2m3 are packed as small integers, so the sum of a few elements of K (a unit) is exact in 32
 * bits:
 *
 *     integer = element * 2 (e2m1, up to 12) or * 8 (e2m3, up to 60)
 *
 * The dot product instructions multiply unsigned bytes by signed bytes. B's integers are therefore
 * packed with their largest magnitude added, so that none is negative, and A's integers are packed
 * as they are. To compensate, the sum of a unit begins at -(largest magnitude of B) * (sum of A's
 * integers in the unit).
 *
 * A group is 4 elements of K. A unit of `width` rows and V elements of K consists of V / 4 groups
 * of `width` x 4 bytes, followed by 4-byte values for each row:
 *
 *     B             the scales
 *     A, summed     the initial sums, then the scales
 *     A, floated    the initial sums, the scales, then scale * BSMM_INT8_FLOATED
 *     A, looked up  the initial sums, then the offsets of the scales' rows in a table of products
 *
 * If the scales of both operands are powers of two, V is 32. The scale of a summed A is then an
 * exponent in the position of fp32's exponent bits, and its integer sum with B's scale is the fp32
 * product of the scales. Otherwise V is 16, and scales are fp32 values.
 *
 * In the floated layout, sums begin at the initial sum plus the bits of the fp32 value
 * BSMM_INT8_FLOATED, whose last mantissa bit has the value 1. The bits of an integer sum are then
 * the bits of the fp32 value FLOATED + sum, so no conversion is necessary. One FMA multiplies that
 * value by A's scale and subtracts scale * FLOATED. This FMA is exact. A second FMA multiplies by
 * B's scale and adds to the accumulator. The results have the same bits as those of the summed
 * layout, because both round only once.
 *
 * In the looked-up layout, a row of the table of products (bsmm_int8_products) has the products of
 * A's scale with 16 numbers, of which bits 20 to 23 of B's fp32 scale select one. These are the
 * mantissa of an e4m3 scale and the lowest bit of its exponent. Adding the other bits of B's
 * exponent to the bits of the selected product gives the product of both scales. The product is
 * exact, so the results have the same bits as those of the summed layout. */
#ifndef BSMM_CPU_PACK_INT8DOT_H
#define BSMM_CPU_PACK_INT8DOT_H

#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

enum { BSMM_INT8_EXPONENT_UNIT = 32, BSMM_INT8_MULTIPLY_UNIT = 16 };
enum { BSMM_INT8_FLOATED = 3 << 22 };

/* `bsmm_int8_form` lists the layouts of a packed unit. A unit is 16 or 32 elements of K of each row
 * of a panel. Besides the elements, it contains some 4-byte values for each row, such as scales and
 * initial sums. The number of these values per row is the enum constant of the layout, modulo
 * 16. */
typedef enum bsmm_int8_form {
    BSMM_INT8_B = 1,
    BSMM_INT8_A = 2,
    BSMM_INT8_A_FLOATED = 3,
    BSMM_INT8_A_LOOKED_UP = 16 + 2
} bsmm_int8_form;

/* Returns NULL if an operand can be packed to int8, else the reason why it cannot. */
bsmm_pack_refuser bsmm_int8_refuse;

/* Returns true if the scales of both operands are powers of two. A packed unit then has 32 elements
 * of K, and otherwise it has 16. A unit is a range of K with one scale per row. */
bool bsmm_int8_by_exponent(const bsmm_product *p);

/* Returns true if the sums of the products of 32 elements of K may not fit 16 bits. This is so only
 * if both operands are e2m3. */
bool bsmm_int8_is_wide(const bsmm_product *p);

static inline int64_t bsmm_int8_unit(const bsmm_product *p) {
    return bsmm_int8_by_exponent(p) ? BSMM_INT8_EXPONENT_UNIT : BSMM_INT8_MULTIPLY_UNIT;
}

/* Returns true if the kernel can look up the products of the operands' scales in a table. This
 * requires that A has e4m3 scales and that B's scales are not fp32. */
bool bsmm_int8_has_products(const bsmm_product *p);

/* BSMM_INT8_PRODUCT_LOWEST is the exponent of the smallest scale of A in the table of products.
 * e4m3 scales have exponents from -9 to 8. Packing multiplies A's elements by up to 2^3, so that
 * they become integers, and divides the scales by the same number. BSMM_INT8_PRODUCT_ROWS is the
 * number of rows of the table for scales of one sign. Each exponent has 8 rows, one for each
 * mantissa. */
enum {
    BSMM_INT8_PRODUCT_LOWEST = -9 - 3,
    BSMM_INT8_PRODUCT_ROWS = (9 - BSMM_INT8_PRODUCT_LOWEST) * 8,
    BSMM_INT8_PRODUCTS = 16,
    BSMM_INT8_PRODUCT_BIAS = 126 << 23
};

/* `bsmm_int8_products` is a table from which a kernel gets the product of a scale a of A and a
 * scale b of B by an integer addition. The first index is the sign of a, and the second stands for
 * the magnitude of a. The third index is bits 20 to 23 of b as an fp32 number, i.e. the lowest bit
 * of its exponent and the upper bits of its mantissa. The fp32 bits of a * b are the bits of the
 * entry plus (bits of b & 0xff000000) - BSMM_INT8_PRODUCT_BIAS. */
extern const float bsmm_int8_products[2][BSMM_INT8_PRODUCT_ROWS][BSMM_INT8_PRODUCTS];

/* Returns the offset in bytes of a row of the table bsmm_int8_products. Each row has the products
 * of one scale of A and the scales of B. `bits` are the fp32 bits of this scale of A after packing.
 * Packing multiplies A's elements by a constant, so that they become integers, and divides A's
 * scales by the same constant. The scale of A must not be 0 or NaN. */
static inline int32_t bsmm_int8_product_offset(int32_t bits) {
    const int32_t lowest = (BSMM_INT8_PRODUCT_LOWEST + 127) << 23;
    int32_t row = ((bits & INT32_MAX) - lowest) >> 20;
    return (row + (bits < 0 ? BSMM_INT8_PRODUCT_ROWS : 0)) * BSMM_INT8_PRODUCTS * 4;
}

/* Returns the error bound of a result, as a multiple of sum |a * b|. */
double bsmm_int8_bound(const bsmm_product *p, const void *state);

/* BSMM_INT8_UNIT_BYTES is the size in bytes of a packed unit with `width` rows and `unit` elements
 * of K, rounded up to a multiple of 64. `form` is a bsmm_int8_form, whose value modulo 16 is the
 * number of 32-bit words (scales and the like) that a row has after its elements. */
#define BSMM_INT8_UNIT_BYTES(width, unit, form)                                                    \
    (((width) * ((unit) + 4 * ((form) % 16)) + 63) / 64 * 64)

/* These functions pack rows [row, row + rows) into panels of `width` rows and units of `unit`
 * elements of K. bsmm_int8_pack uses the best instruction set of the processor, bsmm_int8_pack_by
 * the given one. Both write the same bytes. */
void bsmm_int8_pack(const bsmm_product *p, bsmm_int8_form form, int64_t width, int64_t unit,
                    int64_t row, int64_t rows, bsmm_panel *to);
void bsmm_int8_pack_by(const bsmm_pack_isa *isa, const bsmm_product *p, bsmm_int8_form form,
                       int64_t width, int64_t unit, int64_t row, int64_t rows, bsmm_panel *to);

#endif
