/* Quantizes a weight whose single fp32 scale must be the scale of other weights too, because
 * inference engines fuse these weights. */
#ifndef CLI_QUANTIZE_JOINT_H
#define CLI_QUANTIZE_JOINT_H

#include "command.h"

/* A function of this type quantizes `source` to `target`. It returns the reason of a failure, or
 * NULL. */
typedef const char *quantize_fill(const void *context, const bsmm_matrix *source,
                                  const bsmm_matrix *target);

/* Calls `fill` so that `target` gets the scale of a matrix with the largest magnitude `amax`. The
 * format of `target` must have one scale for the whole matrix, and the rows of `source` and
 * `target` must be contiguous. */
const char *quantize_joint(const bsmm_matrix *source, const bsmm_matrix *target, float amax,
                           quantize_fill *fill, const void *context);

#endif
