/* Declares the epilogue's loops over contiguous rows. Each loop is compiled for several instruction
 * sets. */
#ifndef BSMM_CPU_EPILOGUE_LOOPS_H
#define BSMM_CPU_EPILOGUE_LOOPS_H

#include "format/format.h"

/* BSMM_CPU_EPILOGUE_ELEMS is the number of element formats. The arrays of loops below are indexed
 * by element format. The entries of formats with at most 8 bits are NULL. */
enum { BSMM_CPU_EPILOGUE_ELEMS = BSMM_ELEM_COUNT };

/* Rounds `cols` values once, to nearest even, and stores them at `to`. */
typedef void bsmm_cpu_epilogue_store_loop(const double *values, int64_t cols, void *to);

/* Adds factor * e to values[i] for i = 0 to cols - 1, where e is element number i of `from`. There
 * is one such loop for each element format of `from`. */
typedef void bsmm_cpu_epilogue_add_loop(const void *from, double factor, int64_t cols,
                                        double *values);

/* `bsmm_cpu_epilogue_narrow` holds the properties of an 8-bit element format that a rounding loop
 * needs. */
typedef struct bsmm_cpu_epilogue_narrow {
    uint32_t mantissa_bits;
    /* `max_code` and `nan_code` are the codes of the largest finite value and of NaN, without the
     * sign bit. A nan_code of 0x80 means that the format has no -0. */
    uint32_t max_code, nan_code;
    int lowest; /* `lowest` is the exponent of the smallest normal value of the format. */
} bsmm_cpu_epilogue_narrow;

/* `bsmm_cpu_epilogue_added` is an input that the epilogue adds to a tile, namely C or the bias.
 * Value i of row r is multiplied by `factor` and added. */
typedef struct bsmm_cpu_epilogue_added {
    const uint8_t *from;
    int64_t pitch; /* `pitch` is the distance between two rows in bytes, or 0 for the bias. */
    uint32_t elem; /* `elem` is the element format: f32, f16 or bf16. */
    double factor;
} bsmm_cpu_epilogue_added;

/* Describes a tile of accumulators and how the epilogue makes a tile of D from it. The value in row
 * r and column i of the tile is acc[r * pitch + i] * (factors[r] * column_factors[i]) * alpha, plus
 * the `added_count` inputs in `added` (e.g. beta * C and the bias), which are added in the order of
 * the array. The value is rounded to D's format and stored. */
typedef struct bsmm_cpu_epilogue_tile {
    const float *acc;
    int64_t pitch;
    const double *factors, *column_factors;
    double alpha;
    int64_t rows, cols;
    uint8_t *to; /* `to` is the address in D of the tile's first value. */
    int64_t to_pitch;
    int added_count;
    bsmm_cpu_epilogue_added added[2];
} bsmm_cpu_epilogue_tile;

/* Applies the whole epilogue to a tile in one pass, and stores the results to D, row by row. All
 * NaN results get the same bits. The loop stops before a row with a value that it cannot round
 * correctly; the caller then computes this row by the slow path. Returns the number of rows that
 * were stored. */
typedef int64_t bsmm_cpu_epilogue_direct_loop(const bsmm_cpu_epilogue_tile *tile);

#if defined(__x86_64__)
bsmm_cpu_epilogue_direct_loop bsmm_cpu_epilogue_f32_avx512, bsmm_cpu_epilogue_f16_avx512,
    bsmm_cpu_epilogue_bf16_avx512;
bsmm_cpu_epilogue_direct_loop bsmm_cpu_epilogue_f32_avx2, bsmm_cpu_epilogue_f16_avx2,
    bsmm_cpu_epilogue_bf16_avx2;
#endif

typedef struct bsmm_cpu_epilogue_loops {
    /* Computes values[i] = acc[i] * row_factor * factors[i]. A zero result is +0. */
    void (*scale)(const float *acc, double row_factor, const double *factors, int64_t cols,
                  double *values);
    /* `add` holds the loops that add C or bias, indexed by the element format of C or bias. */
    bsmm_cpu_epilogue_add_loop *add[BSMM_CPU_EPILOGUE_ELEMS];
    /* `store` holds the loops that round to D, indexed by D's element format. */
    bsmm_cpu_epilogue_store_loop *store[BSMM_CPU_EPILOGUE_ELEMS];
    /* `direct` holds the loops that apply the whole epilogue in one pass, indexed by D's element
     * format. An entry is NULL if there is none. */
    bsmm_cpu_epilogue_direct_loop *direct[BSMM_CPU_EPILOGUE_ELEMS];
    /* Rounds values to an 8-bit format. A value that overflows becomes the largest value of the
     * format. */
    void (*store_narrow)(const bsmm_cpu_epilogue_narrow *format, const double *values, int64_t cols,
                         uint8_t *to);
} bsmm_cpu_epilogue_loops;

/* Returns the loops for the best instruction set of the processor. The loops of all instruction
 * sets give bitwise identical results. */
const bsmm_cpu_epilogue_loops *bsmm_cpu_epilogue_loops_get(void);

#endif
