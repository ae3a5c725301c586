/* Quantizes a weight whose single fp32 scale must be the scale of other weights too, because
 * inference engines fuse these weights. */
#ifndef CLI_QUANTIZE_JOINT_H
#define CLI_QUANTIZE_JOINT_H

#include "command.h"

/* A function of this type quantizes `source` to `target`. It returns the reason of a failure, or
 * NULL. */
typedef const char *quantize_fill(const void *context, const bsmm_matrix *source,
                                  const bsmm_matrix *target);

/* Quantizes `source` to `target` with a scale that several weights share. `amax` is the largest
 * magnitude of all these weights. The function appends a row that contains `amax` to a copy of
 * `source`, lets `fill` quantize the copy, and stores the result without this row to `target`. The
 * format of `target` must have one scale for the whole matrix, and the rows of `source` and
 * `target` must be contiguous. */
const char *quantize_joint(const bsmm_matrix *source, const bsmm_matrix *target, float amax,
                           quantize_fill *fill, const void *context);

#endif
