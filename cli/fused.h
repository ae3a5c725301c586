/* Handles weights of a layer that inference engines multiply as one fused matrix with one global
 * scale. */
#ifndef CLI_FUSED_H
#define CLI_FUSED_H

#include "command.h"

/* Engines fuse some weights, such as the queries, keys and values of a layer. The function returns
 * name number `index` of the weights that are fused with the weight `name`, which is itself one of
 * them. Returns NULL past the last name. The caller frees the result. */
char *cli_fused_name(const char *name, int index);

/* Raises *amax to the largest magnitude of all weights that engines fuse with `weight`, such as the
 * queries, keys and values of a layer. Only weights for which is_alike(context, weight, other) is
 * true count. *amax stays unchanged if engines fuse no weight with `weight`. `threads` limits the
 * number of threads, where 0 means all processors. Returns NULL on success, otherwise the reason
 * for the failure. */
const char *cli_fused_amax(const bsmm_file *file, const bsmm_weight *weight,
                           bool (*is_alike)(const void *context, const bsmm_weight *one,
                                            const bsmm_weight *other),
                           const void *context, uint32_t threads, float *amax);

#endif
