/* A panel's scales, before its codes are read; what the packer keeps out of fp32 sums is left to
 * it. */
#include "cpu/bf16.h"
#include "cpu/bf16_decode.h"

#include <math.h>
#include <string.h>

/* What the kernels that call this need anyway. */
#if defined(__x86_64__)
#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#    define TARGET
#endif

enum { LANES = BSMM_DECODE_LANES };

/* Lanes of a unit by themselves, so that compilers see what they are: a vector. */
typedef struct codes16 {
    uint8_t lane[LANES];
} codes16;

typedef struct floats16 {
    float lane[LANES];
} floats16;

/* The bits of floats; of magnitudes, in the order of their values, and NaN above all. */
typedef struct bits16 {
    uint32_t lane[LANES];
} bits16;

TARGET static inline codes16 load_codes(const bsmm_decode_scales *s, int64_t unit) {
    codes16 v;
    memcpy(&v, s->codes + unit * LANES, sizeof v);
    return v;
}

TARGET static inline floats16 load_floats(const bsmm_decode_scales *s, int64_t unit) {
    floats16 v;
    memcpy(&v, s->scales + unit * LANES, sizeof v);
    return v;
}

TARGET static inline bits16 load_magnitudes(const bsmm_decode_scales *s, int64_t unit) {
    bits16 v;
    memcpy(&v, s->scales + unit * LANES, sizeof v);
    for (int lane = 0; lane < LANES; lane++)
        v.lane[lane] &= 0x7fffffff;
    return v;
}

/* The lanes' largest codes or, of their complements, the largest: in a form that compilers
 * vectorize, as find_extreme. */
TARGET static inline codes16 find_extreme_code(const bsmm_decode_scales *s, uint8_t flipped) {
    const int64_t units = s->units;
    codes16 found = {{0}};
    for (int64_t i = 0; i < units; i++) {
        codes16 v = load_codes(s, i);
        for (int lane = 0; lane < LANES; lane++) {
            uint8_t code = v.lane[lane] ^ flipped;
            found.lane[lane] = code > found.lane[lane] ? code : found.lane[lane];
        }
    }
    return found;
}

/* Shifts down from each row's largest scale; a row that spans more than the packer folds is its. */
TARGET static bool prepare_shifts(const bsmm_decode_scales *s) {
    int deepest = 60 + ilogb(bsmm_elem_row(s->p->b.m.format.elem)->min_subnormal);
    codes16 top = find_extreme_code(s, 0), bottom = find_extreme_code(s, 0xff);
    int unusual = 0;
    for (int lane = 0; lane < LANES; lane++)
        unusual |= (top.lane[lane] == 0xff) | (top.lane[lane] + bottom.lane[lane] - 0xff > deepest);
    if (unusual) return false;
    for (int lane = 0; lane < LANES; lane++)
        s->factors[lane] *= bsmm_double_pow2(top.lane[lane] - 127);
    const int64_t units = s->units;
    for (int64_t i = 0; i < units; i++) {
        codes16 v = load_codes(s, i);
        for (int lane = 0; lane < LANES; lane++)
            v.lane[lane] = (uint8_t)(top.lane[lane] - v.lane[lane]);
        memcpy(s->codes + i * LANES, &v, sizeof v);
    }
    return true;
}

/* Negative scales and NaN are left to the packer. */
TARGET static bool prepare_products(const bsmm_decode_scales *s) {
    const uint8_t *codes = s->codes;
    const int64_t count = s->units * LANES;
    uint8_t largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = codes[i] > largest ? codes[i] : largest;
    return largest < 0x7f;
}

/* The lanes' largest magnitudes or, where they are subtracted from 0, the least that are not 0: in
 * a form that compilers vectorize. */
TARGET static inline bits16 find_extreme(const bsmm_decode_scales *s, bool subtract) {
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

TARGET static void multiply_floats(const bsmm_decode_scales *s, const floats16 *factor) {
    const int64_t units = s->units;
    for (int64_t i = 0; i < units; i++) {
        floats16 v = load_floats(s, i);
        for (int lane = 0; lane < LANES; lane++)
            v.lane[lane] *= factor->lane[lane];
        memcpy(s->scales + i * LANES, &v, sizeof v);
    }
}

/* Each row's largest power of two leaves its scales, as in the packer. What that would make small,
 * less than 2^-30, is the packer's, and so are NaN and powers far from 1. */
TARGET static bool prepare_floats(const bsmm_decode_scales *s) {
    bits16 most = find_extreme(s, false), least = find_extreme(s, true), inverse_bits;
    uint32_t unusual = 0;
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t top = most.lane[lane] >> 23; /* biased */
        unusual |= (uint32_t)(top < 37) | (uint32_t)(top > 226);
        unusual |= (uint32_t)(0 - least.lane[lane] - 1 < ((top - 30) << 23) - 1);
        inverse_bits.lane[lane] = (254 - top) << 23;
    }
    if (unusual) return false;
    for (int lane = 0; lane < LANES; lane++)
        s->factors[lane] *= bsmm_double_pow2((int)(most.lane[lane] >> 23) - 127);
    floats16 inverse;
    memcpy(&inverse, &inverse_bits, sizeof inverse);
    multiply_floats(s, &inverse);
    return true;
}

static bool prepare_none(const bsmm_decode_scales *s) {
    memset(s->codes, 0, (size_t)(s->units * LANES));
    return true;
}

bool bsmm_bf16_decode_prepare(const bsmm_decode_scales *s) {
    static bool (*const prepares[])(const bsmm_decode_scales *) = {
        [BSMM_SCALE_NONE] = prepare_none,
        [BSMM_SCALE_E8M0] = prepare_shifts,
        [BSMM_SCALE_E4M3] = prepare_products,
        [BSMM_SCALE_F32] = prepare_floats,
    };
    return prepares[s->p->b.m.format.scale](s);
}
