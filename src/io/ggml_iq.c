/* Decodes ggml's types IQ1, IQ2 and IQ3 to fp32, bitwise identical to ggml. An index in the block
 * stands for several elements. It selects a row of a table (ggml_grids.c) with the magnitudes of
 * these elements, or for IQ1 with their values. Source of the layouts: ggml-common.h (block_iq*).
 * Source of the rules: ggml-quants.c. In the comments below, d is the f16 factor of all scales of a
 * block. */
#include "io/gguf.h"

/* A block has SUPER elements. PART elements have one scale in the types whose name ends in XXS, and
 * also in IQ1_S and IQ3_S. EIGHT elements share a byte of sign bits. */
enum { SUPER = 256, PART = 32, EIGHT = 8 };

/* Returns element j of row `row` of the table `grid`. The table holds magnitudes or, for the types
 * IQ1, values. */
static float level(const bsmm_ggml_grid *grid, uint32_t row, uint32_t j) {
    return grid->levels[grid->rows[row] >> (grid->bits * j) & ((1u << grid->bits) - 1)];
}

/* Stores eight elements, which have one byte of sign bits. The grid is a table of magnitudes. A row
 * of it has the magnitudes of `each` elements (4 or 8). `indexes` has the numbers of the rows. */
static void store_eight(const bsmm_ggml_grid *grid, const uint32_t *indexes, uint32_t each,
                        float scale, uint32_t signs, float *values) {
    for (uint32_t j = 0; j < EIGHT; j++) {
        float value = scale * level(grid, indexes[j / each], j % each);
        values[j] = signs >> j & 1 ? -value : value;
    }
}

/* Returns eight signs from the seven that are stored. The eighth makes the number of negative
 * elements even. */
static uint32_t even_signs(uint32_t seven) {
    seven &= 127;
    return seven | ((uint32_t)__builtin_popcount(seven) & 1) << 7;
}

/* Returns number i of the 4-bit fields that begin at `from`. */
static uint32_t nibble(const uint8_t *from, size_t i) {
    return (uint32_t)from[i / 2] >> (i % 2 * 4) & 15;
}

static uint32_t load_u16(const uint8_t *from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8;
}

/* Decodes a block of IQ2_XXS. The block begins with the f16 factor d of all scales. For each 32
 * elements there follow four bytes and a uint32. Each byte is the index of a row of the table, and
 * the row has the magnitudes of eight elements. The lower 28 bits of the uint32 are four fields of
 * seven sign bits, and its top four bits are the scale. A field has the signs of eight elements.
 * Seven of them are stored; the eighth is such that the number of negative elements is even. */
void bsmm_gguf_iq2_xxs(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (size_t part = 0; part < SUPER / PART; part++) {
        const uint8_t *indexes = block + 2 + 8 * part;
        uint32_t word = bsmm_load_u32(indexes + 4);
        float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
        for (size_t i = 0; i < 4; i++)
            store_eight(&bsmm_ggml_grid_iq2_xxs, &(uint32_t){indexes[i]}, 8, scale,
                        even_signs(word >> (7 * i)), values + PART * part + EIGHT * i);
    }
}

/* Decodes a block of IQ2_XS. Its bytes are:
 * - the f16 factor d of all scales;
 * - for each 8 elements, a uint16 with the 9-bit index of a table row and seven signs;
 * - a 4-bit scale for each 16 elements. */
void bsmm_gguf_iq2_xs(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (size_t i = 0; i < SUPER / EIGHT; i++) {
        uint32_t word = load_u16(block + 2 + 2 * i);
        float scale = d * (0.5f + (float)nibble(block + 66, i / 2)) * 0.25f;
        store_eight(&bsmm_ggml_grid_iq2_xs, &(uint32_t){word & 511}, 8, scale,
                    even_signs(word >> 9), values + EIGHT * i);
    }
}

/* Decodes a block of IQ2_S. Its bytes are:
 * - the f16 factor d of all scales;
 * - for each 8 elements, the lower eight bits of the index of a table row;
 * - eight signs for each index;
 * - the upper two bits of each index;
 * - a 4-bit scale for each 16 elements. */
void bsmm_gguf_iq2_s(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    const uint8_t *low = block + 2, *signs = block + 34, *high = block + 66, *scales = block + 74;
    for (size_t i = 0; i < SUPER / EIGHT; i++) {
        uint32_t index = low[i] | ((uint32_t)high[i / 4] >> (i % 4 * 2) & 3) << 8;
        float scale = d * (0.5f + (float)nibble(scales, i / 2)) * 0.25f;
        store_eight(&bsmm_ggml_grid_iq2_s, &index, 8, scale, signs[i], values + EIGHT * i);
    }
}

