/* Declares look-ups that the library's tables do not offer. The functions find table entries by
 * name, names of scale formats and layouts by number, and the neighbors of a value in an element
 * format. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "common.h"

bool cli_elem_find(const char *name, bsmm_elem_info *info);

/* Tells whether a format is f32, f16 or bf16 without scales. */
bool cli_is_plain(bsmm_format format);

/* Finds the nearest finite values of a format below and above a value. A result is NAN if there is
 * no such value. */
void cli_elem_neighbours(const bsmm_elem_info *info, double value, double *below, double *above);

/* Returns the format's name. For a format without a name, returns a text such as
 * "e4m3/e8m0/128x128" (element, scale, block). */
cli_text cli_format_text(bsmm_format format);

const char *cli_layout_name(uint32_t layout);
/* Returns the name of a scale format, or "unknown" for an invalid number. */
const char *cli_scale_name(uint32_t scale);

#endif
