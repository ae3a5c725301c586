/* Base: failures, versioned structs, checked arithmetic. Sees nothing but bsmm.h. */
#ifndef BSMM_BASE_H
#define BSMM_BASE_H

#include "bsmm.h"

#include <stdbool.h>

#define BSMM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Records this thread's message and returns `status`. The text names field, value and rule. */
bsmm_status bsmm_fail(bsmm_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prefixes this thread's message with "prefix: ", for callers that know the file or matrix. */
bsmm_status bsmm_fail_within(bsmm_status status, const char *prefix);

/* Returns from the calling function when `expression` fails. */
#define BSMM_TRY(expression)                                                                       \
    do {                                                                                           \
        bsmm_status try_status = (expression);                                                     \
        if (try_status != BSMM_OK) return try_status;                                              \
    } while (0)

/* Copies a caller's struct whose first field is struct_size into *to (to_bytes long, zeroed
 * beyond the caller's size). INVALID, naming `what`, if it is NULL, smaller than 8 bytes, or
 * larger than to_bytes with a nonzero tail. */
bsmm_status bsmm_take_struct(void *to, size_t to_bytes, const void *from, const char *what);

/* Fills a caller's output struct from *from, as much as its struct_size holds; struct_size stays.
 */
bsmm_status bsmm_give_struct(void *to, const void *from, size_t from_bytes, const char *what);

/* *result = a * b, or a + b; false on overflow. */
static inline bool bsmm_mul_u64(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_mul_overflow(a, b, result);
}
static inline bool bsmm_add_u64(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_add_overflow(a, b, result);
}

/* Ceiling of a / b and a rounded up to a multiple of b, for a >= 0, b > 0 without overflow. */
static inline int64_t bsmm_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}
static inline int64_t bsmm_round_up(int64_t a, int64_t b) {
    return bsmm_ceil_div(a, b) * b;
}
static inline int64_t bsmm_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* alignment: a power of two. A division here would take a tenth of a small product's time. */
static inline bool bsmm_is_aligned(const void *pointer, uint32_t alignment) {
    return ((uintptr_t)pointer & (alignment - 1)) == 0;
}

/* How many threads `asked` (0 = all) means here. */
int bsmm_thread_count(uint32_t asked);

#endif
