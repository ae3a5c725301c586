/* Defines the parameters of the kernels in sm80/relayout.cu, which copy block scales from one
 * layout to another.
 *
 * The scale matrix is divided into regions of 2^n x 2^m scales. A region has 8192 = 2^13 bytes, so
 * a byte of a region has a number of 13 bits: the bits of its row, those of its column and, if a
 * scale has four bytes, those of the byte within the scale. In the supported layouts, the address
 * of a byte is a sum: each bit of the number that is 1 adds a fixed distance, called the step of
 * the bit. A bit has one step in the source and another one in the destination. The host sorts the
 * bits by both, so that threads can copy consecutive bytes. */
#ifndef BSMM_CUDA_SM80_RELAYOUT_PARAMS_H
#define BSMM_CUDA_SM80_RELAYOUT_PARAMS_H

#include "gpu/recode.h"

enum {
    BSMM_REGION_BITS = 13, /* BSMM_REGION_BITS is the log2 of the bytes of a region. */
    BSMM_REGION_THREADS = 256,
    BSMM_REGION_THREAD_BITS = 8,
    BSMM_REGION_MOST_STEPS = 1 << (BSMM_REGION_BITS - BSMM_REGION_THREAD_BITS)
};

/* A byte of a region (a part of the scale matrix) has a number of 13 bits. The place of the byte is
 * the sum of distances, one for each bit of its number that is 1. This holds for three kinds of
 * places: the address in global memory, the address in shared memory, and the row and column in the
 * scale matrix. This struct holds the distances for one bit, or their sums for several bits. */
typedef struct bsmm_region_spot {
    /* `step` is the distance in bytes in global memory: in the source if the struct describes
     * loads, in the destination if it describes stores. */
    uint64_t step;
    uint32_t place;    /* `place` is combined with the address in shared memory by exclusive OR. */
    uint32_t row, col; /* `row` and `col` are added to the row and to the column, in scales. */
} bsmm_region_spot;

/* A thread block copies one region of the matrix of scales, by way of shared memory. Each thread
 * copies the region's bytes in several steps of 2^log2 consecutive bytes. This struct says which
 * bytes these are. There is one such struct for the loads, where threads follow the order of the
 * bytes in the source, and one for the stores, where they follow the order in the destination. */
typedef struct bsmm_region_walk {
    uint32_t log2; /* `log2` is 0, 2 or 4. */
    /* of_bits[i] is the distance between the bytes of two threads whose numbers differ only in bit
     * i. */
    bsmm_region_spot of_bits[BSMM_REGION_THREAD_BITS];
    /* A thread copies its bytes of a region in several steps. of_steps[i] is the distance from its
     * bytes of step 0 to its bytes of step i. */
    bsmm_region_spot of_steps[BSMM_REGION_MOST_STEPS];
} bsmm_region_walk;

typedef struct bsmm_relayout_regions {
    bsmm_relayout_job job;
    bsmm_region_walk load, store;
    /* A thread loads up to 16 consecutive bytes of the source and stores them to shared memory,
     * where they need not be adjacent. `places` gives their addresses: byte number b is stored at
     * the address of byte 0, XORed with places[i] for each bit i that is set in b. Groups of
     * 2^place_log2 bytes (1, 4 or 16) are adjacent in shared memory, and the thread stores such a
     * group at once. */
    uint32_t places[4], place_log2;
    /* `rows_log2` and `cols_log2` are the log2 of the numbers of rows and columns of scales in a
     * region. */
    uint32_t rows_log2, cols_log2;
    /* The scale matrix is divided into regions. `across` is the number of regions side by side, and
     * `count` is the number of all regions. */
    uint32_t across, count;
} bsmm_relayout_regions;

/* Describes one of the two copies of scales that the kernel move_both makes. If `by_regions` is
 * nonzero, the copy works as in the kernel move_regions: each thread block copies one region, as
 * `regions` describes. If `by_regions` is 0, the copy works as in the kernel move_scales. It then
 * uses only regions.job and two other fields of `regions`: regions.across is the number of thread
 * blocks side by side, and regions.count is the number of all thread blocks. */
typedef struct bsmm_relayout_copy {
    bsmm_relayout_regions regions;
    uint32_t by_regions;
} bsmm_relayout_copy;

/* Holds the parameters of the kernel move_both. The first copies[0].regions.count thread blocks
 * make the first copy, and the other thread blocks make the second copy. */
typedef struct bsmm_relayout_both {
    bsmm_relayout_copy copies[2];
} bsmm_relayout_both;

#endif
