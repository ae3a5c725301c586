/* Decodes weights in registers for the small-M kernels (few rows of A). The encoded elements in a
 * uint32 become pairs of bf16 numbers. An encoded scale becomes a bf16 factor, by which the pairs
 * are multiplied.
 *
 * The two elements of a pair are not adjacent along K. They are the two elements that take the
 * fewest instructions to decode together. A therefore lies in shared memory in the same permuted
 * order along K. The code is plain C, so that the host can test it. */
#ifndef BSMM_GPU_SMALL_M_WEIGHTS_H
#define BSMM_GPU_SMALL_M_WEIGHTS_H

#include "gpu/scalar.h"

/* Decodes eight e2m1 codes. Pair i holds elements i and i + 4, each times 2^-126. The exponent and
 * mantissa of a code move to the low end of bf16's exponent field and the bits below it. Subnormals
 * of e2m1 thus become subnormals of bf16. One multiplication shifts the sign and the magnitude of
 * two codes by different distances, and a bitwise AND removes all other bits of the product. */
BSMM_SHARED void bsmm_e2m1_pairs(uint32_t word, uint32_t pairs[4]) {
    uint32_t high = word >> 8;
    pairs[0] = (word & 0x000f000fu) * 0x1040u & 0x81c081c0u;
    pairs[1] = (word & 0x00f000f0u) * 0x0104u & 0x81c081c0u;
    pairs[2] = (high & 0x000f000fu) * 0x1040u & 0x81c081c0u;
    pairs[3] = (high & 0x00f000f0u) * 0x0104u & 0x81c081c0u;
}

/* Decodes eight e2m3 elements to pairs of bf16 numbers. Pair i holds elements i and i + 4, times
 * 2^-126. A code has 6 bits. In the low half of `first`, elements 0 and 1 begin at bits 0 and 6; in
 * its high half, elements 4 and 5 do. In the low half of `second`, elements 2 and 3 begin at bits 4
 * and 10; in its high half, elements 6 and 7 do. One multiplication moves the magnitudes and signs
 * of two elements to their places in bf16. */
BSMM_SHARED void bsmm_e2m3_pairs(uint32_t first, uint32_t second, uint32_t pairs[4]) {
    pairs[0] = (first & 0x003f003fu) * 0x0410u & 0x81f081f0u;
    pairs[1] = (first >> 6 & 0x003f003fu) * 0x0410u & 0x81f081f0u;
    pairs[2] = (second & 0x03f003f0u) * 0x0041u & 0x81f081f0u;
    pairs[3] = (second >> 10 & 0x003f003fu) * 0x0410u & 0x81f081f0u;
}

/* Decodes eight e3m2 elements to pairs of bf16 numbers. Pair i holds elements i and i + 4, times
 * 2^-124. A code has 6 bits. Elements 0 and 1 begin at bits 0 and 6 of the low half of `first`,
 * elements 4 and 5 at the same bits of its high half. Elements 2 and 3 begin at bits 4 and 10 of
 * the low half of `second`, elements 6 and 7 at the same bits of its high half. */
BSMM_SHARED void bsmm_e3m2_pairs(uint32_t first, uint32_t second, uint32_t pairs[4]) {
    pairs[0] = (first & 0x001f001fu) * 0x0020u | (first * 0x0400u & 0x80008000u);
    pairs[1] = (first & 0x07c007c0u) >> 1 | (first * 0x0010u & 0x80008000u);
    pairs[2] = (second & 0x01f001f0u) * 0x0002u | (second * 0x0040u & 0x80008000u);
    pairs[3] = (second & 0x7c007c00u) >> 5 | (second & 0x80008000u);
}

/* Decodes four e4m3 codes to bf16. Each of the two words in `pairs` holds two bf16 numbers:
 * pairs[i] holds elements i and i + 2, times 2^-120. A code of NaN is decoded as if it were the
 * number 480, so the caller must look for NaN by bsmm_e4m3_nans. */
BSMM_SHARED void bsmm_e4m3_pairs(uint32_t word, uint32_t pairs[2]) {
    pairs[0] = (word << 4 & 0x07f007f0u) | (word << 8 & 0x80008000u);
    pairs[1] = (word >> 4 & 0x07f007f0u) | (word & 0x80008000u);
}

/* Finds NaN among four e4m3 codes, one per byte. Bit 7 of each byte of the result is set if the
 * code in this byte is NaN. The other bits are undefined. */
BSMM_SHARED uint32_t bsmm_e4m3_nans(uint32_t word) {
    return (word & 0x7f7f7f7fu) + 0x01010101u;
}

enum {
    /* BSMM_SMALL_M_LOWEST is the lowest e8m0 scale code that the fast path decodes. Its value is
     * 2^-99. */
    BSMM_SMALL_M_LOWEST = 28,
    /* BSMM_SMALL_M_HIGHEST is the highest e8m0 scale code that the fast path decodes. The scale
     * with this code is 2^28. */
    BSMM_SMALL_M_HIGHEST = 155,
};

/* Returns 2^(code - 28) as bf16 in both 16-bit halves. The result is undefined for a code below
 * BSMM_SMALL_M_LOWEST or above BSMM_SMALL_M_HIGHEST. */
BSMM_SHARED uint32_t bsmm_e8m0_factor(uint32_t code) {
    return code * 0x00800080u + (127 - BSMM_SMALL_M_LOWEST) * 0x00800080u;
}

/* Returns the larger of `most` and the difference code - BSMM_SMALL_M_LOWEST. `most` is the result
 * for the codes before this one. A kernel calls this function for each scale code and calls
 * bsmm_e8m0_beyond once after its loop. A code below BSMM_SMALL_M_LOWEST wraps around to a large
 * unsigned number, so one comparison finds codes that are too low or too high. */
BSMM_SHARED uint32_t bsmm_e8m0_most(uint32_t most, uint32_t code) {
    uint32_t above = code - BSMM_SMALL_M_LOWEST;
    return above > most ? above : most;
}

BSMM_SHARED bool bsmm_e8m0_beyond(uint32_t most) {
    return most > BSMM_SMALL_M_HIGHEST - BSMM_SMALL_M_LOWEST;
}

#endif
