/* The code that the small-M kernels of small integers share, for all instruction sets. They
 * multiply e2m1 or e2m3 by e2m1 or e2m3 weights as they are stored. Results are bitwise identical
 * to those of the int8 engines.
 *
 * A unit's sum is exact in any order, and the same fp32 FMA adds it. Lanes may therefore be
 * columns, and K may be permuted inside a unit. e2m1 codes decode to the even elements of eight and
 * then the odd ones, and A's bytes are brought into that order after packing. Constant factors of
 * B's scales (integers are multiples of elements, and e4m3 is read as f16) are powers of two, and
 * A's scales take them over. */
#ifndef BSMM_CPU_SMALL_M_INT8DOT_H
#define BSMM_CPU_SMALL_M_INT8DOT_H

#include "cpu/pack/pack_int8dot.h"
#include "cpu/small_m/small_m.h"

/* Says how B's scales are read: as exponents, or as values of their codes. e4m3 values are 2^-8 of
 * the true ones. */
typedef enum bsmm_int8_scaling {
    BSMM_INT8_EXPONENT,
    BSMM_INT8_E8M0,
    BSMM_INT8_E4M3,
    BSMM_INT8_SCALINGS
} bsmm_int8_scaling;

bsmm_int8_scaling bsmm_int8_scaling_of(const bsmm_product *p);

/* Returns true if B has 4-bit codes. Their units are reordered for the loops: even elements, then
 * odd ones. */
bool bsmm_small_m_int8_has_fours(const bsmm_product *p);

/* Returns NULL if the loops take both operands, else the reason. */
const char *bsmm_small_m_int8_refuse(const bsmm_product *p, char *why, size_t size);

/* Returns an engine without its `prepare` and its loops, with tiles of `width` rows. Its packed
 * units have the order and the scales that the loops read. */
bsmm_small_m_engine bsmm_small_m_int8_engine_of(const bsmm_product *p, int64_t width);

/* Implements `pack_a` of that engine, for engines that rearrange its result. */
void bsmm_small_m_int8_pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                              bsmm_panel *to);

/* Returns a bit for each code of four units: it is set if the code is unusual, that is, e8m0
 * outside of 2^-50 to 2^50, or NaN of e4m3. */
typedef uint64_t bsmm_int8_find_unusual(const uint8_t *codes, bool e4m3);

/* Implements `prepare` of bsmm_small_m_engine, once `find_unusual` is given. */
bool bsmm_small_m_int8_prepare(const bsmm_small_m_scales *s, bsmm_int8_find_unusual *find_unusual);

#endif
