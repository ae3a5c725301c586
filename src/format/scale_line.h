/* Where the scales of one row of blocks lie: what bsmm_scale_map_at gives, but for runs, without
 * divisions. In every layout an offset is one part from the row plus one from the column, and the
 * column's part repeats from tile to tile. */
#ifndef BSMM_SCALE_LINE_H
#define BSMM_SCALE_LINE_H

#include "format/format.h"

enum { BSMM_SCALE_RUN = 16 };

/* With nothing but the map it works too, slowly. */
typedef struct bsmm_scale_line {
    const bsmm_scale_map *map;
    bool regular;                   /* whole tiles make BSMM_SCALE_RUN */
    bool contiguous;                /* and lie side by side */
    uint64_t steps[BSMM_SCALE_RUN]; /* of columns beside a multiple of BSMM_SCALE_RUN */
} bsmm_scale_line;

bsmm_scale_line bsmm_scale_line_make(const bsmm_scale_map *map);

/* offsets[i] = bsmm_scale_map_at(map, r, c + i) for i < n <= BSMM_SCALE_RUN, where `row` is
 * bsmm_scale_map_at(map, r, 0). */
void bsmm_scale_line_at(const bsmm_scale_line *line, uint64_t row, int64_t c, int64_t n,
                        uint64_t *offsets);

#endif
