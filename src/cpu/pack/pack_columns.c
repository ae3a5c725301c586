/* Reads column-major operands in plain C and transposes them to rows. */
#include "cpu/pack/pack.h"

#define INLINE static inline
enum { WORDS = 1 };
typedef uint64_t word;

#include "cpu/pack/pack_columns_body.h"

enum { HALVES = 4, FULLS = 2 }; /* A 64-bit word holds HALVES 16-bit codes or FULLS 32-bit codes. */

static inline void transpose_halves(word x[HALVES]) {
    for (int i = 0; i < 2; i++)
        exchange(&x[i], &x[i + 2], 32, 0x00000000ffffffff);
    for (int i = 0; i < 4; i += 2)
        exchange(&x[i], &x[i + 1], 16, 0x0000ffff0000ffff);
}

static void store_halves(const bsmm_pack_columns *c, uint8_t *to) {
    for (uint64_t i = 0; i < BSMM_PACK_RUN; i += HALVES * WORDS)
        for (uint64_t lane = 0; lane < BSMM_PACK_LANES; lane += HALVES) {
            word words[HALVES];
            for (uint64_t j = 0; j < HALVES; j++)
                load_words(c, i + j, HALVES, lane * 2, &words[j]);
            transpose_halves(words);
            for (uint64_t j = 0; j < HALVES; j++)
                memcpy(to + (lane + j) * BSMM_PACK_PITCH + i * 2, &words[j], sizeof words[j]);
        }
}

static void store_fulls(const bsmm_pack_columns *c, uint8_t *to) {
    for (uint64_t i = 0; i < BSMM_PACK_RUN; i += FULLS * WORDS)
        for (uint64_t lane = 0; lane < BSMM_PACK_LANES; lane += FULLS) {
            word words[FULLS];
            for (uint64_t j = 0; j < FULLS; j++)
                load_words(c, i + j, FULLS, lane * 4, &words[j]);
            exchange(&words[0], &words[1], 32, 0x00000000ffffffff);
            for (uint64_t j = 0; j < FULLS; j++)
                memcpy(to + (lane + j) * BSMM_PACK_PITCH + i * 4, &words[j], sizeof words[j]);
        }
}

void bsmm_pack_portable_columns(const bsmm_pack_columns *columns, uint8_t *to) {
    if (columns->bits == 16)
        store_halves(columns, to);
    else if (columns->bits == 32)
        store_fulls(columns, to);
    else
        store_narrow(columns, to);
}
