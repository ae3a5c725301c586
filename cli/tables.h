/* What the library's tables do not give directly: rows by name, names by value, neighbours. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "common.h"

bool cli_elem_find(const char *name, bsmm_elem_info *info);

/* Whether a format is f32, f16 or bf16 without scales: an element of more than 8 bits. */
bool cli_is_plain(bsmm_format format);

/* The finite values of the format next below and next above; NaN where there is none. */
void cli_elem_neighbours(const bsmm_elem_info *info, double value, double *below, double *above);

/* The format's name, or "e4m3/e8m0/128x128" where it has none. */
cli_text cli_format_text(bsmm_format format);

const char *cli_layout_name(uint32_t layout);
const char *cli_scale_name(uint32_t scale); /* "unknown" past the last */

#endif
