/* Defines variants of a multiply function: one for each kind of weights, each number of rows in a
 * tile of A, and each of two ways to scale sums. FOLDED means that the sums over K are scaled at
 * the end. SEGMENTED means that sums are scaled after each 128 elements of K. Each variant calls
 * `multiply`, which the including file defines, with constant arguments, so that the compiler
 * specializes its loop. */
#ifndef BSMM_CPU_SMALL_M_BF16DOT_VARIANTS_H
#define BSMM_CPU_SMALL_M_BF16DOT_VARIANTS_H

#define VARIANT(width, kind, segments)                                                             \
    TARGET static uint32_t multiply_##kind##_##segments##_##width(const bsmm_small_m_span *s) {    \
        return multiply(s, width, BSMM_##kind, segments);                                          \
    }
#define VARIANTS(kind, segments)        BSMM_SMALL_M_EACH_TILE(VARIANT, kind, segments)
#define MULTIPLY(width, kind, segments) multiply_##kind##_##segments##_##width,
#define ROW(kind, segments)                                                                        \
    { BSMM_SMALL_M_EACH_TILE(MULTIPLY, kind, segments) }
#define KIND(kind)                                                                                 \
    { ROW(kind, FOLDED), ROW(kind, SEGMENTED) }

#define PANELS_OF_TILE(width, kind) PANELS_OF(BSMM_##kind, width),
#define PANELS_OF_TILES(kind)                                                                      \
    { BSMM_SMALL_M_EACH_TILE(PANELS_OF_TILE, kind) }

enum { FOLDED = 0, SEGMENTED = 1 };
VARIANTS(SHIFTED4, FOLDED)
VARIANTS(SHIFTED4, SEGMENTED)
VARIANTS(PRODUCTS4, FOLDED)
VARIANTS(PRODUCTS4, SEGMENTED)
VARIANTS(SHIFTED6, FOLDED)
VARIANTS(SHIFTED6, SEGMENTED)
VARIANTS(SHIFTED8, FOLDED)
VARIANTS(SHIFTED8, SEGMENTED)

/* BSMM_SMALL_M_VARIANTS is a table of multiply functions, one for each variant. The first index is
 * the kind of weights. The second index is 1 if sums are scaled after each 128 elements of K, else
 * 0. The third index is the number of rows in a tile. */
#define BSMM_SMALL_M_VARIANTS                                                                      \
    {                                                                                              \
        [BSMM_SHIFTED4] = KIND(SHIFTED4), [BSMM_PRODUCTS4] = KIND(PRODUCTS4),                      \
        [BSMM_SHIFTED6] = KIND(SHIFTED6), [BSMM_SHIFTED8] = KIND(SHIFTED8)                         \
    }

/* BSMM_SMALL_M_VARIANT_PANELS is a table of the numbers of panels of B that the variants multiply
 * side by side, as the macro PANELS_OF of the including file gives them. */
#define BSMM_SMALL_M_VARIANT_PANELS                                                                \
    {                                                                                              \
        [BSMM_SHIFTED4] = PANELS_OF_TILES(SHIFTED4),                                               \
        [BSMM_PRODUCTS4] = PANELS_OF_TILES(PRODUCTS4),                                             \
        [BSMM_SHIFTED6] = PANELS_OF_TILES(SHIFTED6), [BSMM_SHIFTED8] = PANELS_OF_TILES(SHIFTED8)   \
    }

#endif
