/* Copies structs to which later versions of the library add fields at the end. A caller sets
 * struct_size to the number of bytes that the struct has in the caller's version of bsmm.h. */
#include "base/base.h"

#include <string.h>

/* `smallest` is the smallest valid size of a struct in bytes: 4 bytes of struct_size and 4 bytes of
 * one field. */
static const size_t smallest = 8;
static const size_t largest = 1u << 16;

static uint32_t size_of(const void *versioned) {
    uint32_t size;
    memcpy(&size, versioned, sizeof size);
    return size;
}

static bsmm_status check_size(const void *from, const char *what) {
    if (!from) return bsmm_fail(BSMM_E_INVALID, "%s: value is NULL; must point to a struct", what);
    uint32_t size = size_of(from);
    /* The size must be a multiple of a pointer's size. The struct ends at such a multiple in every
     * version of bsmm.h. Any other size could end in the middle of a pointer, and half a pointer
     * would be copied. */
    if (size < smallest || size > largest || size % sizeof(void *) != 0)
        return bsmm_fail(BSMM_E_INVALID, "%s.struct_size: value is %u; must be sizeof the struct",
                         what, size);
    return BSMM_OK;
}

bsmm_status bsmm_take_struct(void *to, size_t to_bytes, const void *from, const char *what) {
    BSMM_TRY(check_size(from, what));
    size_t size = size_of(from);
    for (size_t i = to_bytes; i < size; i++)
        if (((const uint8_t *)from)[i])
            return bsmm_fail(BSMM_E_INVALID,
                             "%s.struct_size: value is %zu; this library knows %zu bytes and the "
                             "rest must be zero",
                             what, size, to_bytes);
    size_t known = size < to_bytes ? size : to_bytes;
    memcpy(to, from, known);
    if (known < to_bytes) memset((uint8_t *)to + known, 0, to_bytes - known);
    return BSMM_OK;
}

bsmm_status bsmm_give_struct(void *to, const void *from, size_t from_bytes, const char *what) {
    BSMM_TRY(check_size(to, what));
    size_t size = size_of(to);
    size_t known = size < from_bytes ? size : from_bytes;
    memcpy((uint8_t *)to + sizeof(uint32_t), (const uint8_t *)from + sizeof(uint32_t),
           known - sizeof(uint32_t));
    memset((uint8_t *)to + known, 0, size - known);
    return BSMM_OK;
}
