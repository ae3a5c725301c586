/* Declares the functions of cpu_avx512_bf16dot_small_m: the kinds of stored weights, the tables
 * that decode them, and the loops that multiply them. There are two sets of loops with bitwise
 * identical results.
 *
 * The loops with dot products decode the codes to pairs of bf16, multiplied by their scales, for
 * the instruction vdpbf16ps. The loops with FMAs are for processors on which vdpbf16ps takes the
 * time of four FMAs. They decode the codes to fp32 and add the odd element of each pair first, as
 * vdpbf16ps does. They multiply the accumulators by e8m0 scales instead of the elements, which
 * gives the same bits because a multiplication by a power of two does not round. */
#ifndef BSMM_CPU_SMALL_M_BF16DOT_H
#define BSMM_CPU_SMALL_M_BF16DOT_H

#include "cpu/small_m/small_m.h"

/* `bsmm_weights` lists the kinds of weights. The number in a name is the number of bits of an
 * element. PRODUCTS means that the scales are e4m3 (nvfp4), and that each element is multiplied by
 * its scale when it is decoded. SHIFTED means all other weights: their scales are powers of two, or
 * fp32 scales by which whole sums are multiplied, or there are none. */
typedef enum bsmm_weights {
    BSMM_SHIFTED4,
    BSMM_PRODUCTS4,
    BSMM_SHIFTED6,
    BSMM_SHIFTED8,
    BSMM_WEIGHTS
} bsmm_weights;

bsmm_weights bsmm_weights_of(const bsmm_format *format);

/* BSMM_STEP_CODES is the number of scale codes of a panel (16 rows of B) in a step of 32 elements
 * of K. Each row has one e8m0 scale in a step. With e4m3 scales each row has two, because their
 * blocks may have only 16 elements. */
#define BSMM_STEP_CODES(kind)                                                                      \
    ((kind) == BSMM_PRODUCTS4 ? 2 * BSMM_SMALL_M_LANES : BSMM_SMALL_M_LANES)

/* These tables decode weights. They are made once per plan. Their contents depend on the kind of
 * weights and on whether the loops use dot products or FMAs. */
typedef struct bsmm_decode_tables {
    _Alignas(64) uint8_t bytes[4][64];
    /* `special` is the smallest 8-bit code without sign that is Inf or NaN. Panels with such codes
     * must be packed. */
    uint8_t special;
} bsmm_decode_tables;

_Static_assert(sizeof(bsmm_decode_tables) <= BSMM_SMALL_M_CONTEXT_BYTES,
               "the tables are an engine's context");

void bsmm_decode_tables_for_dots(const bsmm_product *p, void *to);
void bsmm_decode_tables_for_fmas(const bsmm_product *p, void *to);

/* Implements the member `prepare` of bsmm_small_m_engine, which checks and converts the gathered
 * scales of a panel (16 rows of B). */
bool bsmm_small_m_bf16_prepare(const bsmm_small_m_scales *s);

/* Checks and converts the gathered scales of a panel (16 rows of B) for the loops with dot
 * products. It replaces each e4m3 scale by a product code: bits 0 to 2 are the mantissa m of the
 * scale (1 + m / 8) * 2^(8 - d), and bits 3 to 7 are d. The product code of a scale of zero is
 * BSMM_PRODUCT_ZERO. */
bool bsmm_small_m_bf16_prepare_dots(const bsmm_small_m_scales *s);
enum { BSMM_PRODUCT_ZERO = 0xff };

/* This struct is a set of multiply loops: either the loops with dot products or the loops with
 * FMAs. `multiply` has three indices. The first is the kind of weights. The second is 1 if the loop
 * multiplies the sums of each 128 elements of K by scales, else 0. The third is the number of the
 * tile size, i.e. of the number of rows in a tile of A. */
typedef struct bsmm_small_m_bf16_form {
    /* `panels` is the number of panels of B that are multiplied side by side. */
    int64_t panels[BSMM_WEIGHTS][BSMM_SMALL_M_TILES];
    uint32_t (*multiply[BSMM_WEIGHTS][2][BSMM_SMALL_M_TILES])(const bsmm_small_m_span *span);
} bsmm_small_m_bf16_form;

/* `bsmm_small_m_bf16_plain_form` holds the multiply loops for weights in bf16 without scales. The
 * first index of `multiply` is 1 for the loops with FMAs and 0 for the loops with dot products. The
 * last index of both arrays is the number of the tile size: 0 for tiles of A with 1 row, up to
 * BSMM_SMALL_M_TILES - 1 for 16 rows. `panels` is the number of panels of B that are multiplied
 * side by side. */
typedef struct bsmm_small_m_bf16_plain_form {
    int64_t panels[BSMM_SMALL_M_TILES];
    uint32_t (*multiply[2][BSMM_SMALL_M_TILES])(const bsmm_small_m_span *span);
} bsmm_small_m_bf16_plain_form;

#if defined(__x86_64__)
extern const bsmm_small_m_bf16_form bsmm_small_m_bf16_dots, bsmm_small_m_bf16_fmas;
extern const bsmm_small_m_bf16_plain_form bsmm_small_m_bf16_plain;

/* These functions implement the member `multiply_packed` of bsmm_small_m_engine. The kernels
 * usually multiply B as it is stored. But they pack a panel (16 rows) of B first if it has an
 * element that is Inf or NaN, or scales that are NaN, negative or too far apart. `multiply_packed`
 * multiplies such packed panels. The first index is 0 for bf16 dot products and 1 for FMAs. The
 * second index is 1 if sums are scaled after each 128 elements of K, else 0. */
extern void (*const bsmm_small_m_bf16_packed[2][2])(const uint8_t *a, const uint8_t *b,
                                                    int64_t width, int64_t units, float *acc);
#endif

#endif
