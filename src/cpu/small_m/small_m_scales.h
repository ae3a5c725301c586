/* Defines loops over the scales of a panel (16 rows of B). A loop is inlined into functions for a
 * particular instruction set, so that the compiler vectorizes it with the instructions of that
 * set. */
#ifndef BSMM_CPU_SMALL_M_SCALES_H
#define BSMM_CPU_SMALL_M_SCALES_H

#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = BSMM_SMALL_M_LANES };

/* `codes16` holds 16 scale codes, one for each row of a panel of B. They are the scales of one
 * scale unit, i.e. of a range of K with one scale per row. Loops over the 16 lanes of this struct
 * are written in plain C, and compilers turn them into vector instructions. */
typedef struct codes16 {
    uint8_t lane[LANES];
} codes16;

typedef struct floats16 {
    float lane[LANES];
} floats16;

/* `bits16` holds the bits of 16 floats. Magnitudes can be compared as integers. NaN is larger than
 * all numbers. */
typedef struct bits16 {
    uint32_t lane[LANES];
} bits16;

INLINE codes16 load_codes(const bsmm_small_m_scales *s, int64_t unit) {
    codes16 v;
    memcpy(&v, s->codes + unit * LANES, sizeof v);
    return v;
}

INLINE floats16 load_floats(const bsmm_small_m_scales *s, int64_t unit) {
    floats16 v;
    memcpy(&v, s->scales + unit * LANES, sizeof v);
    return v;
}

INLINE bits16 load_magnitudes(const bsmm_small_m_scales *s, int64_t unit) {
    bits16 v;
    memcpy(&v, s->scales + unit * LANES, sizeof v);
    for (int lane = 0; lane < LANES; lane++)
        v.lane[lane] &= 0x7fffffff;
    return v;
}

/* Finds the largest or the smallest scale code of each row. Returns for each row the largest value
 * of (code ^ flipped) + added, in 8 bits. With flipped = 0 and added = 0, this is the largest code.
 * With flipped = 0xff and added = 0, it is 0xff minus the smallest code. With flipped = 0xff and
 * added = 1, a code of 0 gives 0, so the smallest code other than 0 is found. Compilers vectorize
 * the loop in this form. */
INLINE codes16 find_extreme_code(const bsmm_small_m_scales *s, uint8_t flipped, uint8_t added) {
    const int64_t units = s->units;
    codes16 found = {{0}};
    for (int64_t i = 0; i < units; i++) {
        codes16 v = load_codes(s, i);
        for (int lane = 0; lane < LANES; lane++) {
            uint8_t code = (uint8_t)((v.lane[lane] ^ flipped) + added);
            found.lane[lane] = code > found.lane[lane] ? code : found.lane[lane];
        }
    }
    return found;
}

/* Returns the bits of the largest magnitude of the scales of each row. If `subtract` is true,
 * returns 0 minus the bits of the smallest magnitude that is not 0. The function finds it as the
 * maximum of the negated bits: a scale of 0 gives 0, so it is never the maximum. Compilers can
 * vectorize a loop in this form. */
INLINE bits16 find_extreme(const bsmm_small_m_scales *s, bool subtract) {
    const int64_t units = s->units;
    bits16 found = {{0}};
    for (int64_t i = 0; i < units; i++) {
        bits16 v = load_magnitudes(s, i);
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t value = subtract ? 0 - v.lane[lane] : v.lane[lane];
            found.lane[lane] = value > found.lane[lane] ? value : found.lane[lane];
        }
    }
    return found;
}

INLINE void multiply_floats(const bsmm_small_m_scales *s, const floats16 *factor) {
    const int64_t units = s->units;
    for (int64_t i = 0; i < units; i++) {
        floats16 v = load_floats(s, i);
        for (int lane = 0; lane < LANES; lane++)
            v.lane[lane] *= factor->lane[lane];
        memcpy(s->scales + i * LANES, &v, sizeof v);
    }
}

/* Divides the scales of each row by 2^e, where e is the exponent of the row's largest scale, as the
 * packers do. 2^e is multiplied into the row's factor instead. Returns false, and changes nothing,
 * if the panel (these 16 rows of B) must be packed: a scale is NaN, a nonzero scale would become
 * smaller than 2^-30, or 2^e is below 2^-90 or above 2^99. */
INLINE bool divide_floats(const bsmm_small_m_scales *s, const bits16 *most, const bits16 *least) {
    bits16 inverse_bits;
    uint32_t unusual = 0;
    for (int lane = 0; lane < LANES; lane++) {
        /* `top` is the exponent of the row's largest scale, plus 127. */
        uint32_t top = most->lane[lane] >> 23;
        unusual |= (uint32_t)(top < 37) | (uint32_t)(top > 226);
        unusual |= (uint32_t)(0 - least->lane[lane] - 1 < ((top - 30) << 23) - 1);
        inverse_bits.lane[lane] = (254 - top) << 23;
    }
    if (unusual) return false;
    for (int lane = 0; lane < LANES; lane++)
        s->factors[lane] *= bsmm_double_pow2((int)(most->lane[lane] >> 23) - 127);
    floats16 inverse;
    memcpy(&inverse, &inverse_bits, sizeof inverse);
    multiply_floats(s, &inverse);
    return true;
}

#undef INLINE

#endif
