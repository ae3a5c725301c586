/* This file declares the epilogue's loops over contiguous rows, compiled for the instruction sets
 * that processors have. */
#ifndef BSMM_CPU_EPILOGUE_LOOPS_H
#define BSMM_CPU_EPILOGUE_LOOPS_H

#include "format/format.h"

/* The loops are indexed by element format. The entry of a format of 8 bits or fewer is NULL. */
enum { BSMM_CPU_EPILOGUE_ELEMS = BSMM_ELEM_COUNT };

/* Rounds values once, to nearest even. */
typedef void bsmm_cpu_epilogue_store_loop(const double *values, int64_t cols, void *to);

/* Computes values[i] += factor * from[i]. */
typedef void bsmm_cpu_epilogue_add_loop(const void *from, double factor, int64_t cols,
                                        double *values);

/* Describes an element format of 8 bits, with the fields that a loop needs. */
typedef struct bsmm_cpu_epilogue_narrow {
    uint32_t mantissa_bits;
    uint32_t max_code, nan_code; /* magnitudes. A nan_code of 0x80 means that the format has no
                                  * -0 */
    int lowest;                  /* exponent of the smallest normal value of the format */
} bsmm_cpu_epilogue_narrow;

/* Describes an operand, C or bias, that is added to a tile: factor * value i of row r. */
typedef struct bsmm_cpu_epilogue_added {
    const uint8_t *from;
    int64_t pitch; /* distance between two rows, in bytes */
    uint32_t elem; /* element format: f32, f16 or bf16 */
    double factor;
} bsmm_cpu_epilogue_added;

/* Describes a tile of accumulators that the epilogue stores to D: acc[r * pitch + i] * (factors[r]
 * * column_factors[i]) * alpha, plus each operand in `added`, in this order. */
typedef struct bsmm_cpu_epilogue_tile {
    const float *acc;
    int64_t pitch;
    const double *factors, *column_factors;
    double alpha;
    int64_t rows, cols;
    uint8_t *to; /* address of the tile's first value in D */
    int64_t to_pitch;
    int added_count;
    bsmm_cpu_epilogue_added added[2];
} bsmm_cpu_epilogue_tile;

/* Rounds rows into D and stores every NaN as the same NaN. Returns the number of rows that are
 * done. If that is less than the tile's rows, the next row needs the slow path. */
typedef int64_t bsmm_cpu_epilogue_direct_loop(const bsmm_cpu_epilogue_tile *tile);

#if defined(__x86_64__)
bsmm_cpu_epilogue_direct_loop bsmm_cpu_epilogue_f32_avx512, bsmm_cpu_epilogue_f16_avx512,
    bsmm_cpu_epilogue_bf16_avx512;
bsmm_cpu_epilogue_direct_loop bsmm_cpu_epilogue_f32_avx2, bsmm_cpu_epilogue_f16_avx2,
    bsmm_cpu_epilogue_bf16_avx2;
#endif

typedef struct bsmm_cpu_epilogue_loops {
    /* Computes values[i] = acc[i] * row_factor * factors[i]; a zero result is +0. */
    void (*scale)(const float *acc, double row_factor, const double *factors, int64_t cols,
                  double *values);
    /* Loops that add C or bias, by element format. */
    bsmm_cpu_epilogue_add_loop *add[BSMM_CPU_EPILOGUE_ELEMS];
    /* Loops that round into D, by element format. */
    bsmm_cpu_epilogue_store_loop *store[BSMM_CPU_EPILOGUE_ELEMS];
    bsmm_cpu_epilogue_direct_loop
        /* Loops for a whole epilogue in one pass, by element format; NULL: none. */
        *direct[BSMM_CPU_EPILOGUE_ELEMS];
    /* Rounds values to an 8-bit format. A value that overflows becomes max_code. */
    void (*store_narrow)(const bsmm_cpu_epilogue_narrow *format, const double *values, int64_t cols,
                         uint8_t *to);
} bsmm_cpu_epilogue_loops;

/* Returns the loops of the best instruction set. All sets give bitwise identical results. */
const bsmm_cpu_epilogue_loops *bsmm_cpu_epilogue_loops_get(void);

#endif
