/* Encodes values as elements of 4, 6 or 8 bits with AVX-512. The loop loads 64 values into four
 * registers of fp32 numbers, multiplies or divides them by the factors of their blocks, and rounds
 * them as coder.c does. It then combines the codes and signs to 64 bytes in one register and packs
 * these bytes to the bits of the element format.
 *
 * bf16 values take a fast path. A register of 32 bf16 values is split into one register with the
 * even values and one with the odd values. In both registers, a bf16 value is the upper half of a
 * 32-bit lane whose lower half is 0, so that the lane is an fp32 number without a conversion. After
 * encoding, the codes of the two registers are merged again into their original order. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "base/cpu.h"
#    include "quantize/coder_avx512.h"
#    include "quantize/encode_row.h"
#    include "quantize/window_avx512.h"

typedef __m512i vec;

/* Combines codes with their signs and clears all other bits of the 32-bit lanes. The code of a NaN
 * may already contain the sign bit. */
INLINE __m512i joined(const vector_coder *k, signed_codes c) {
    __m512i sign = _mm512_andnot_si512(k->magnitude, _mm512_srlv_epi32(c.signs, k->sign_shift));
    __m512i code = _mm512_and_si512(c.codes, _mm512_set1_epi32(0xff));
    return _mm512_or_si512(code, sign);
}

/* Encodes y, the product or quotient of x and its factor. If neither NaN nor special rules for
 * zeros are possible (CARE_NONE), the code gets the sign of x, because the fast division
 * (WAY_DIVIDE_TAME) loses the sign of -0. Otherwise the code gets the sign of y. */
INLINE __m512i codes_of(const vector_coder *k, __m512 y, __m512 x, encode_care care) {
    if (care == CARE_PLUS) y = _mm512_add_ps(y, _mm512_setzero_ps());
    __m512i signs = _mm512_castps_si512(care == CARE_NONE ? x : y);
    signed_codes c = {nearest_even(k, clamp(k, y)), signs};
    if (care != CARE_ALL)
        return choose_bits(k->magnitude, c.codes, _mm512_srlv_epi32(c.signs, k->sign_shift));
    return joined(k, apply_rules(k, _mm512_and_si512(signs, _mm512_set1_epi32(0x7fffffff)), c));
}

/* Encodes 16 values as e2m1 with ties towards zero (BSMM_TIES_DOWN). `x` holds the values, and `y`
 * holds the values multiplied or divided by `factor`. Usually the function encodes `y`. With
 * WAY_COMPARE it ignores `y` and compares `x` with the midpoints between e2m1 values, each
 * multiplied by `factor`. */
INLINE __m512i codes_down_of(const vector_coder *k, __m512 y, __m512 x, __m512 factor,
                             element_way way) {
    if (way == WAY_COMPARE) return joined(k, codes_down(k, _mm512_castps_si512(x), factor, false));
    return joined(k, codes_down(k, _mm512_castps_si512(y), _mm512_set1_ps(1), true));
}

/* Packs four registers of 16 codes into one register of 64 bytes. The pack instructions work within
 * 128-bit parts, so they leave the four 32-bit parts of register i at positions i, 4 + i, 8 + i and
 * 12 + i of the result. The permutation `natural` restores their order. */
INLINE __m512i bytes_of_dwords(const __m512i c[4]) {
    const __m512i natural = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i bytes =
        _mm512_packus_epi16(_mm512_packus_epi32(c[0], c[1]), _mm512_packus_epi32(c[2], c[3]));
    return _mm512_permutexvar_epi32(natural, bytes);
}

INLINE __m512i bytes_of_words(__m512i low, __m512i high) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                    _mm512_packus_epi16(low, high));
}

/* Packs 64 codes of 4 or 6 bits from bytes to adjacent bits; the rest of the register is 0. */
INLINE __m512i pack4(__m512i bytes) {
    __m512i pairs = _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(16 << 8 | 1));
    return _mm512_zextsi256_si512(_mm512_cvtepi16_epi8(pairs));
}

