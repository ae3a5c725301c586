/* Makes the tables that decode weights, either to pairs of bf16 for the instruction vdpbf16ps or to
 * fp32 for FMAs. */
#include "cpu/small_m/small_m_bf16dot.h"

#include <math.h>
#include <string.h>

typedef bsmm_decode_tables tables;

bsmm_weights bsmm_weights_of(const bsmm_format *f) {
    uint32_t bits = bsmm_elem_row(f->elem)->bits;
    if (bits == 4) return f->scale == BSMM_SCALE_E4M3 ? BSMM_PRODUCTS4 : BSMM_SHIFTED4;
    return bits == 6 ? BSMM_SHIFTED6 : BSMM_SHIFTED8;
}

/* Returns the smallest code without sign that is Inf or NaN. */
static uint8_t first_special(uint32_t elem) {
    uint8_t code = 0;
    while (code < 0x80 && isfinite(bsmm_elem_decode(elem, code)))
        code++;
    return code;
}

static uint16_t bf16_of(double value) {
    return (uint16_t)bsmm_elem_encode(BSMM_ELEM_BF16, value, false);
}

/* Returns the bf16 bits of a code's value. -0 becomes +0, which changes no result, because adding a
 * product of zero changes no sum. */
static uint16_t word_of(uint32_t elem, uint32_t code) {
    double value = bsmm_elem_decode(elem, code);
    return value == 0 ? 0 : bf16_of(value);
}

static void make_words(uint32_t elem, tables *t) {
    uint32_t codes = 1u << bsmm_elem_row(elem)->bits;
    for (uint32_t i = 0; i < 64; i++) {
        uint16_t word = word_of(elem, i % codes);
        memcpy(&t->bytes[i / 32][i % 32 * 2], &word, sizeof word);
    }
}

/* Makes a table of 64 products in bf16: each of the eight e2m1 magnitudes times each of the eight
 * mantissas of an e4m3 scale. Bits 3 to 5 of an index are the code of the magnitude, and bits 0 to
 * 2 are the mantissa field. All products are multiplied by 2^8, because the loop divides the
 * scales' powers of two by 2^8. */
static void make_products(uint32_t elem, tables *t) {
    for (uint32_t i = 0; i < 64; i++) {
        double mantissa = 1 + (i & 7) / 8.0;
        uint16_t word = bf16_of(bsmm_elem_decode(elem, i >> 3) * mantissa * 0x1p8);
        memcpy(&t->bytes[i / 32][i % 32 * 2], &word, sizeof word);
    }
}

static void make_bytes(uint32_t elem, tables *t) {
    t->special = first_special(elem);
    for (uint32_t i = 0; i < 128; i++) {
        uint16_t word = bf16_of(bsmm_elem_decode(elem, i));
        t->bytes[i / 64][i % 64] = (uint8_t)word;
        t->bytes[2 + i / 64][i % 64] = (uint8_t)(word >> 8);
    }
}

void bsmm_decode_tables_for_dots(const bsmm_product *p, void *to) {
    static void (*const makes[])(uint32_t elem, tables * t) = {[BSMM_SHIFTED4] = make_words,
                                                               [BSMM_PRODUCTS4] = make_products,
                                                               [BSMM_SHIFTED6] = make_words,
                                                               [BSMM_SHIFTED8] = make_bytes};
    memset(to, 0, sizeof(tables));
    makes[bsmm_weights_of(&p->b.m.format)](p->b.m.format.elem, to);
}

/* Makes the table of the values of 4-bit codes. With e4m3 scales the values are multiplied by 2^8,
 * because the loop reads such scales as f16, which gives 2^-8 of their values. */
static void make_floats(const bsmm_format *f, tables *t) {
    double factor = f->scale == BSMM_SCALE_E4M3 ? 0x1p8 : 1;
    for (uint32_t i = 0; i < 16; i++) {
        float value = (float)(bsmm_elem_decode(f->elem, i) * factor);
        memcpy(&t->bytes[0][i * 4], &value, sizeof value);
    }
}

/* Makes the tables for FMAs with 6-bit codes: the low and high bytes of each code's value in bf16.
 */
static void make_all_bytes(uint32_t elem, tables *t) {
    for (uint32_t i = 0; i < 64; i++) {
        uint16_t word = word_of(elem, i);
        t->bytes[0][i] = (uint8_t)word;
        t->bytes[2][i] = (uint8_t)(word >> 8);
    }
}

void bsmm_decode_tables_for_fmas(const bsmm_product *p, void *to) {
    const bsmm_format *f = &p->b.m.format;
    memset(to, 0, sizeof(tables));
    uint32_t bits = bsmm_elem_row(f->elem)->bits;
    if (bits == 4)
        make_floats(f, to);
    else if (bits == 6)
        make_all_bytes(f->elem, to);
    else
        make_bytes(f->elem, to);
}
