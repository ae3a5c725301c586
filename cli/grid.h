/* Draws a scale layout as a grid of offsets. */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include "command.h"

typedef struct cli_grid_values {
    bool json, all;
    int64_t rows, cols, tile_rows, tile_cols;
} cli_grid_values;

extern const cli_column cli_grid_columns[];

int cli_grid_print(uint32_t layout, const cli_grid_values *options);

#endif
