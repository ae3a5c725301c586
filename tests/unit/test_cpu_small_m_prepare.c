/* Tests which scales the kernels for few rows of A accept for a panel, i.e. for 16 rows of B. The
 * kernels multiply such a panel as it is stored. If a scale is NaN, the panel must be packed
 * first. */
#include "base/cpu.h"
#include "core/describe.h"
#include "cpu/small_m/small_m_bf16dot.h"
#include "cpu/small_m/small_m_f32fma.h"
#include "product.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)

enum { LANES = BSMM_SMALL_M_LANES, UNITS = 16 };

typedef struct kernel {
    bool (*prepare)(const bsmm_small_m_scales *s);
    uint32_t features; /* `features` is what the processor must have (base/cpu.h). */
} kernel;

static const kernel kernels[] = {
    {bsmm_small_m_bf16_prepare, BSMM_CPU_AVX512_BF16},
    {bsmm_small_m_f32fma_prepare, BSMM_CPU_AVX2},
};

/* `ordinary` and `nan` are codes of scales, if the format has scales of 8 bits. */
static const struct {
    const char *b;
    uint8_t ordinary, nan;
} formats[] = {
    {"mxfp4", 120, 0xff}, {"mxfp8", 120, 0xff}, {"nvfp4", 0x38, 0x7f}, {"fp8_group128", 0, 0}};

/* Returns whether the kernel accepts a panel. One of its scales is NaN if `has_nan` is true. */
static bool accepts(const kernel *of, size_t format, bool has_nan) {
    _Alignas(64) uint8_t codes[UNITS * LANES], wide[LANES] = {0};
    _Alignas(64) float scales[UNITS * LANES];
    _Alignas(64) double factors[LANES];
    for (int i = 0; i < UNITS * LANES; i++) {
        codes[i] = (uint8_t)(formats[format].ordinary + i % 7);
        scales[i] = 1 + (float)(i % 7) / 4;
    }
    for (int i = 0; i < LANES; i++)
        factors[i] = 1;
    if (has_nan) codes[5 * LANES + 3] = formats[format].nan, scales[5 * LANES + 3] = NAN;
    rng r = {1};
    product p;
    bsmm_request request;
    product_make(&p, "bf16", formats[format].b, 4, LANES, 128 * UNITS, FILL_ORDINARY, &r);
    assert_int_equal(bsmm_describe(&p.desc, &request), BSMM_OK);
    const bsmm_small_m_scales s = {.p = &request.product,
                                   .rows = LANES,
                                   .units = UNITS,
                                   .used = UNITS,
                                   .chunk = UNITS,
                                   .codes = codes,
                                   .scales = scales,
                                   .factors = factors,
                                   .wide = wide,
                                   .a_wide = 8};
    const bool accepted = of->prepare(&s);
    product_free(&p);
    return accepted;
}

static void test_scales(void **state) {
    (void)state;
    int tried = 0;
    for (size_t i = 0; i < BSMM_COUNT(kernels); i++) {
        if ((bsmm_cpu_features() & kernels[i].features) != kernels[i].features) continue;
        for (size_t j = 0; j < BSMM_COUNT(formats); j++, tried++) {
            if (!accepts(&kernels[i], j, false)) fail_msg("%zu: %s", i, formats[j].b);
            if (accepts(&kernels[i], j, true)) fail_msg("%zu: %s with NaN", i, formats[j].b);
        }
    }
    if (!tried) skip();
}

#else

static void test_scales(void **state) {
    (void)state;
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