INLINE __m512i pack6(__m512i bytes) {
    const __m512i dense = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    const __m512i three_of_four = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    __m512i pairs = _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(64 << 8 | 1));
    __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(4096 << 16 | 1));
    return _mm512_permutexvar_epi32(dense, _mm512_shuffle_epi8(fours, three_of_four));
}

INLINE __m512i pack(__m512i bytes, uint32_t bits) {
    return bits == 4 ? pack4(bytes) : bits == 6 ? pack6(bytes) : bytes;
}

INLINE void load_chunk(const void *from, uint32_t elem, __m512 x[4]) {
    const uint16_t *words = from;
    if (elem == BSMM_ELEM_F32)
        for (int i = 0; i < 4; i++)
            x[i] = _mm512_loadu_ps((const float *)from + i * LANES);
    else if (elem == BSMM_ELEM_F16)
        for (int i = 0; i < 4; i++)
            x[i] = _mm512_cvtph_ps(_mm256_loadu_epi16(words + i * LANES));
    else
        for (int i = 0; i < 4; i++) {
            __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_epi16(words + i * LANES));
            x[i] = _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
        }
}

/* `meeting` holds a factor for each of the 16 values in a register. With WAY_MULTIPLY the values
 * are multiplied by the factors `by`. With WAY_DIVIDE and WAY_DIVIDE_TAME they are divided by `by`.
 * With WAY_COMPARE they are compared with the products of `by` and the rounding bounds, i.e. the
 * midpoints between e2m1 values. `reciprocal` is 1 / by and is used only with WAY_DIVIDE_TAME. */
typedef struct meeting {
    __m512 by, reciprocal;
} meeting;

INLINE meeting next_meeting(meeting_cursor *cursor, element_way way) {
    __m512 by = next_factor(&cursor->by, LANES);
    return (meeting){by, way == WAY_DIVIDE_TAME ? next_factor(&cursor->reciprocal, LANES) : by};
}

INLINE meeting next_meetings(meeting_cursor *cursor, element_way way) {
    __m512 by = next_factors(&cursor->by);
    return (meeting){by, way == WAY_DIVIDE_TAME ? next_factors(&cursor->reciprocal) : by};
}

/* Returns x / m.by, correctly rounded to fp32, without a division. First x times the reciprocal of
 * m.by gives an approximate quotient q. Then an FMA computes the remainder x - q * m.by, and a
 * second FMA corrects q by it (as in bsmm_ratio of rules_e4m3.h). The method is valid only for
 * "tame" blocks, whose largest magnitude (amax) is 0 or between 2^-60 and 2^60. In such blocks, the
 * remainder of a small x may underflow and make the quotient wrong. But the element of such an x is
 * 0 in any case. */
INLINE __m512 divide(__m512 x, meeting m) {
    __m512 q = _mm512_mul_ps(x, m.reciprocal);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, m.by, x), m.reciprocal, q);
}

INLINE __m512 meet(__m512 x, meeting m, element_way way) {
    if (way == WAY_DIVIDE_TAME) return divide(x, m);
    return way == WAY_DIVIDE ? _mm512_div_ps(x, m.by) : _mm512_mul_ps(x, m.by);
}

/* Returns y, except in the lanes in which x is NaN. These lanes get x, so that the NaN keeps its
 * sign. The caller has computed y as x times a factor or as x divided by a factor. If x and the
 * factor are both NaN, the sign of y depends on the order of operands that the compiler has chosen.
 */
INLINE __m512 keep_nan(__m512 y, __m512 x) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

