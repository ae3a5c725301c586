/* Whether options go together, before any file is opened. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "command.h"

/* Why a recipe (NULL: the format's default) cannot write a format with a global scale of this kind;
 * NULL if it can. */
const char *cli_recipe_refusal(const char *recipe, bsmm_format format, uint32_t global_kind);

/* Why a family cannot hold matrices of this format, order and scale layout, whatever their size;
 * NULL if it can. */
const char *cli_family_refusal(const char *family, const bsmm_matrix *matrix);

/* The families that hold such matrices, "a, b, c", in memory that the caller frees. */
char *cli_families_for(const bsmm_matrix *matrix);
bool cli_is_family(const char *name);

#endif
