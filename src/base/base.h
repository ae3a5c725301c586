/* The base room: error messages, versioned structs, checked arithmetic, thread counts. It includes
 * only bsmm.h. */
#ifndef BSMM_BASE_H
#define BSMM_BASE_H

#include "bsmm.h"

#include <stdbool.h>

#define BSMM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Records this thread's error message and returns `status`. The text names the field, its value and
 * the rule. */
bsmm_status bsmm_fail(bsmm_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " in front of this thread's message. Callers use it to add the name of a file or a
 * matrix. */
bsmm_status bsmm_fail_within(bsmm_status status, const char *prefix);

/* Returns the status of `expression` from the calling function if it is not BSMM_OK. */
#define BSMM_TRY(expression)                                                                       \
    do {                                                                                           \
        bsmm_status try_status = (expression);                                                     \
        if (try_status != BSMM_OK) return try_status;                                              \
    } while (0)

/* Copies a caller's struct, whose first field is struct_size, into *to. `to` has to_bytes bytes;
 * bytes past the caller's struct_size are set to zero. INVALID, with `what` in the message, if the
 * pointer is NULL, if the struct is smaller than 8 bytes, or if it is larger than to_bytes and its
 * tail is not zero. */
bsmm_status bsmm_take_struct(void *to, size_t to_bytes, const void *from, const char *what);

/* Copies *from into a caller's output struct, up to the caller's struct_size. The field struct_size
 * itself is not changed. */
bsmm_status bsmm_give_struct(void *to, const void *from, size_t from_bytes, const char *what);

/* Computes a * b or a + b in *result; returns false on overflow. */
static inline bool bsmm_mul_u64(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_mul_overflow(a, b, result);
}
static inline bool bsmm_add_u64(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_add_overflow(a, b, result);
}

/* Rounds a size up to whole cache lines. */
static inline uint64_t bsmm_align64(uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* These functions compute the ceiling of a / b, and a rounded up to a multiple of b. They need a >=
 * 0 and b > 0, and do not overflow. */
static inline int64_t bsmm_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}
static inline int64_t bsmm_round_up(int64_t a, int64_t b) {
    return bsmm_ceil_div(a, b) * b;
}
static inline int64_t bsmm_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Tests an alignment, which must be a power of two. The test uses a mask, because an integer
 * division here would take a tenth of a small product's time. */
static inline bool bsmm_is_aligned(const void *pointer, uint32_t alignment) {
    return ((uintptr_t)pointer & (alignment - 1)) == 0;
}

/* Returns the number of threads to use for a caller's request; 0 means all of the machine. */
int bsmm_thread_count(uint32_t asked);

#endif
