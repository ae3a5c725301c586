/* Values to codes by AVX2. */
#include "quantize/strip.h"

#if defined(__x86_64__)

static void encode(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame) {
    bsmm_strip_portable.encode(job, row, r, c, cols, factors, tame);
}

const bsmm_strip_ops bsmm_strip_avx2 = {.amax = bsmm_amax_avx2, .encode = encode};

#endif
