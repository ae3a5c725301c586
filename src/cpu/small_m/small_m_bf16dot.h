/* This file declares the parts of cpu_avx512_bf16dot_small_m: how weights are stored, how their
 * codes are decoded, and the loops that multiply them. The loops have two forms, with bitwise
 * identical results.
 *
 * The form with dot products decodes codes to pairs of bf16 with their scales folded in, for
 * vdpbf16ps. The form with FMAs is for processors on which vdpbf16ps takes the time of four FMAs.
 * It decodes codes to fp32 and adds the odd element of a pair first. It multiplies the accumulators
 * by e8m0 scales instead of the elements, since powers of two change no rounding. */
#ifndef BSMM_CPU_SMALL_M_BF16DOT_H
#define BSMM_CPU_SMALL_M_BF16DOT_H

#include "cpu/small_m/small_m.h"

/* Says how elements are stored and scaled: their bits, and whether their scales are e4m3 (PRODUCTS)
 * or not (SHIFTED). */
typedef enum bsmm_weights {
    BSMM_SHIFTED4,
    BSMM_PRODUCTS4,
    BSMM_SHIFTED6,
    BSMM_SHIFTED8,
    BSMM_WEIGHTS
} bsmm_weights;

bsmm_weights bsmm_weights_of(const bsmm_format *format);

/* Counts the scale codes of a step: one per lane, or one for each half of the step. */
#define BSMM_STEP_CODES(kind)                                                                      \
    ((kind) == BSMM_PRODUCTS4 ? 2 * BSMM_SMALL_M_LANES : BSMM_SMALL_M_LANES)

/* Holds tables for decoding, made once per plan. Their contents depend on the kind of weights and
 * the form. */
typedef struct bsmm_decode_tables {
    _Alignas(64) uint8_t bytes[4][64];
    /* Smallest 8-bit magnitude that is Inf or NaN; panels with such codes are packed. */
    uint8_t special;
} bsmm_decode_tables;

_Static_assert(sizeof(bsmm_decode_tables) <= BSMM_SMALL_M_CONTEXT_BYTES,
               "the tables are an engine's context");

void bsmm_decode_tables_for_dots(const bsmm_product *p, void *to);
void bsmm_decode_tables_for_fmas(const bsmm_product *p, void *to);

/* Implements `prepare` of bsmm_small_m_engine. */
bool bsmm_small_m_bf16_prepare(const bsmm_small_m_scales *s);

/* There are tiles of 1, 2, 4, 8 and 16 rows. */
enum { BSMM_BF16_TILES = 5 };

/* Holds the loops of one form. The index [2] says whether K has segments. */
typedef struct bsmm_small_m_bf16_form {
    int64_t panels[BSMM_WEIGHTS][BSMM_BF16_TILES]; /* panels that are multiplied side by side */
    uint32_t (*multiply[BSMM_WEIGHTS][2][BSMM_BF16_TILES])(const bsmm_small_m_span *span);
} bsmm_small_m_bf16_form;

#if defined(__x86_64__)
extern const bsmm_small_m_bf16_form bsmm_small_m_bf16_dots, bsmm_small_m_bf16_fmas;

/* These implement `multiply_packed` of bsmm_small_m_engine. The indices are [products by FMAs][K is
 * cut into segments]. */
extern void (*const bsmm_small_m_bf16_packed[2][2])(const uint8_t *a, const uint8_t *b,
                                                    int64_t width, int64_t units, float *acc);
#endif

#endif