/* Decodes a block of IQ3_XXS. Its bytes are:
 * - the f16 factor d of all scales;
 * - for each 4 elements, the index of a table row;
 * - for each 32 elements, a uint32. Its top four bits are the scale. Its other bits are four
 *   groups of seven signs, one group for each 8 elements (even_signs computes the eighth sign). */
void bsmm_gguf_iq3_xxs(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (size_t i = 0; i < SUPER / EIGHT; i++) {
        uint32_t word = bsmm_load_u32(block + 66 + 4 * (i / 4));
        float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
        const uint32_t indexes[2] = {block[2 + 2 * i], block[3 + 2 * i]};
        store_eight(&bsmm_ggml_grid_iq3_xxs, indexes, 4, scale, even_signs(word >> (7 * (i % 4))),
                    values + EIGHT * i);
    }
}

/* Decodes a block of IQ3_S. Its bytes are:
 * - the f16 factor d of all scales;
 * - for each 4 elements, the lower eight bits of the index of a table row;
 * - the ninth bit of each index;
 * - the signs of all elements;
 * - a 4-bit scale for each 32 elements. */
void bsmm_gguf_iq3_s(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    const uint8_t *low = block + 2, *ninth = block + 66, *signs = block + 74, *scales = block + 106;
    for (size_t i = 0; i < SUPER / EIGHT; i++) {
        uint32_t ninths = (uint32_t)ninth[i / 4] >> (i % 4 * 2);
        const uint32_t indexes[2] = {low[2 * i] | (ninths & 1) << 8,
                                     low[2 * i + 1] | (ninths >> 1 & 1) << 8};
        float scale = d * (float)(1 + 2 * nibble(scales, i / 4));
        store_eight(&bsmm_ggml_grid_iq3_s, indexes, 4, scale, signs[i], values + EIGHT * i);
    }
}

/* Stores eight elements of a type IQ1. All of them are moved by 1/8 before they are scaled: down if
 * `down` is nonzero, else up. */
static void store_moved(uint32_t index, float scale, uint32_t down, float *values) {
    float move = down ? -0.125f : 0.125f;
    for (uint32_t j = 0; j < EIGHT; j++)
        values[j] = scale * (level(&bsmm_ggml_grid_iq1, index, j) + move);
}

/* Decodes a block of IQ1_S. A table row has the values of eight elements, and its index has 11
 * bits. The block begins with the f16 factor d of all scales. Then follow, for each 8 elements, the
 * lower eight bits of an index. At the end there is a uint16 for each 32 elements. Its lower 12
 * bits are the upper three bits of four indexes, the next three bits are a scale, and the top bit
 * tells whether 1/8 is subtracted from all elements or added to them. */
void bsmm_gguf_iq1_s(const uint8_t *block, float *values) {
    float d = bsmm_gguf_half(block);
    for (size_t i = 0; i < SUPER / EIGHT; i++) {
        uint32_t word = load_u16(block + 34 + 2 * (i / 4));
        float scale = d * (float)(2 * (word >> 12 & 7) + 1);
        store_moved(block[2 + i] | (word >> (3 * (i % 4)) & 7) << 8, scale, word >> 15,
                    values + EIGHT * i);
    }
}

/* Decodes a block of IQ1_M. Its bytes are:
 * - for each 8 elements, the lower eight bits of an 11-bit index of a table row;
 * - for each 8 elements, four bits: the upper three bits of the index, and the direction in which
 *   the elements are moved by 1/8;
 * - four uint16, each for 64 elements. The lower 12 bits are four 3-bit scales, one for each 16
 *   elements. The top four bits are a quarter of the f16 factor d that multiplies all scales. The
 *   first uint16 has the lowest quarter. */
void bsmm_gguf_iq1_m(const uint8_t *block, float *values) {
    const uint8_t *upper = block + 32, *words = block + 48;
    uint8_t half[2] = {(uint8_t)(words[1] >> 4 | (words[3] & 0xF0)),
                       (uint8_t)(words[5] >> 4 | (words[7] & 0xF0))};
    float d = bsmm_gguf_half(half);
    for (size_t i = 0; i < SUPER / EIGHT; i++) {
        uint32_t bits = nibble(upper, i), word = load_u16(words + 2 * (i / 8));
        float scale = d * (float)(2 * (word >> (3 * (i / 2 % 4)) & 7) + 1);
        store_moved(block[i] | (bits & 7) << 8, scale, bits >> 3, values + EIGHT * i);
    }
}
