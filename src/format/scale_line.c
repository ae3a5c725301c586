#include "format/scale_line.h"

bsmm_scale_line bsmm_scale_line_make(const bsmm_scale_map *map) {
    bsmm_scale_line line = {.map = map};
    line.regular = map->tile_cols && BSMM_SCALE_RUN % map->tile_cols == 0;
    line.contiguous = line.regular;
    for (int64_t i = 0; line.regular && i < BSMM_SCALE_RUN; i++) {
        line.steps[i] = bsmm_scale_map_at(map, 0, i);
        line.contiguous &= line.steps[i] == (uint64_t)i;
    }
    return line;
}

void bsmm_scale_line_at(const bsmm_scale_line *line, uint64_t row, int64_t c, int64_t n,
                        uint64_t *offsets) {
    const bsmm_scale_map *map = line->map;
    if (!line->regular || c % BSMM_SCALE_RUN) {
        for (int64_t i = 0; i < n; i++)
            offsets[i] = row + bsmm_scale_map_at(map, 0, c + i);
        return;
    }
    uint64_t base = row + (uint64_t)c / map->tile_cols * map->tile_col_step;
    for (int64_t i = 0; i < n; i++)
        offsets[i] = base + line->steps[i];
}
