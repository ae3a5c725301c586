/* What the small-M kernels of small integers share, whatever their instructions: e2m1 or e2m3 on
 * both sides, B as stored, to the bits of the int8 engines.
 *
 * A unit's sum is exact in whatever order, and the same fp32 FMA adds it. So lanes are columns, and
 * K may be permuted inside a unit: e2m1 decodes into the even elements of eight and the odd ones,
 * and A's bytes are brought into that order after packing. Constants of B's scales (integers are
 * multiples of elements; e4m3 is read as f16) are powers of two and move to A's. */
#ifndef BSMM_CPU_SMALL_M_INT8DOT_H
#define BSMM_CPU_SMALL_M_INT8DOT_H

#include "cpu/pack/pack_int8dot.h"
#include "cpu/small_m/small_m.h"

/* How B's scales are read: as exponents, or as values of their codes, e4m3 at 2^-8. */
typedef enum bsmm_int8_scaling {
    BSMM_INT8_EXPONENT,
    BSMM_INT8_E8M0,
    BSMM_INT8_E4M3,
    BSMM_INT8_SCALINGS
} bsmm_int8_scaling;

bsmm_int8_scaling bsmm_int8_scaling_of(const bsmm_product *p);

/* Whether B has 4 bits, whose units the loops have apart: even elements, then odd ones. */
bool bsmm_small_m_int8_has_fours(const bsmm_product *p);

/* NULL if the loops take both operands, else the reason. */
const char *bsmm_small_m_int8_refuse(const bsmm_product *p, char *why, size_t size);

/* All of an engine but its `prepare` and its loops, with tiles of `width` rows. Packed units are in
 * the order and at the scales that the loops have. */
bsmm_small_m_engine bsmm_small_m_int8_engine_of(const bsmm_product *p, int64_t width);

/* Its pack_a, for engines that rearrange what it packs. */
void bsmm_small_m_int8_pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                              bsmm_panel *to);

/* Which of the codes of four units are out of the ordinary, a bit for each: e8m0 outside of 2^-50
 * to 2^50, NaN of e4m3. */
typedef uint64_t bsmm_int8_find_unusual(const uint8_t *codes, bool e4m3);

/* bsmm_small_m_engine's prepare. */
bool bsmm_small_m_int8_prepare(const bsmm_small_m_scales *s, bsmm_int8_find_unusual *find_unusual);

#endif
