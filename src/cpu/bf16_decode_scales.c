/* A panel's scales, before its codes are read; what the packer keeps out of fp32 sums is left to
 * it. */
#include "cpu/bf16.h"
#include "cpu/bf16_decode.h"

#include <math.h>
#include <string.h>

enum { LANES = BSMM_DECODE_LANES };

/* Lanes of a unit by themselves, so that compilers see what they are: a vector. */
typedef struct codes16 {
    uint8_t lane[LANES];
} codes16;

typedef struct floats16 {
    float lane[LANES];
} floats16;

static codes16 load_codes(const bsmm_decode_scales *s, int64_t unit) {
    codes16 v;
    memcpy(&v, s->codes + unit * LANES, sizeof v);
    return v;
}

static floats16 load_floats(const bsmm_decode_scales *s, int64_t unit) {
    floats16 v;
    memcpy(&v, s->scales + unit * LANES, sizeof v);
    return v;
}

/* Shifts down from each row's largest scale; a row that spans more than the packer folds is its. */
static bool prepare_shifts(const bsmm_decode_scales *s) {
    int deepest = 60 + ilogb(bsmm_elem_row(s->p->b.m.format.elem)->min_subnormal);
    const int64_t units = s->units;
    codes16 largest = {{0}}, smallest;
    memset(&smallest, 0xff, sizeof smallest);
    for (int64_t i = 0; i < units; i++) {
        codes16 v = load_codes(s, i);
        for (int lane = 0; lane < LANES; lane++) {
            largest.lane[lane] =
                v.lane[lane] > largest.lane[lane] ? v.lane[lane] : largest.lane[lane];
            smallest.lane[lane] =
                v.lane[lane] < smallest.lane[lane] ? v.lane[lane] : smallest.lane[lane];
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        int top = largest.lane[lane];
        if (top == 0xff || top - smallest.lane[lane] > deepest) return false;
        s->factors[lane] *= ldexp(1, top - 127);
    }
    for (int64_t i = 0; i < units; i++) {
        codes16 v = load_codes(s, i);
        for (int lane = 0; lane < LANES; lane++)
            v.lane[lane] = (uint8_t)(largest.lane[lane] - v.lane[lane]);
        memcpy(s->codes + i * LANES, &v, sizeof v);
    }
    return true;
}

/* Negative scales and NaN are left to the packer. */
static bool prepare_products(const bsmm_decode_scales *s) {
    uint8_t largest = 0;
    for (int64_t i = 0; i < s->units * LANES; i++)
        largest = s->codes[i] > largest ? s->codes[i] : largest;
    return largest < 0x7f;
}

static const uint32_t magnitude_bits = 0x7fffffff;

/* Largest magnitudes, compared as bits, in whose order NaN is above all. */
static floats16 largest_magnitudes(const bsmm_decode_scales *s) {
    const int64_t units = s->units;
    uint32_t largest[LANES] = {0};
    for (int64_t i = 0; i < units; i++) {
        floats16 v = load_floats(s, i);
        uint32_t bits[LANES];
        memcpy(bits, &v, sizeof v);
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t magnitude = bits[lane] & magnitude_bits;
            largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
        }
    }
    floats16 values;
    memcpy(&values, largest, sizeof values);
    return values;
}

/* Times the lanes' powers of two; false if that makes one of them small. */
static bool divide_floats(const bsmm_decode_scales *s, const floats16 *inverse) {
    const int64_t units = s->units;
    uint32_t unusual = 0;
    for (int64_t i = 0; i < units; i++) {
        floats16 v = load_floats(s, i);
        for (int lane = 0; lane < LANES; lane++) {
            v.lane[lane] *= inverse->lane[lane];
            float magnitude = fabsf(v.lane[lane]);
            unusual |= (uint32_t)(magnitude > 0) & (uint32_t)(magnitude < 0x1p-30f);
        }
        memcpy(s->scales + i * LANES, &v, sizeof v);
    }
    return !unusual;
}

/* Each row's largest power of two leaves its scales, as in the packer. */
static bool prepare_floats(const bsmm_decode_scales *s) {
    floats16 largest = largest_magnitudes(s), inverse;
    for (int lane = 0; lane < LANES; lane++) {
        /* NaN too; and powers of two whose inverse is subnormal. */
        if (!(largest.lane[lane] >= 0x1p-100f && largest.lane[lane] <= 0x1p100f)) return false;
        int exponent = ilogbf(largest.lane[lane]);
        inverse.lane[lane] = ldexpf(1, -exponent);
        s->factors[lane] *= ldexp(1, exponent);
    }
    return divide_floats(s, &inverse);
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
