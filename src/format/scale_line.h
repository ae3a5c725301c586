/* Computes the offsets of the scales along one row of blocks. The results are those of
 * bsmm_scale_map_at, but a run of offsets needs no divisions. In every layout an offset is a part
 * from the row plus a part from the column, and the column's part repeats from tile to tile. */
#ifndef BSMM_SCALE_LINE_H
#define BSMM_SCALE_LINE_H

#include "format/format.h"

enum { BSMM_SCALE_RUN = 16 };

/* The precomputed offsets of a run of columns. A line with only `map` set also works, slowly. */
typedef struct bsmm_scale_line {
    const bsmm_scale_map *map;
    bool regular;    /* BSMM_SCALE_RUN columns are whole tiles */
    bool contiguous; /* the scales of BSMM_SCALE_RUN columns are also adjacent in memory */
    /* Offsets of the columns of a run, relative to a first column that is a multiple of
     * BSMM_SCALE_RUN. */
    uint64_t steps[BSMM_SCALE_RUN];
} bsmm_scale_line;

bsmm_scale_line bsmm_scale_line_make(const bsmm_scale_map *map);

/* Computes offsets[i] = bsmm_scale_map_at(map, r, c + i) for i < n <= BSMM_SCALE_RUN. `row` must be
 * bsmm_scale_map_at(map, r, 0). */
void bsmm_scale_line_at(const bsmm_scale_line *line, uint64_t row, int64_t c, int64_t n,
                        uint64_t *offsets);

#endif
