/* Compiles the functions that compute the scales of a strip (some adjacent blocks) for AVX2. */
#include "quantize/rule_set.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx2.h"
#    include "quantize/rules_tame_body.h"

/* Looks up the factors of n scale codes in a table with vector gathers. Scalar code would store the
 * factors one by one, and a later vector load of them would wait until all these stores are done.
 * The last vector of codes may extend past the first n. The codes there were never written and are
 * arbitrary, so a mask limits each code to an index inside the table. */
TARGET static void look_up(const float *table, const uint32_t *codes, int64_t n, float *factors) {
    for (int64_t i = 0; i < n; i += LANES) {
        __m256i code = _mm256_and_si256(load_bits(codes + i), _mm256_set1_epi32(0x7f));
        _mm256_storeu_ps(factors + i, _mm256_i32gather_ps(table, code, 4));
    }
}

const bsmm_rule_set bsmm_rules_avx2 = {PLAIN_RULES, TAME_RULES, .look_up = look_up};

#endif
