/* Declares what every folder of src/ uses: error messages, structs with a struct_size field,
 * checked arithmetic and thread counts. This header includes only bsmm.h. */
#ifndef BSMM_BASE_H
#define BSMM_BASE_H

#include "bsmm.h"

#include <stdbool.h>

#define BSMM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Records an error message for the calling thread (bsmm_error_message returns it) and returns
 * `status`. The message must name the field, its value and the rule that the value breaks. */
bsmm_status bsmm_fail(bsmm_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " in front of the calling thread's error message and returns `status`. Callers use
 * the function to add the name of a file or a matrix to a message. */
bsmm_status bsmm_fail_within(bsmm_status status, const char *prefix);

/* A bsmm_message is a copy of the calling thread's error message. A function that succeeds although
 * a part of its work fails, such as a search for devices, keeps the message before that work and
 * restores it afterwards. bsmm_error_message promises the message of the last call that failed. */
typedef struct bsmm_message {
    char text[512];
} bsmm_message;
void bsmm_message_keep(bsmm_message *to);
void bsmm_message_restore(const bsmm_message *from);

/* Formats the reason for which a kernel or a device refuses a request into why[size], and returns
 * `why`. */
const char *bsmm_reason(char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the status of `expression` from the calling function if it is not BSMM_OK. */
#define BSMM_TRY(expression)                                                                       \
    do {                                                                                           \
        bsmm_status try_status = (expression);                                                     \
        if (try_status != BSMM_OK) return try_status;                                              \
    } while (0)

/* Copies a caller's struct *from into *to, which has to_bytes bytes. The struct's first field is
 * struct_size, its size in the version of bsmm.h that the caller was compiled with. Bytes of *to
 * past struct_size become zero. The function fails with INVALID, and puts `what` into the message,
 * in three cases: `from` is NULL; struct_size is less than 8 or not a multiple of a pointer's size;
 * struct_size is larger than to_bytes and a byte of *from past to_bytes is not zero. */
bsmm_status bsmm_take_struct(void *to, size_t to_bytes, const void *from, const char *what);

/* Copies *from, which has from_bytes bytes, into a caller's output struct *to. It writes no more
 * than the caller's to->struct_size bytes and leaves the field struct_size unchanged. */
bsmm_status bsmm_give_struct(void *to, const void *from, size_t from_bytes, const char *what);

/* bsmm_mul_u64 stores a * b in *result, and bsmm_add_u64 stores a + b. They return false if the
 * result overflows 64 bits. */
static inline bool bsmm_mul_u64(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_mul_overflow(a, b, result);
}
static inline bool bsmm_add_u64(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_add_overflow(a, b, result);
}

/* Rounds a size in bytes up to a multiple of 64, the size of a cache line. */
static inline uint64_t bsmm_align64(uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* bsmm_ceil_div returns the ceiling of a / b, and bsmm_round_up returns a rounded up to a multiple
 * of b. They need a >= 0 and b > 0. bsmm_ceil_div cannot overflow. */
static inline int64_t bsmm_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}
static inline int64_t bsmm_round_up(int64_t a, int64_t b) {
    return bsmm_ceil_div(a, b) * b;
}
static inline int64_t bsmm_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Tells whether an address is a multiple of `alignment`, which must be a power of two. The test
 * uses a mask, because an integer division here took a tenth of the time of a small product. */
static inline bool bsmm_is_aligned(const void *pointer, uint32_t alignment) {
    return ((uintptr_t)pointer & (alignment - 1)) == 0;
}

/* Returns the number of threads to use if a caller asks for `requested` threads. The result is
 * `requested` or, if `requested` is 0, the number of processors that the process may use, but at
 * most 1024 in both cases. */
int bsmm_thread_count(uint32_t requested);

#endif
