/* Decodes weights in registers to f16, for the mixed-input kernels on Hopper that multiply an f16 A
 * (cuda/sm90a/mixed_kernels.h). small_m_weights.h has functions that decode to bf16.
 *
 * A weight is an element times an e8m0 scale 2^(code - 127). The range of f16 is too small for all
 * such weights. A kernel therefore chooses, for each row of B, the range of scale codes for which
 * it multiplies exactly. The lowest code of this range is the row's reference code; the highest one
 * is the reference code plus `span` (bsmm_half_range). The kernel divides all weights of the row by
 * a power of two that depends on the reference code, so that f16 holds the quotients exactly. At
 * the end, it multiplies the row's sums by this power of two (bsmm_half_exponent). It multiplies
 * blocks whose scales lie outside their row's range in fp32. The code is plain C, so that the host
 * can test it. */
#ifndef BSMM_GPU_HALF_WEIGHTS_H
#define BSMM_GPU_HALF_WEIGHTS_H

#include "gpu/scalar.h"

/* Converts eight e2m1 codes to e4m3 codes, whose values are 2^-6 times as large. The instruction
 * that converts e4m3 to f16 then decodes them. to[0] holds elements 0, 2, 4 and 6, and to[1]
 * holds elements 1, 3, 5 and 7. */
BSMM_SHARED void bsmm_e2m1_to_e4m3(uint32_t word, uint32_t to[2]) {
    to[0] = (word << 4 & 0x80808080u) | (word << 2 & 0x1c1c1c1cu);
    to[1] = (word & 0x80808080u) | (word >> 2 & 0x1c1c1c1cu);
}

/* Decodes eight e2m3 elements to four pairs of f16 numbers. The f16 numbers are 2^-14 times the
 * elements, and pair i (0 to 3) holds elements i and i + 4. `first` holds elements 0 and 1 from
 * bits 0 and 6 of its low half on, and elements 4 and 5 from the same bits of its high half on.
 * `second` holds elements 2 and 3 from bits 4 and 10 of its low half on, and elements 6 and 7 from
 * the same bits of its high half on. */
BSMM_SHARED void bsmm_e2m3_halves(uint32_t first, uint32_t second, uint32_t pairs[4]) {
    pairs[0] = (first << 7 & 0x0f800f80u) | (first << 10 & 0x80008000u);
    pairs[1] = (first << 1 & 0x0f800f80u) | (first << 4 & 0x80008000u);
    pairs[2] = (second << 3 & 0x0f800f80u) | (second << 6 & 0x80008000u);
    pairs[3] = (second >> 3 & 0x0f800f80u) | (second & 0x80008000u);
}

/* Decodes eight e3m2 elements to f16. Pair i holds elements i and i + 4, times 2^-12. Elements lie
 * in `first` and `second` as for bsmm_e3m2_pairs. */
BSMM_SHARED void bsmm_e3m2_halves(uint32_t first, uint32_t second, uint32_t pairs[4]) {
    pairs[0] = (first << 8 & 0x1f001f00u) | (first << 10 & 0x80008000u);
    pairs[1] = (first << 2 & 0x1f001f00u) | (first << 4 & 0x80008000u);
    pairs[2] = (second << 4 & 0x1f001f00u) | (second << 6 & 0x80008000u);
    pairs[3] = (second >> 2 & 0x1f001f00u) | (second & 0x80008000u);
}

/* Describes how a kernel multiplies decoded elements of one format by e8m0 scales in f16. A decoded
 * element is the element times 2^-bias. For each row of B, the kernel chooses a scale code as the
 * row's reference code. A scale with this code becomes the factor 2^(lowest - 15), and a scale
 * whose code is n higher becomes 2^(lowest - 15 + n). For n from 0 to `span`, f16 holds every
 * product of a decoded element and a factor exactly. `lowest` is at least 1, and lowest + span is
 * at most 30, so that all factors are normal f16 numbers. */
typedef struct bsmm_half_range {
    int bias, lowest;
    uint32_t span;
    /* For each row of B, the kernel multiplies exactly only by scale codes from the row's reference
     * code to the reference code plus `span`. It chooses this range from the largest scale code of
     * the row's first blocks: the range ends `above` codes above this code, so that later blocks
     * may have larger scales. If the range would begin below code 0 or end above code 254, it is
     * moved. */
    uint32_t above;
} bsmm_half_range;

/* Returns the range of scale codes that the kernel can multiply by exactly in f16, for elements
 * with `bits` bits, `mantissa` of which are the mantissa. e2m1 elements are decoded by way of e4m3
 * codes, which multiplies them by 2^-6. */
BSMM_SHARED bsmm_half_range bsmm_half_range_of(uint32_t bits, uint32_t mantissa) {
    /* The smallest nonzero e2m1 element is decoded to 2^-7, and the largest to 6 * 2^-6. The
     * factors may be all powers of two that are normal f16 numbers, 2^-14 to 2^15. The products
     * then lie between 2^-21 and 6 * 2^9, and f16 holds them exactly. */
    const bsmm_half_range e2m1 = {6, 1, 29, 12};
    /* e4m3 elements are multiples of 2^-9 up to 448. Their products with a factor from 2^-14 to 2^7
     * therefore fit in f16. */
    const bsmm_half_range e4m3 = {0, 1, 21, 8};
    /* The kernel multiplies decoded elements by scale factors in f16. Decoded e2m3 elements are
     * multiples of 2^-17, and decoded e3m2 elements are multiples of 2^-16. f16 holds a product
     * exactly only if it is a multiple of 2^-24. The factors must therefore be at least 2^-7 for
     * e2m3 and 2^-8 for e3m2. */
    const bsmm_half_range e2m3 = {14, 8, 22, 8}, e3m2 = {12, 7, 23, 8};
    return bits == 4 ? e2m1 : bits == 8 ? e4m3 : mantissa == 3 ? e2m3 : e3m2;
}

/* Returns the f16 number 2^(r->lowest - 15 + n) in both 16-bit halves of a word. A kernel
 * multiplies decoded elements of B by it if their e8m0 scale code is the row's reference code plus
 * `n`. The reference code is the lowest scale code that the kernel supports in this row of B, so
 * its factor is 2^(r->lowest - 15). `n` is at most r->span. */
BSMM_SHARED uint32_t bsmm_half_factor(const bsmm_half_range *r, uint32_t n) {
    return n * 0x04000400u + (uint32_t)r->lowest * 0x04000400u;
}

/* Chooses the reference code of a row of B, i.e. the lowest of the scale codes by which the kernel
 * multiplies exactly in f16. The highest one is the reference code plus `span`. `most` is the
 * largest scale code of the row's first blocks. The code 255, which means NaN, is never among the
 * codes that the kernel multiplies by. */
BSMM_SHARED uint32_t bsmm_half_reference(const bsmm_half_range *r, uint32_t most) {
    const uint32_t top = most + r->above;
    if (top < r->span) return 0;
    return top - r->span > 254 - r->span ? 254 - r->span : top - r->span;
}

/* The kernel decodes the weights of a row of B to f16 and divides them by a power of two, so that
 * they fit into f16. Returns the exponent of this power, by which the kernel must multiply the
 * row's sums. `reference` is the row's reference code, i.e. the lowest scale code that the kernel
 * can multiply by exactly. */
BSMM_SHARED int bsmm_half_exponent(const bsmm_half_range *r, uint32_t reference) {
    return (int)reference - 127 + r->bias - r->lowest + 15;
}

#endif
