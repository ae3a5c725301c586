/* Copies a part of a panel (16 rows of B) to a buffer in which the bytes of each row are
 * contiguous. Small-M kernels use the copy where they cannot read B as it is stored. */
#include "cpu/small_m/small_m.h"

#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES };

static bool is_compact(const bsmm_operand *b) {
    return b->m.order == BSMM_ORDER_COMPACT;
}

/* Returns the address of a row of B. If B is in compact order, the 16 rows of a panel are stored
 * together, and `row` must be the first of them. */
static const uint8_t *row_at(const bsmm_operand *b, int64_t row) {
    return (const uint8_t *)b->m.data + row * b->m.ld * bsmm_elem_row(b->m.format.elem)->bits / 8;
}

/* Copies bytes. If `bytes` is a multiple of 16 up to 64, as in products with a short K, the
 * function copies 16 bytes at a time, because compilers turn such a copy of constant size into one
 * load and one store. */
static inline void copy_bytes(const uint8_t *from, int64_t bytes, uint8_t *to) {
    if (bytes > 64 || bytes % 16 != 0) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (int64_t i = 0; i < bytes; i += 16)
        memcpy(to + i, from + i, 16);
}

/* Copies bytes [from, from + bytes) of the elements of a row of B to consecutive bytes. */
static void copy_row(const bsmm_operand *b, int64_t row, int64_t from, int64_t bytes, uint8_t *to) {
    if (!is_compact(b)) {
        copy_bytes(row_at(b, row) + from, bytes, to);
        return;
    }
    int64_t bits = bsmm_elem_row(b->m.format.elem)->bits, k = from * 8 / bits;
    bsmm_compact_read(b, row, k, bsmm_min_i64(bytes * 8 / bits, b->m.cols - k), to);
}

void bsmm_small_m_copy_panel(const bsmm_operand *b, int64_t row, int64_t from, int64_t bytes,
                             uint8_t *to, int64_t pitch) {
    int64_t piece =
        bsmm_compact_piece(b->m.format.elem) * bsmm_elem_row(b->m.format.elem)->bits / 8;
    if (is_compact(b) && row % LANES == 0 && row + LANES <= b->m.rows && bytes % piece == 0) {
        bsmm_small_m_unpack(row_at(b, row) + from * LANES, bytes, piece, to, pitch);
        return;
    }
    for (int64_t lane = 0; lane < LANES; lane++)
        copy_row(b, bsmm_min_i64(row + lane, b->m.rows - 1), from, bytes, to + lane * pitch);
}
