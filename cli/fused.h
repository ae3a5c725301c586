/* Handles weights of a layer that inference engines multiply as one fused matrix with one global
 * scale. */
#ifndef CLI_FUSED_H
#define CLI_FUSED_H

#include "command.h"

/* Returns name number `index` in the list of weights that engines fuse with the weight `name`. The
 * list contains `name` itself. Returns NULL past the last name. The caller frees the result. */
char *cli_fused_name(const char *name, int index);

/* Computes the largest magnitude of all weights that engines fuse with `weight`, such as the
 * queries, keys and values of a layer. The function includes only weights for which
 * is_alike(context, `weight`, other) is true. *amax stays unchanged if engines fuse no weight with
 * this one. At most `threads` threads compute it, or all of the machine if `threads` is 0. Returns
 * NULL on success, otherwise the reason for the failure. */
const char *cli_fused_amax(const bsmm_file *file, const bsmm_weight *weight,
                           bool (*is_alike)(const void *context, const bsmm_weight *one,
                                            const bsmm_weight *other),
                           const void *context, uint32_t threads, float *amax);

#endif
