/* This file has the table of the types that tensors in files have, and computes the sizes of shapes
 * in bytes. */
#include "io/io.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The entries have the order of the type list in safetensors' reference implementation, because its
 * writer sorts the tensors of a file by that order. */
/* clang-format off */
static const bsmm_dtype rows[] = {
    {.name = "BOOL", .bits = 8, .npy = "|b1"},
    {.name = "F4", .bits = 4, .elem = BSMM_ELEM_E2M1},
    {.name = "F6_E2M3", .bits = 6, .elem = BSMM_ELEM_E2M3},
    {.name = "F6_E3M2", .bits = 6, .elem = BSMM_ELEM_E3M2},
    {.name = "U8", .bits = 8, .npy = "|u1"},
    {.name = "I8", .bits = 8, .npy = "|i1"},
    {.name = "F8_E5M2", .bits = 8, .elem = BSMM_ELEM_E5M2},
    {.name = "F8_E4M3", .bits = 8, .elem = BSMM_ELEM_E4M3},
    {.name = "F8_E8M0", .bits = 8, .elem = BSMM_ELEM_E8M0},
    {.name = "F8_E4M3FNUZ", .bits = 8, .elem = BSMM_ELEM_E4M3FNUZ},
    {.name = "F8_E5M2FNUZ", .bits = 8, .elem = BSMM_ELEM_E5M2FNUZ},
    {.name = "I16", .bits = 16, .npy = "<i2"},
    {.name = "U16", .bits = 16, .npy = "<u2"},
    {.name = "F16", .bits = 16, .elem = BSMM_ELEM_F16, .npy = "<f2"},
    {.name = "BF16", .bits = 16, .elem = BSMM_ELEM_BF16},
    {.name = "I32", .bits = 32, .npy = "<i4"},
    {.name = "U32", .bits = 32, .npy = "<u4"},
    {.name = "F32", .bits = 32, .elem = BSMM_ELEM_F32, .npy = "<f4"},
    {.name = "C64", .bits = 64, .npy = "<c8"},
    {.name = "F64", .bits = 64, .npy = "<f8"},
    {.name = "I64", .bits = 64, .npy = "<i8"},
    {.name = "U64", .bits = 64, .npy = "<u8"},
};
/* clang-format on */

const bsmm_dtype *bsmm_dtype_at(size_t index) {
    return index < BSMM_COUNT(rows) ? &rows[index] : NULL;
}

const bsmm_dtype *bsmm_dtype_find(const char *name) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

const bsmm_dtype *bsmm_dtype_of_elem(uint32_t elem) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (elem != BSMM_ELEM_NONE && rows[i].elem == elem) return &rows[i];
    return NULL;
}

const bsmm_dtype *bsmm_dtype_of_scale(uint32_t scale) {
    const bsmm_scale_row *row = bsmm_scale_row_of(scale);
    return row ? bsmm_dtype_of_elem(row->elem) : NULL;
}

bsmm_status bsmm_shape_bytes(bsmm_status status, const char *what, const bsmm_dtype *dtype,
                             uint32_t ndim, const int64_t *shape, uint64_t *bytes) {
    if (ndim > BSMM_MAX_DIMS)
        return bsmm_fail(status, "%s.shape: has %u dimensions; at most %u are read or written",
                         what, ndim, BSMM_MAX_DIMS);
    uint64_t bits = dtype->bits;
    for (uint32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return bsmm_fail(status, "%s.shape[%u]: value is %" PRId64 "; must be 0 or more", what,
                             i, shape[i]);
        if (!bsmm_mul_u64(bits, (uint64_t)shape[i], &bits) || bits > INT64_MAX)
            return bsmm_fail(status, "%s.shape: the product overflows; must be below 2^63 bits",
                             what);
    }
    if (bits % 8)
        return bsmm_fail(status, "%s.shape: takes %" PRIu64 " bits; must be whole bytes", what,
                         bits);
    *bytes = bits / 8;
    return BSMM_OK;
}

void bsmm_shape_text(uint32_t ndim, const int64_t *shape, char *text, size_t size) {
    int used = snprintf(text, size, "[");
    for (uint32_t i = 0; i < ndim && used > 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used > 0 && (size_t)used < size) snprintf(text + used, size - (size_t)used, "]");
}
