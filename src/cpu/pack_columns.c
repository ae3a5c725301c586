/* Columns that lie apart, in plain C: one after another they give a word of codes, of as many rows;
 * a square of those, transposed, is a word of each row. */
#include "cpu/pack.h"

#include <string.h>

/* What lies above `low` in x moves to where it lies in y, and back. */
static inline void exchange(uint64_t *x, uint64_t *y, int shift, uint64_t low) {
    uint64_t moved = (*x >> shift ^ *y) & low;
    *y ^= moved;
    *x ^= moved << shift;
}

enum { BYTES = 8, HALVES = 4 }; /* of a word */

static inline void transpose_bytes(uint64_t x[BYTES]) {
    for (int i = 0; i < 4; i++)
        exchange(&x[i], &x[i + 4], 32, 0x00000000ffffffff);
    for (int i = 0; i < 8; i += i % 2 ? 3 : 1)
        exchange(&x[i], &x[i + 2], 16, 0x0000ffff0000ffff);
    for (int i = 0; i < 8; i += 2)
        exchange(&x[i], &x[i + 1], 8, 0x00ff00ff00ff00ff);
}

static inline void transpose_halves(uint64_t x[HALVES]) {
    for (int i = 0; i < 2; i++)
        exchange(&x[i], &x[i + 2], 32, 0x00000000ffffffff);
    for (int i = 0; i < 4; i += 2)
        exchange(&x[i], &x[i + 1], 16, 0x0000ffff0000ffff);
}

/* 8 codes, one to a byte. */
static inline uint64_t spread(uint64_t codes, uint32_t bits) {
    if (bits == 4) {
        codes &= 0x00000000ffffffff;
        codes = (codes | codes << 16) & 0x0000ffff0000ffff;
        codes = (codes | codes << 8) & 0x00ff00ff00ff00ff;
        return (codes | codes << 4) & 0x0f0f0f0f0f0f0f0f;
    }
    if (bits == 6) {
        codes = (codes & 0x0000000000ffffff) | (codes & 0x0000ffffff000000) << 8;
        codes = (codes & 0x00000fff00000fff) | (codes & 0x00fff00000fff000) << 4;
        return (codes & 0x003f003f003f003f) | (codes & 0x0fc00fc00fc00fc0) << 2;
    }
    return codes;
}

static inline uint64_t load_word(const uint8_t *base, uint64_t bit) {
    uint64_t word;
    memcpy(&word, base + bit / 8, sizeof word);
    return word >> bit % 8;
}

static inline void store_bytes(const bsmm_pack_columns *c, uint32_t bits, uint8_t *to) {
    for (uint64_t i = 0; i < BSMM_PACK_RUN; i += BYTES) {
        uint64_t words[BYTES];
        for (uint64_t j = 0; j < BYTES; j++)
            words[j] = spread(load_word(c->base, c->bit + (i + j) * c->step), bits);
        transpose_bytes(words);
        for (int lane = 0; lane < BYTES; lane++)
            memcpy(to + lane * BSMM_PACK_SPAN + i, &words[lane], sizeof words[lane]);
    }
}

static void store_halves(const bsmm_pack_columns *c, uint16_t *to) {
    for (uint64_t i = 0; i < BSMM_PACK_RUN; i += HALVES)
        for (int lane = 0; lane < BSMM_PACK_LANES; lane += HALVES) {
            uint64_t words[HALVES], *row = words;
            for (uint64_t j = 0; j < HALVES; j++)
                words[j] = load_word(c->base + lane * 2, c->bit + (i + j) * c->step);
            transpose_halves(words);
            for (int j = 0; j < HALVES; j++, row++)
                memcpy(to + (lane + j) * BSMM_PACK_SPAN + i, row, sizeof *row);
        }
}

void bsmm_pack_portable_columns(const bsmm_pack_columns *columns, uint8_t *to) {
    if (columns->bits == 4) store_bytes(columns, 4, to);
    if (columns->bits == 6) store_bytes(columns, 6, to);
    if (columns->bits == 8) store_bytes(columns, 8, to);
    if (columns->bits == 16) store_halves(columns, (uint16_t *)(void *)to);
}
