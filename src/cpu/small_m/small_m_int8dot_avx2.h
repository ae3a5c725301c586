/* Declares the loops of cpu_avx2_int8dot_small_m, and the layout of the packed A that they read. */
#ifndef BSMM_CPU_SMALL_M_INT8DOT_AVX2_H
#define BSMM_CPU_SMALL_M_INT8DOT_AVX2_H

#include "cpu/small_m/small_m_int8dot.h"

/* Packed A consists of parts. A part has 64 elements of K of each row of the tile, row after row.
 * Each row has one scale for a unit, which is 16 or 32 elements of K. In a part, a row has 64 bytes
 * of elements, then, for each unit, an int32 at which the unit's sum of products begins, and then,
 * for each unit, its scale of 32 bits. If B is e2m1, the even elements come before the odd ones.
 *
 * The function pack_a first packs A in the order of pack_int8dot.h, and then rearranges it. A part
 * takes no more memory than the same elements in that order. */
enum { BSMM_INT8_PART = 64, BSMM_INT8_PART_STEPS = BSMM_INT8_PART / BSMM_SMALL_M_STEP };

#define BSMM_INT8_PART_UNITS(unit) (BSMM_INT8_PART / (unit))
#define BSMM_INT8_ROW_BYTES(unit)  (BSMM_INT8_PART + 2 * 4 * BSMM_INT8_PART_UNITS(unit))
#define BSMM_INT8_PART_BYTES(width, unit)                                                          \
    (BSMM_INT8_PART_UNITS(unit) * BSMM_INT8_UNIT_BYTES(width, unit, BSMM_INT8_A))

/* This struct holds the data that the multiply loops read. The plan stores it. */
typedef struct bsmm_int8_tables {
    const int8_t *integers; /* `integers` points to the integer for each code of B. */
    int64_t width;          /* `width` is the number of rows in a tile of A. */
} bsmm_int8_tables;

_Static_assert(sizeof(bsmm_int8_tables) <= BSMM_SMALL_M_CONTEXT_BYTES,
               "the tables are an engine's context");

/* BSMM_INT8_SINGLE is the largest number of rows of A for which row loops are used. In a row loop,
 * a vector has elements of K of one row of B, not of several rows. */
enum { BSMM_INT8_SINGLE = 4 };

/* These functions return implementations of the member `multiply` of bsmm_small_m_engine. A row
 * loop computes a dot product of one row of B in one vector, i.e. the lanes of the vector are
 * elements of K. Row loops are for e2m1 weights and up to BSMM_INT8_SINGLE rows of A. In a column
 * loop, the lanes of a vector are columns of D. Column loops are for numbers of rows of A that are
 * multiples of BSMM_INT8_MR. */
typedef uint32_t bsmm_int8_loop(const bsmm_small_m_span *s);
bsmm_int8_loop *bsmm_int8_row_loop(int64_t rows, bsmm_int8_scaling scaling);
bsmm_int8_loop *bsmm_int8_column_loop(const bsmm_product *p, bsmm_int8_scaling scaling);

/* Functions of this type implement the member `multiply_packed` of bsmm_small_m_engine, which
 * multiplies packed panels of B (16 rows each). */
typedef void bsmm_int8_packed_loop(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                                   float *acc);
bsmm_int8_packed_loop *bsmm_int8_packed_loop_of(const bsmm_product *p);

#endif
