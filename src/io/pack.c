/* Packs matrices into stored blocks in which scales and elements alternate. The functions are the
 * inverses of those in unpack.c, which names the sources of the layouts. A function that refuses a
 * scale has written no block, because it checks all scales first. */
#include "io/family.h"

#include <inttypes.h>
#include <string.h>

/* Describes a kind of block in a file, in which a scale and its elements are stored together. A
 * block has `bytes` bytes and `elems` elements. `pack` packs the block whose first element is (r,
 * c) of the matrix. The largest scale code that a block can store is `most`. The error message for
 * a larger code gives the reason `why`. */
typedef struct block_kind {
    uint32_t bytes, elems, most;
    void (*pack)(const bsmm_operand *from, int64_t r, int64_t c, uint8_t *to);
    const char *why;
} block_kind;

static uint32_t scale_at(const bsmm_operand *from, int64_t r, int64_t column) {
    return bsmm_scale_load_code(from->m.format.scale, from->m.scales,
                                bsmm_scale_map_at(&from->map, r, column));
}

static uint8_t code_at(const bsmm_operand *from, int64_t r, int64_t c) {
    return (uint8_t)bsmm_elem_load(from->m.format.elem, from->m.data,
                                   bsmm_operand_index(from, r, c));
}

/* Packs 2 * half elements into `half` bytes: the first `half` elements are the low nibbles, and the
 * elements after these are the high nibbles. */
static void pack_halves(const bsmm_operand *from, int64_t r, int64_t c, uint32_t half,
                        uint8_t *to) {
    for (uint32_t k = 0; k < half; k++)
        to[k] = (uint8_t)(code_at(from, r, c + k) | code_at(from, r, c + half + k) << 4);
}

static bsmm_status check_scales(const bsmm_operand *from, const char *what,
                                const block_kind *kind) {
    for (int64_t r = 0; r < from->map.rows; r++)
        for (int64_t c = 0; c < from->map.cols; c++) {
            const uint32_t code = scale_at(from, r, c);
            if (code > kind->most)
                return bsmm_fail(BSMM_E_FORMAT,
                                 "%.160s: scale of row %" PRId64 ", column %" PRId64
                                 " is 0x%02X; %s",
                                 what, r, c * (int64_t)from->m.format.block_cols, code, kind->why);
        }
    return BSMM_OK;
}

static bsmm_status pack_blocks(const bsmm_operand *from, uint8_t *to, const char *what,
                               const block_kind *kind) {
    if (from->data_bytes == 0) return BSMM_OK;
    BSMM_TRY(check_scales(from, what, kind));
    for (int64_t r = 0; r < from->m.rows; r++)
        for (int64_t c = 0; c < from->m.cols; c += kind->elems, to += kind->bytes)
            kind->pack(from, r, c, to);
    return BSMM_OK;
}

static void gguf_mxfp4_block(const bsmm_operand *from, int64_t r, int64_t c, uint8_t *to) {
    to[0] = (uint8_t)scale_at(from, r, c / 32);
    pack_halves(from, r, c, 16, to + 1);
}

/* Packs mxfp4. The scale code 255 is refused, because it is NaN in e8m0 but a finite scale in
 * ggml. */
bsmm_status bsmm_pack_gguf_mxfp4(const bsmm_operand *from, uint8_t *to, const char *what) {
    static const block_kind mxfp4 = {17, 32, 0xFE, gguf_mxfp4_block, "ggml has no scale of NaN"};
    return pack_blocks(from, to, what, &mxfp4);
}

static void gguf_nvfp4_block(const bsmm_operand *from, int64_t r, int64_t c, uint8_t *to) {
    for (uint32_t k = 0; k < 4; k++) {
        const int64_t first = c + 16 * (int64_t)k;
        to[k] = (uint8_t)scale_at(from, r, first / 16);
        pack_halves(from, r, first, 8, to + 4 + 8 * (size_t)k);
    }
}

/* Packs nvfp4. A negative scale or NaN is refused: UE4M3, the scale format of ggml, has no sign
 * bit, and ggml reads 0x7F, which is NaN in e4m3, as 0. */
bsmm_status bsmm_pack_gguf_nvfp4(const bsmm_operand *from, uint8_t *to, const char *what) {
    static const block_kind nvfp4 = {36, 64, 0x7E, gguf_nvfp4_block,
                                     "UE4M3 has no sign and no NaN"};
    return pack_blocks(from, to, what, &nvfp4);
}
