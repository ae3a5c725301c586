/* Packs matrices into stored blocks in which scales and elements alternate. The functions are the
 * inverses of those in unpack.c, which names the sources of the layouts. */
#include "io/family.h"

#include <inttypes.h>
#include <string.h>

/* Packs one block, whose first element is (r, c) of the matrix. */
typedef bsmm_status (*pack_block)(const bsmm_operand *from, int64_t r, int64_t c, uint8_t *to,
                                  const char *what);

static bsmm_status pack_blocks(const bsmm_operand *from, uint8_t *to, const char *what,
                               uint32_t bytes, uint32_t elems, pack_block pack) {
    if (from->data_bytes == 0) return BSMM_OK;
    for (int64_t r = 0; r < from->m.rows; r++)
        for (int64_t c = 0; c < from->m.cols; c += elems, to += bytes)
            BSMM_TRY(pack(from, r, c, to, what));
    return BSMM_OK;
}

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

static bsmm_status refuse_scale(const char *what, uint32_t code, int64_t r, int64_t c,
                                const char *why) {
    return bsmm_fail(BSMM_E_FORMAT,
                     "%.160s: scale of row %" PRId64 ", column %" PRId64 " is 0x%02X; %s", what, r,
                     c, code, why);
}

/* Packs one block of mxfp4. The scale code 255 is refused, because it is NaN in e8m0 but a finite
 * scale in ggml. */
static bsmm_status gguf_mxfp4_block(const bsmm_operand *from, int64_t r, int64_t c, uint8_t *to,
                                    const char *what) {
    const uint32_t scale = scale_at(from, r, c / 32);
    if (scale == 0xFF) return refuse_scale(what, scale, r, c, "ggml has no scale of NaN");
    to[0] = (uint8_t)scale;
    pack_halves(from, r, c, 16, to + 1);
    return BSMM_OK;
}

bsmm_status bsmm_pack_gguf_mxfp4(const bsmm_operand *from, uint8_t *to, const char *what) {
    return pack_blocks(from, to, what, 17, 32, gguf_mxfp4_block);
}

/* Packs one block of nvfp4. A negative scale or NaN is refused: UE4M3, the scale format of ggml,
 * has no sign bit, and ggml reads 0x7F, which is NaN in e4m3, as 0. */
static bsmm_status gguf_nvfp4_block(const bsmm_operand *from, int64_t r, int64_t c, uint8_t *to,
                                    const char *what) {
    for (uint32_t k = 0; k < 4; k++) {
        const int64_t first = c + 16 * (int64_t)k;
        const uint32_t scale = scale_at(from, r, first / 16);
        if (scale >= 0x7F)
            return refuse_scale(what, scale, r, first, "UE4M3 has no sign and no NaN");
        to[k] = (uint8_t)scale;
        pack_halves(from, r, first, 8, to + 4 + 8 * (size_t)k);
    }
    return BSMM_OK;
}

bsmm_status bsmm_pack_gguf_nvfp4(const bsmm_operand *from, uint8_t *to, const char *what) {
    return pack_blocks(from, to, what, 36, 64, gguf_nvfp4_block);
}
