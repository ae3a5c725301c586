/* Computes the offsets in memory of consecutive scales in one row of the scale matrix. The results
 * equal those of bsmm_scale_map_at, which needs divisions for each scale. The functions here need
 * none. They use two facts. First, in every layout the offset of scale (r, c) is the sum of a
 * number that depends on r and a number that depends on c. Second, the offsets inside a tile are
 * the same in every tile, so they are computed in advance. */
#ifndef BSMM_SCALE_LINE_H
#define BSMM_SCALE_LINE_H

#include "format/format.h"

enum { BSMM_SCALE_RUN = 16 };

/* This struct holds precomputed offsets of BSMM_SCALE_RUN consecutive columns of scales. A caller
 * may set only `map`; the other fields are then 0, and the functions compute the offsets one by
 * one, which is slower. */
typedef struct bsmm_scale_line {
    const bsmm_scale_map *map;
    /* `regular` is true if BSMM_SCALE_RUN columns are a whole number of tiles of the scale
     * layout. */
    bool regular;
    /* `contiguous` is true if the scales of BSMM_SCALE_RUN adjacent columns lie side by side in
     * memory too. */
    bool contiguous;
    /* `steps` has the offsets, in scales, of BSMM_SCALE_RUN columns relative to the first of them.
     * The number of the first column is a multiple of BSMM_SCALE_RUN. */
    uint64_t steps[BSMM_SCALE_RUN];
} bsmm_scale_line;

bsmm_scale_line bsmm_scale_line_make(const bsmm_scale_map *map);

/* Stores the offsets of the n scales in columns c to c + n - 1 of one row of the scale matrix. If
 * that row is r, `row` must be bsmm_scale_map_at(map, r, 0), and offsets[i] becomes
 * bsmm_scale_map_at(map, r, c + i). n must be at most BSMM_SCALE_RUN. */
void bsmm_scale_line_at(const bsmm_scale_line *line, uint64_t row, int64_t c, int64_t n,
                        uint64_t *offsets);

#endif
