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
#define VARIANTS(kind, segments)                                                                   \
    VARIANT(1, kind, segments)                                                                     \
    VARIANT(2, kind, segments)                                                                     \
    VARIANT(4, kind, segments)                                                                     \
    VARIANT(6, kind, segments)                                                                     \
    VARIANT(8, kind, segments)                                                                     \
    VARIANT(12, kind, segments)                                                                    \
    VARIANT(16, kind, segments)
#define ROW(kind, segments)                                                                        \
    {                                                                                              \
        multiply_##kind##_##segments##_1, multiply_##kind##_##segments##_2,                        \
            multiply_##kind##_##segments##_4, multiply_##kind##_##segments##_6,                    \
            multiply_##kind##_##segments##_8, multiply_##kind##_##segments##_12,                   \
            multiply_##kind##_##segments##_16                                                      \
    }
#define KIND(kind)                                                                                 \
    { ROW(kind, FOLDED), ROW(kind, SEGMENTED) }

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

#endif
