/* Quantizes a weight whose single fp32 scale must be the scale of other weights too, because
 * inference engines fuse these weights. */
#ifndef CLI_QUANTIZE_JOINT_H
#define CLI_QUANTIZE_JOINT_H

#include "command.h"

/* A function of this type quantizes `source` to `target`. It returns the reason of a failure, or
 * NULL. */
typedef const char *quantize_fill(const void *context, const bsmm_matrix *source,
                                  const bsmm_matrix *target);

/* Calls `fill` so that `target` gets the scale of a matrix whose largest magnitude is `amax`. The
 * format of `target` must have one scale for the whole matrix. The rows of `source` and the rows of
 * `target` must be stored one after another. */
const char *quantize_joint(const bsmm_matrix *source, const bsmm_matrix *target, float amax,
                           quantize_fill *fill, const void *context);

#endif
