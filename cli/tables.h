/* Look-ups that the library's tables do not offer directly: rows by name, names by value,
 * neighbouring values. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "common.h"

bool cli_elem_find(const char *name, bsmm_elem_info *info);

/* Tells whether a format is unscaled f32, f16 or bf16 (an element of more than 8 bits). */
bool cli_is_plain(bsmm_format format);

/* Finds the finite values of a format next below and next above a value. A neighbour that does not
 * exist is NaN. */
void cli_elem_neighbours(const bsmm_elem_info *info, double value, double *below, double *above);

/* Returns the format's name, or a text such as "e4m3/e8m0/128x128" for a format without a name. */
cli_text cli_format_text(bsmm_format format);

const char *cli_layout_name(uint32_t layout);
/* Returns "unknown" for a number that is no scale format. */
const char *cli_scale_name(uint32_t scale);

#endif
