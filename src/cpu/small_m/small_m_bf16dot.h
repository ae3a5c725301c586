/* The parts of cpu_avx512_bf16dot_small_m: how weights are stored, what their codes become, and the
 * loops that multiply them, in two forms with the same bits.
 *
 * By dots: codes become pairs of bf16 with their scales folded in, for vdpbf16ps. By FMAs, where
 * vdpbf16ps takes the time of four: codes become fp32, the odd element of a pair first; an e8m0
 * scale moves the sum instead of the elements, since powers of two change no rounding. */
#ifndef BSMM_CPU_SMALL_M_BF16DOT_H
#define BSMM_CPU_SMALL_M_BF16DOT_H

#include "cpu/small_m/small_m.h"

/* How elements are stored and scaled: bits, and whether by e4m3 (products) or by less. */
typedef enum bsmm_weights {
    BSMM_SHIFTED4,
    BSMM_PRODUCTS4,
    BSMM_SHIFTED6,
    BSMM_SHIFTED8,
    BSMM_WEIGHTS
} bsmm_weights;

bsmm_weights bsmm_weights_of(const bsmm_format *format);

/* Scale codes of a step: one, or two halves'. */
#define BSMM_STEP_CODES(kind)                                                                      \
    ((kind) == BSMM_PRODUCTS4 ? 2 * BSMM_SMALL_M_LANES : BSMM_SMALL_M_LANES)

/* What codes become, made once a plan; what the bytes hold depends on kind and form. */
typedef struct bsmm_decode_tables {
    _Alignas(64) uint8_t bytes[4][64];
    uint8_t special; /* magnitudes of 8 bits from here on are packed: Inf and NaN */
} bsmm_decode_tables;

_Static_assert(sizeof(bsmm_decode_tables) <= BSMM_SMALL_M_CONTEXT_BYTES,
               "the tables are an engine's context");

void bsmm_decode_tables_for_dots(const bsmm_product *p, void *to);
void bsmm_decode_tables_for_fmas(const bsmm_product *p, void *to);

/* bsmm_small_m_engine's prepare. */
bool bsmm_small_m_bf16_prepare(const bsmm_small_m_scales *s);

/* Tiles of 1, 2, 4, 8 and 16 rows. */
enum { BSMM_BF16_TILES = 5 };

/* One form's loops; [2] is by segment. */
typedef struct bsmm_small_m_bf16_form {
    int64_t panels[BSMM_WEIGHTS][BSMM_BF16_TILES]; /* side by side */
    uint32_t (*multiply[BSMM_WEIGHTS][2][BSMM_BF16_TILES])(const bsmm_small_m_span *span);
} bsmm_small_m_bf16_form;

#if defined(__x86_64__)
extern const bsmm_small_m_bf16_form bsmm_small_m_bf16_dots, bsmm_small_m_bf16_fmas;

/* bsmm_small_m_engine's multiply_packed: [by FMAs][by segment]. */
extern void (*const bsmm_small_m_bf16_packed[2][2])(const uint8_t *a, const uint8_t *b,
                                                    int64_t width, int64_t units, float *acc);
#endif

#endif
