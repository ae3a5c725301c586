/* Unpacks stored blocks in which scales and elements alternate. The result is a row-major matrix of
 * codes and a row-major matrix of scales. Sources of the layouts: ggml-common.h (block_mxfp4,
 * block_nvfp4) and Quark's pack.py (Pack_mxfp4, Pack_mxfp6). */
#include "io/family.h"
#include "io/gguf.h"

#include <inttypes.h>

typedef struct block_shape {
    uint32_t bytes, elems;
} block_shape;

typedef struct block_target {
    const bsmm_operand *to;
    /* `row` and `col` are the position of the block's first element in the matrix. */
    int64_t row, col;
    const char *what;
} block_target;

static void put(const block_target *t, uint32_t k, uint32_t code) {
    bsmm_elem_store(t->to->m.format.elem, t->to->m.data,
                    bsmm_operand_index(t->to, t->row, t->col + k), code);
}

static void put_scale(const block_target *t, uint32_t k, uint32_t code) {
    int64_t column = t->col / t->to->m.format.block_cols + k;
    bsmm_scale_store_code(t->to->m.format.scale, t->to->m.scales,
                          bsmm_scale_map_at(&t->to->map, t->row, column), code);
}

typedef bsmm_status (*unpack_block)(const uint8_t *from, const block_target *t);

static bsmm_status unpack_blocks(const uint8_t *from, const bsmm_operand *to, const char *what,
                                 block_shape shape, unpack_block unpack) {
    /* A file's header may claim 2^50 rows of 0 columns. A loop over them would take too long. */
    if (to->data_bytes == 0) return BSMM_OK;
    for (int64_t r = 0; r < to->m.rows; r++)
        for (int64_t c = 0; c < to->m.cols; c += shape.elems, from += shape.bytes)
            BSMM_TRY(unpack(from, &(block_target){to, r, c, what}));
    return BSMM_OK;
}

/* Stores 2 * half elements, from element `first` of the block on, which are packed in `half` bytes.
 * The low nibbles are the elements first to first + half - 1. The high nibbles are the `half`
 * elements after these. */
static void put_halves(const uint8_t *from, const block_target *t, uint32_t first, uint32_t half) {
    for (uint32_t k = 0; k < half; k++) {
        put(t, first + k, from[k] & 15u);
        put(t, first + half + k, from[k] >> 4);
    }
}

/* Unpacks a block of ggml's mxfp4. The value that ggml gives to an element is twice its e2m1 value,
 * and ggml's scale for byte e is 2^(e - 128). The product therefore equals the e2m1 value times
 * 2^(e - 127), and byte e is also the e8m0 code. Code 255 becomes NaN, the value that it has in
 * e8m0. */
static bsmm_status gguf_mxfp4_block(const uint8_t *from, const block_target *t) {
    put_scale(t, 0, from[0]);
    put_halves(from + 1, t, 0, 16);
    return BSMM_OK;
}

bsmm_status bsmm_unpack_gguf_mxfp4(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what) {
    (void)row;
    return unpack_blocks(from, to, what, (block_shape){17, 32}, gguf_mxfp4_block);
}

/* Unpacks a block of ggml's nvfp4. Its scale format, UE4M3, has no sign bit, and ggml reads the
 * scale 0x7F as 0. */
static bsmm_status gguf_nvfp4_block(const uint8_t *from, const block_target *t) {
    const uint8_t *nibbles = from + 4;
    for (uint32_t k = 0; k < 4; k++, nibbles += 8) {
        if (from[k] & 0x80)
            return bsmm_fail(BSMM_E_FORMAT,
                             "%.160s: scale %u of row %" PRId64 ", column %" PRId64
                             " is 0x%02X; UE4M3 has no sign",
                             t->what, k, t->row, t->col, from[k]);
        put_scale(t, k, from[k] == 0x7F ? 0 : from[k]);
        put_halves(nibbles, t, 16 * k, 8);
    }
    return BSMM_OK;
}

bsmm_status bsmm_unpack_gguf_nvfp4(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what) {
    (void)row;
    return unpack_blocks(from, to, what, (block_shape){36, 64}, gguf_nvfp4_block);
}

/* Converts the exponent byte of a Quark block to an e8m0 code. The byte is a signed integer without
 * a bias. The exponent -128 has no code in e8m0. */
static bsmm_status put_quark_scale(const uint8_t *from, const block_target *t) {
    if (from[0] == 0x80)
        return bsmm_fail(BSMM_E_FORMAT,
                         "%.160s: exponent of row %" PRId64 ", column %" PRId64
                         " is -128; must be -127 to 127",
                         t->what, t->row, t->col);
    put_scale(t, 0, (from[0] + 127u) & 255u);
    return BSMM_OK;
}

static bsmm_status quark_mxfp4_block(const uint8_t *from, const block_target *t) {
    BSMM_TRY(put_quark_scale(from, t));
    for (uint32_t k = 0; k < 32; k++)
        put(t, k, (uint32_t)from[1 + k / 2] >> (k % 2 * 4) & 15u);
    return BSMM_OK;
}

bsmm_status bsmm_unpack_quark_mxfp4(const bsmm_storage *row, const uint8_t *from,
                                    const bsmm_operand *to, const char *what) {
    (void)row;
    return unpack_blocks(from, to, what, (block_shape){17, 32}, quark_mxfp4_block);
}

/* Unpacks a block of Quark's mxfp6. Each three bytes hold four elements of 6 bits. The first byte
 * has the upper two bits of each of the four elements, and the other two bytes have the lower four
 * bits of each. In every byte the first element has the most significant bits. */
static bsmm_status quark_mxfp6_block(const uint8_t *from, const block_target *t) {
    BSMM_TRY(put_quark_scale(from, t));
    for (uint32_t k = 0; k < 32; k++) {
        const uint8_t *group = &from[1 + k / 4 * 3];
        uint32_t i = k % 4;
        uint32_t top = (uint32_t)group[0] >> (6 - 2 * i) & 3u;
        uint32_t low = (uint32_t)group[1 + i / 2] >> (i % 2 ? 0 : 4) & 15u;
        put(t, k, top << 4 | low);
    }
    return BSMM_OK;
}

bsmm_status bsmm_unpack_quark_mxfp6(const bsmm_storage *row, const uint8_t *from,
                                    const bsmm_operand *to, const char *what) {
    (void)row;
    return unpack_blocks(from, to, what, (block_shape){25, 32}, quark_mxfp6_block);
}

bsmm_status bsmm_unpack_gguf_plain(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what) {
    const bsmm_gguf_type *type = bsmm_gguf_type_named(row->data_dtype);
    float *values = to->m.data;
    (void)what;
    /* A file's header may claim 2^50 rows of 0 columns. A loop over so many rows would take too
     * long. */
    if (to->data_bytes == 0) return BSMM_OK;
    for (int64_t r = 0; r < to->m.rows; r++)
        for (int64_t c = 0; c < to->m.cols; c += type->block, from += type->bytes)
            type->decode(from, values + bsmm_operand_index(to, r, c));
    return BSMM_OK;
}
