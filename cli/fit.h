/* Checks that options are compatible with each other, before any file is opened. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "command.h"

/* Returns the reason why a recipe cannot write a format with a global scale of the kind
 * `global_kind` (bsmm_global). Returns NULL if the recipe can. A `recipe` of NULL means the
 * default recipe of the format. */
const char *cli_recipe_refusal(const char *recipe, bsmm_format format, uint32_t global_kind);

/* Returns the reason why a checkpoint family cannot store matrices with the format, order and
 * scale layout of `matrix` in the file `out`. Returns NULL if the family can. */
const char *cli_family_refusal(const char *family, const bsmm_matrix *matrix, const char *out);

/* Returns a list "a, b, c" of the checkpoint families that can store matrices with the format,
 * order and scale layout of `matrix` in the file `out`. The caller frees the list. */
char *cli_families_for(const bsmm_matrix *matrix, const char *out);
bool cli_is_family(const char *name);

#endif
