/* Compiles the functions that compute the scales of a strip (some adjacent blocks) for AVX-512. */
#include "quantize/rule_set.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx512.h"
#    include "quantize/rules_tame_body.h"

/* Looks up the factors of n scale codes with vector permutations in a table of 128 factors (eight
 * registers). If scalar code stored the factors one by one, a later vector load of them would wait
 * until all earlier stores are done. */
TARGET static void look_up(const float *table, const uint32_t *codes, int64_t n, float *factors) {
    __m512 t[8];
    for (int i = 0; i < 8; i++)
        t[i] = _mm512_loadu_ps(table + 16 * i);
    for (int64_t i = 0; i < n; i += 16) {
        __m512i code = _mm512_loadu_si512(codes + i);
        __mmask16 upper = _mm512_test_epi32_mask(code, _mm512_set1_epi32(64));
        __mmask16 odd = _mm512_test_epi32_mask(code, _mm512_set1_epi32(32));
        __m512 low = _mm512_mask_mov_ps(_mm512_permutex2var_ps(t[0], code, t[1]), odd,
                                        _mm512_permutex2var_ps(t[2], code, t[3]));
        __m512 high = _mm512_mask_mov_ps(_mm512_permutex2var_ps(t[4], code, t[5]), odd,
                                         _mm512_permutex2var_ps(t[6], code, t[7]));
        _mm512_storeu_ps(factors + i, _mm512_mask_mov_ps(low, upper, high));
    }
}

const bsmm_rule_set bsmm_rules_avx512 = {PLAIN_RULES, TAME_RULES, .look_up = look_up};

#endif
