/* Checks the scales of a panel of 16 rows of B before the panel's elements are read. If the scales
 * of a row are so far apart that fp32 sums may be wrong (the packer marks such a row as wide,
 * engine_gemm.h), the panel must be packed. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"
#include "cpu/small_m/small_m_scales.h"

#include <math.h>
#include <string.h>

/* The functions below are compiled for AVX-512 without a check of the processor, because only
 * kernels that need AVX-512 themselves call them. */
#if defined(__x86_64__)
#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#    define TARGET
#endif

/* Replaces each e8m0 scale by log2(the row's largest scale / this scale). Returns false if the
 * scales of a row are so far apart that the packer would not multiply all of them into the
 * elements. */
TARGET static bool prepare_shifts(const bsmm_small_m_scales *s) {
    int deepest = 60 + ilogb(bsmm_elem_row(s->p->b.m.format.elem)->min_subnormal);
    codes16 top = find_extreme_code(s, 0, 0), bottom = find_extreme_code(s, 0xff, 0);
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

/* Checks e4m3 scales. Returns false if a scale is negative or NaN; the panel must then be
 * packed. */
TARGET static bool prepare_products(const bsmm_small_m_scales *s) {
    const uint8_t *codes = s->codes;
    const int64_t count = s->units * LANES;
    uint8_t largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = codes[i] > largest ? codes[i] : largest;
    return largest < 0x7f;
}

TARGET static bool prepare_floats(const bsmm_small_m_scales *s) {
    bits16 most = find_extreme(s, false), least = find_extreme(s, true);
    return divide_floats(s, &most, &least);
}

static bool prepare_none(const bsmm_small_m_scales *s) {
    memset(s->codes, 0, (size_t)(s->units * LANES));
    return true;
}

bool bsmm_small_m_bf16_prepare(const bsmm_small_m_scales *s) {
    static bool (*const prepares[])(const bsmm_small_m_scales *) = {
        [BSMM_SCALE_NONE] = prepare_none,
        [BSMM_SCALE_E8M0] = prepare_shifts,
        [BSMM_SCALE_E4M3] = prepare_products,
        [BSMM_SCALE_F32] = prepare_floats,
    };
    return prepares[s->p->b.m.format.scale](s);
}
