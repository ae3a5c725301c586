/* Reads column-major operands and transposes them to rows. 64 bits of a column are n codes, one for
 * each of n rows. A transposition turns n such values of 64 bits, from n columns, into n values
 * that each hold n codes of one row. A file includes this body after it has defined INLINE, WORDS
 * and the type `word`. A `word` is a vector of WORDS values of 64 bits (or a single value), so that
 * WORDS transpositions are done at once. Each of its values is loaded from another column. */
#ifndef BSMM_CPU_PACK_COLUMNS_BODY_H
#define BSMM_CPU_PACK_COLUMNS_BODY_H

#include "cpu/pack/pack.h"

#include <string.h>

/* This function is one step of a transposition of bytes in registers: it swaps the bits of x in the
 * mask `low` << shift with the bits of y in the mask `low`. */
INLINE void exchange(word *x, word *y, int shift, uint64_t low) {
    word moved = (*x >> shift ^ *y) & low;
    *y ^= moved;
    *x ^= moved << shift;
}

enum { BYTES = 8 };

INLINE void transpose_bytes(word x[BYTES]) {
    for (int i = 0; i < 4; i++)
        exchange(&x[i], &x[i + 4], 32, 0x00000000ffffffff);
    for (int i = 0; i < 8; i += i % 2 ? 3 : 1)
        exchange(&x[i], &x[i + 2], 16, 0x0000ffff0000ffff);
    for (int i = 0; i < 8; i += 2)
        exchange(&x[i], &x[i + 1], 8, 0x00ff00ff00ff00ff);
}

/* Moves 8 packed codes of 4 or 6 bits to one byte each. */
INLINE void spread(word *codes, uint32_t bits) {
    word x = *codes;
    if (bits == 4) {
        x &= 0x00000000ffffffff;
        x = (x | x << 16) & 0x0000ffff0000ffff;
        x = (x | x << 8) & 0x00ff00ff00ff00ff;
        x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    }
    if (bits == 6) {
        x = (x & 0x0000000000ffffff) | (x & 0x0000ffffff000000) << 8;
        x = (x & 0x00000fff00000fff) | (x & 0x00fff00000fff000) << 4;
        x = (x & 0x003f003f003f003f) | (x & 0x0fc00fc00fc00fc0) << 2;
    }
    *codes = x;
}

/* Loads one 64-bit word from each of WORDS columns: columns i, i + stride, i + 2 * stride and so
 * on. It skips the first `skip` bytes of each column. */
INLINE void load_words(const bsmm_pack_columns *c, uint64_t i, uint64_t stride, uint64_t skip,
                       word *to) {
    uint64_t words[WORDS];
    for (uint64_t w = 0; w < WORDS; w++) {
        uint64_t bit = c->bit + (i + w * stride) * c->step;
        memcpy(&words[w], c->base + skip + bit / 8, sizeof words[w]);
        words[w] >>= bit % 8;
    }
    memcpy(to, words, sizeof *to);
}

INLINE void store_bytes(const bsmm_pack_columns *c, uint32_t bits, uint8_t *to) {
    for (uint64_t i = 0; i < BSMM_PACK_RUN; i += BYTES * WORDS) {
        word words[BYTES];
        for (uint64_t j = 0; j < BYTES; j++) {
            load_words(c, i + j, BYTES, 0, &words[j]);
            spread(&words[j], bits);
        }
        transpose_bytes(words);
        for (int lane = 0; lane < BYTES; lane++)
            memcpy(to + lane * BSMM_PACK_SPAN + i, &words[lane], sizeof words[lane]);
    }
}

/* Reads codes of up to 8 bits from columns and stores them in row order. */
INLINE void store_narrow(const bsmm_pack_columns *c, uint8_t *to) {
    if (c->bits == 4) store_bytes(c, 4, to);
    if (c->bits == 6) store_bytes(c, 6, to);
    if (c->bits == 8) store_bytes(c, 8, to);
}

#endif
