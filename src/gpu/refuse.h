/* Writes reasons why GPU kernels refuse a product. Each reason names the operand or field, its
 * value and the rule. Host code of all GPU backends uses these functions. */
#ifndef BSMM_GPU_REFUSE_H
#define BSMM_GPU_REFUSE_H

#include "core/kernel.h"

/* Returns NULL if M, N and K are at most 2^31 - 1, the largest index in kernels. Otherwise writes
 * the reason to `why` and returns it. */
const char *bsmm_gpu_refuse_large(const bsmm_product *p, char *why, size_t size);

/* Returns NULL if M, N and K are from 1 to 2^31 - 1. Otherwise writes the reason to `why` and
 * returns it. */
const char *bsmm_gpu_refuse_extents(const bsmm_product *p, char *why, size_t size);

/* Writes the reason why the kernel refuses an operand's format to `why`, and returns it. The reason
 * is "A is FORMAT; " and then `rule`, which is a clause such as "the kernel takes mxfp4". `name` is
 * 'A' or 'B'. */
const char *bsmm_gpu_refuse_format(const bsmm_operand *o, char name, const char *rule, char *why,
                                   size_t size);

/* Writes the reason why the kernel refuses the formats of A and B together to `why`, and returns
 * it. The reason ends in `rule`, a clause such as "the kernel takes mxfp4". */
const char *bsmm_gpu_refuse_formats(const bsmm_product *p, const char *rule, char *why,
                                    size_t size);

/* Returns NULL if the operand is row-major. Otherwise writes to `why` the reason why the kernel
 * refuses the operand, and returns `why`. */
const char *bsmm_gpu_refuse_order(const bsmm_operand *o, char name, char *why, size_t size);

/* Returns NULL if A and B are row-major. Otherwise writes the reason to `why` and returns it. */
const char *bsmm_gpu_refuse_orders(const bsmm_product *p, char *why, size_t size);

/* Returns NULL if D has at most `most` tiles of rows x cols results. Otherwise writes the reason to
 * `why` and returns it. */
const char *bsmm_gpu_refuse_tiles(const bsmm_product *p, int64_t rows, int64_t cols, int64_t most,
                                  char *why, size_t size);

/* Returns NULL if A has at most `most` rows. Otherwise writes the reason to `why` and returns it.
 */
const char *bsmm_gpu_refuse_rows(const bsmm_product *p, int64_t most, char *why, size_t size);

#endif
