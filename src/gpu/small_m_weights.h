/* Weights in registers: a word of codes becomes pairs of bf16, and a scale code the factor that
 * they are multiplied by. Pairs are not neighbours along K but what takes the fewest instructions;
 * activations are stored in the same order. Plain C for the host too. */
#ifndef BSMM_GPU_SMALL_M_WEIGHTS_H
#define BSMM_GPU_SMALL_M_WEIGHTS_H

#include "gpu/scalar.h"

/* Eight e2m1 codes; pair i holds elements i and i + 4, times 2^-126: the code's exponent and
 * mantissa stand at the lower end of bf16's exponent, where its subnormals are e2m1's. A product
 * puts sign and magnitude to their places at once; the masks keep its terms apart. */
BSMM_SHARED void bsmm_e2m1_pairs(uint32_t word, uint32_t pairs[4]) {
    uint32_t high = word >> 8;
    pairs[0] = (word & 0x000f000fu) * 0x1040u & 0x81c081c0u;
    pairs[1] = (word & 0x00f000f0u) * 0x0104u & 0x81c081c0u;
    pairs[2] = (high & 0x000f000fu) * 0x1040u & 0x81c081c0u;
    pairs[3] = (high & 0x00f000f0u) * 0x0104u & 0x81c081c0u;
}

/* Four e4m3 codes; pair i holds elements i and i + 2, times 2^-120. NaN becomes 480. */
BSMM_SHARED void bsmm_e4m3_pairs(uint32_t word, uint32_t pairs[2]) {
    pairs[0] = (word << 4 & 0x07f007f0u) | (word << 8 & 0x80008000u);
    pairs[1] = (word >> 4 & 0x07f007f0u) | (word & 0x80008000u);
}

/* Bit 7 of each byte of the result: the code is NaN. Other bits are anything. */
BSMM_SHARED uint32_t bsmm_e4m3_nans(uint32_t word) {
    return (word & 0x7f7f7f7fu) + 0x01010101u;
}

/* ---- scales ---- */

enum {
    BSMM_SMALL_M_LOWEST = 28,   /* the lowest e8m0 code that is decoded here: 2^-99 */
    BSMM_SMALL_M_HIGHEST = 155, /* the highest: 2^28 */
};

/* 2^(code - 28) twice, of a code in range; of others anything. */
BSMM_SHARED uint32_t bsmm_e8m0_factor(uint32_t code) {
    return code * 0x00800080u + (127 - BSMM_SMALL_M_LOWEST) * 0x00800080u;
}

/* The greater of `most` and what a code has above the lowest; one look at it in the end says
 * whether a code was out of range. */
BSMM_SHARED uint32_t bsmm_e8m0_most(uint32_t most, uint32_t code) {
    uint32_t above = code - BSMM_SMALL_M_LOWEST;
    return above > most ? above : most;
}

BSMM_SHARED bool bsmm_e8m0_beyond(uint32_t most) {
    return most > BSMM_SMALL_M_HIGHEST - BSMM_SMALL_M_LOWEST;
}

#endif
