/* Encodes consecutive fp32 values as codes of at most 16 bits, without branches. */
#include "quantize/coder.h"

#include "base/cpu.h"

static const uint32_t inf_bits = 0x7f800000u;

static inline void even_loop(const bsmm_coder *coder, const float *values, int64_t n,
                             uint16_t *codes) {
    const bsmm_coder k = *coder;
    uint32_t nan_mask = bsmm_coder_nan_mask(&k);
    for (int64_t i = 0; i < n; i++)
        codes[i] = (uint16_t)bsmm_coder_even(&k, nan_mask, bsmm_float_bits(values[i]));
}

static void run_even(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes) {
    even_loop(coder, values, n, codes);
}

/* Compiles even_loop again for processors with AVX-512, so that the compiler vectorizes the loop
 * with these instructions. */
#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static void
run_even_wide(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes) {
    even_loop(coder, values, n, codes);
}
#else
#    define run_even_wide run_even
#endif

static void run_down(const bsmm_coder *coder, const float *values, int64_t n,
                     const uint32_t bounds[7], uint32_t limit, uint16_t *codes) {
    const bsmm_coder k = *coder;
    for (int64_t i = 0; i < n; i++)
        codes[i] = (uint16_t)bsmm_coder_down(&k, bounds, limit, bsmm_float_bits(values[i]));
}

void bsmm_coder_run(const bsmm_coder *coder, const float *values, int64_t n, uint16_t *codes) {
    uint32_t bounds[7];
    if (!coder->down) {
        bool wide = bsmm_cpu_features() & BSMM_CPU_AVX512;
        (wide ? run_even_wide : run_even)(coder, values, n, codes);
        return;
    }
    for (int j = 0; j < 7; j++)
        bounds[j] = bsmm_float_bits(bsmm_e2m1_midpoint(j));
    run_down(coder, values, n, bounds, inf_bits, codes);
}

void bsmm_coder_run_bounds(const bsmm_coder *coder, const float *values, int64_t n, float scale,
                           uint16_t *codes) {
    uint32_t bounds[7];
    for (int j = 0; j < 7; j++)
        bounds[j] = scale > 0 ? bsmm_float_bits(bsmm_e2m1_midpoint(j) * scale) : inf_bits;
    run_down(coder, values, n, bounds, inf_bits - 1, codes);
}
