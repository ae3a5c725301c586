/* Declares functions that the int8 small-M kernels of all instruction sets share. These kernels
 * multiply e2m1 or e2m3 by e2m1 or e2m3 weights that are read as they are stored. Their results are
 * bitwise identical to those of the engines with packed operands.
 *
 * A unit is 16 or 32 elements of K with one scale. Its integer sum is exact in any order, and the
 * same fp32 FMA adds it to the accumulator. Lanes may therefore be columns of D, and the elements
 * of K may be in any order inside a unit. Decoding e2m1 codes gives the even ones of eight elements
 * and then the odd ones, so A's bytes are brought into the same order after packing. The integers
 * are the elements times a power of two, and e4m3 scales are read as f16, which gives 2^-8 of their
 * values. A product is therefore too large or too small by a constant power of two. To compensate,
 * A's scales are multiplied by the inverse of this power. */
#ifndef BSMM_CPU_SMALL_M_INT8DOT_H
#define BSMM_CPU_SMALL_M_INT8DOT_H

#include "cpu/pack/pack_int8dot.h"
#include "cpu/small_m/small_m.h"

/* Tells how B's scales are read. EXPONENT: as exponents that are added to A's exponents. E8M0 and
 * E4M3: as fp32 values. The fp32 value of an e4m3 code is 2^-8 times its true value. */
typedef enum bsmm_int8_scaling {
    BSMM_INT8_EXPONENT,
    BSMM_INT8_E8M0,
    BSMM_INT8_E4M3,
    BSMM_INT8_SCALINGS
} bsmm_int8_scaling;

bsmm_int8_scaling bsmm_int8_scaling_of(const bsmm_product *p);

/* Returns true if B has 4-bit codes. The order of K in packed A is then different, to match the
 * order in which the loops decode B: of each eight elements, elements 0, 2, 4 and 6 come first, and
 * elements 1, 3, 5 and 7 follow. */
bool bsmm_small_m_int8_has_fours(const bsmm_product *p);

/* Returns NULL if the loops support both operands, else the reason for refusing the product. */
const char *bsmm_small_m_int8_refuse(const bsmm_product *p, char *why, size_t size);

/* Returns a function table (bsmm_small_m_engine) for tiles of A with `width` rows. The caller must
 * still set its members `prepare`, `multiply` and `multiply_packed`. The members that this function
 * sets pack A and B as the loops of these three need it. */
bsmm_small_m_engine bsmm_small_m_int8_engine_of(const bsmm_product *p, int64_t width);

/* Implements the member `pack_a` of the engine that bsmm_small_m_int8_engine_of returns: it packs
 * rows of A. The AVX2 kernel has its own pack_a, which calls this function and rearranges the
 * result. */
void bsmm_small_m_int8_pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                              bsmm_panel *to);

/* Checks the 64 scale codes of four scale units (ranges of K with one scale per row) of a panel of
 * 16 rows. A bit of the result is set if its code is unusual: e8m0 outside 2^-50 to 2^50, or e4m3's
 * NaN. */
typedef uint64_t bsmm_int8_find_unusual(const uint8_t *codes, bool e4m3);

/* Does the work of the member `prepare` of bsmm_small_m_engine (it checks the scales of a panel of
 * 16 rows of B) with the given function find_unusual. */
bool bsmm_small_m_int8_prepare(const bsmm_small_m_scales *s, bsmm_int8_find_unusual *find_unusual);

#endif
