#include "shaped.h"

#include <string.h>

/* Clears the sign bit of each element. If elements have 6 bits, which share bytes, only the top bit
 * of each byte is cleared, so only some elements become positive. */
static void clear_signs(test_matrix *t) {
    const uint32_t bits = bsmm_elem_row(t->m.format.elem)->bits, bytes = bits <= 8 ? 1 : bits / 8;
    uint8_t *data = t->m.data;
    for (uint64_t i = 0; i < t->data_bytes; i++)
        data[i] &= bits == 4 ? 0x77 : i % bytes == bytes - 1 ? 0x7f : 0xff;
}

/* Writes e8m0 scales that grow from 2^-7 to 1 along the blocks of each row. */
static void let_scales_grow(test_matrix *t) {
    const uint64_t blocks = (uint64_t)t->m.cols / 32;
    uint8_t *scales = t->m.scales;
    if (t->m.format.scale != BSMM_SCALE_E8M0) return;
    for (uint64_t i = 0; i < t->scale_bytes; i++)
        scales[i] = (uint8_t)(120 + i % blocks * 8 / blocks);
}

static void apply(test_matrix *t, test_shape shape) {
    if (shape != SHAPE_MIXED) clear_signs(t);
    if (shape == SHAPE_GROWING) let_scales_grow(t);
}

static bsmm_format format_of(const char *name, int64_t k) {
    if (strcmp(name, "fp8_rows") != 0) return format_named(name);
    return (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, (uint32_t)k};
}

void test_shaped_make(test_matrix *a, test_matrix *b, const char *const pair[2], int64_t m,
                      int64_t n, int64_t k, test_shape shape) {
    rng r = {(uint64_t)k};
    test_matrix_make(a, describe(format_of(pair[0], k), m, k), FILL_ORDINARY, &r);
    test_matrix_make(b, describe(format_of(pair[1], k), n, k), FILL_ORDINARY, &r);
    apply(a, shape);
    apply(b, shape);
}
