/* Checks that options are compatible with each other, before any file is opened. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "command.h"

/* Returns the reason why a recipe cannot write a format with a global scale of this form, or NULL
 * if it can. recipe NULL means the format's default. */
const char *cli_recipe_refusal(const char *recipe, bsmm_format format, uint32_t global_kind);

/* Returns the reason why a family cannot store matrices of this format, order and scale layout,
 * whatever their size, or NULL if it can. */
const char *cli_family_refusal(const char *family, const bsmm_matrix *matrix);

/* Returns a list of the families that can store such matrices, "a, b, c". The caller frees it. */
char *cli_families_for(const bsmm_matrix *matrix);
bool cli_is_family(const char *name);

#endif