INLINE __m512i encode_floats(const vector_coder *k, const void *from, uint32_t elem,
                             meeting_cursor *cursor, element_way way, encode_care care) {
    __m512 x[4];
    __m512i c[4];
    load_chunk(from, elem, x);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        meeting m = next_meeting(cursor, way);
        __m512 y = meet(x[i], m, way);
        if (care == CARE_ALL) y = keep_nan(y, x[i]);
        c[i] = care == CARE_ALL && k->down ? codes_down_of(k, y, x[i], m.by, way)
                                           : codes_of(k, y, x[i], care);
    }
    return bytes_of_dwords(c);
}

/* Encodes 32 bf16 values. Each code is in the 16-bit lane of its value, with the sign of the value;
 * all other bits are 0. */
INLINE __m512i encode_words(const vector_coder *k, __m512i words, meeting m, element_way way) {
    const __m512i lower = _mm512_set1_epi32(0xffff);
    __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    __m512 odd = _mm512_castsi512_ps(_mm512_andnot_si512(lower, words));
    __m512i even_code = nearest_even(k, clamp(k, meet(even, m, way)));
    __m512i odd_code = nearest_even(k, clamp(k, meet(odd, m, way)));
    __m512i codes = choose_bits(lower, even_code, _mm512_slli_epi32(odd_code, 16));
    return choose_bits(k->words_magnitude, codes, _mm512_srlv_epi16(words, k->words_sign_shift));
}

/* Encodes 64 bf16 values. The even and the odd value of a 32-bit lane lie in the same block, so
 * they have the same factor. */
INLINE __m512i encode_bf16(const vector_coder *k, const uint16_t *from, meeting_cursor *cursor,
                           element_way way) {
    __m512i codes[2];
#    pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i words = _mm512_loadu_si512(from + i * WORDS);
        codes[i] = encode_words(k, words, next_meetings(cursor, way), way);
    }
    return bytes_of_words(codes[0], codes[1]);
}

INLINE __m512i encode_chunk(const vector_coder *k, const void *from, uint32_t elem,
                            meeting_cursor *cursor, element_way way, encode_care care) {
    if (elem == BSMM_ELEM_BF16 && care == CARE_NONE) return encode_bf16(k, from, cursor, way);
    return encode_floats(k, from, elem, cursor, way, care);
}

INLINE void store_chunk(uint8_t *to, __m512i codes, uint32_t bits) {
    __m512i packed = pack(codes, bits);
    if (bits == 4)
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(packed));
    else
        _mm512_mask_storeu_epi8(to, bits == 6 ? UINT64_MAX >> 16 : UINT64_MAX, packed);
}

/* Stores the first n codes. Codes of 4 or 6 bits share bytes in groups; if the last group is not
 * full, its remaining bits become 0. */
INLINE void store_last(uint8_t *to, __m512i bytes, int64_t n, uint32_t bits) {
    int64_t group = bits == 4 ? 2 : bits == 6 ? 4 : 1;
    int64_t used = bsmm_ceil_div(n, group) * group * bits / 8;
    bytes = _mm512_maskz_mov_epi8((1ull << n) - 1, bytes);
    _mm512_mask_storeu_epi8(to, (1ull << used) - 1, pack(bytes, bits));
}

/* Encodes 64 bf16 values as e2m1 by integer arithmetic. A window is a 16-bit constant that stands
 * for the factor of a block (window_avx512.h). The cursor yields the windows of the blocks. All 32
 * values of a register must lie in one block. */
WINDOW_TARGET static inline __m512i encode_windows(const uint16_t *from, factor_cursor *cursor) {
    __m512i places[2];
#    pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        places[i] = place_words(_mm512_loadu_si512(from + i * WORDS), next_factor(cursor, WORDS));
    return codes_at(bytes_of_words(places[0], places[1]));
}

static bool has_windows(void) {
    return bsmm_cpu_features() & BSMM_CPU_AVX512_VBMI;
}

#    include "quantize/encode_body.h"

const bsmm_strip_ops bsmm_strip_avx512 = {bsmm_amax_avx512, encode, bsmm_decode_avx512,
                                          bsmm_drain_avx512};

#endif
