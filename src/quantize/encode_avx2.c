/* Encodes values with AVX2. The loop loads 32 values as floats into four registers, multiplies or
 * divides them by the factors of their blocks, and rounds them to codes as coder.c does. It then
 * puts the 32 codes with their signs as bytes into one register, and packs the bytes if codes have
 * less than 8 bits.
 *
 * bf16 values take a fast path. A register of 16 bf16 values is split into the even and the odd
 * values. Each value is then the upper half of a 32-bit lane, whose lower half is 0. This lane is
 * already the value as a float, so no conversion is necessary. Afterwards the codes of even and odd
 * values are merged again, in the order of the values. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/coder_avx2.h"
#    include "quantize/encode_row.h"
#    include "quantize/window_avx2.h"

#    include <string.h>

/* Holds 32 codes in bytes, in the order in which the pack instructions leave them, because the pack
 * instructions work within 128-bit halves. The codes are in groups of `group` codes. Groups 0, 2,
 * 4, ... are in the lower half of the register, groups 1, 3, 5, ... in the upper half. */
typedef struct vec {
    __m256i bytes;
    int group;
} vec;

/* Packs four registers of 32-bit lanes into one register of bytes. Each lane must be a number that
 * fits into a byte. */
INLINE __m256i bytes_of_dwords(const __m256i c[4]) {
    return _mm256_packus_epi16(_mm256_packus_epi32(c[0], c[1]), _mm256_packus_epi32(c[2], c[3]));
}

/* Packs the signs of four registers of 32-bit lanes into the sign bits of bytes, in the order in
 * which bytes_of_dwords packs the codes of these lanes. */
INLINE __m256i signs_of_dwords(const __m256i x[4]) {
    return _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
}

/* Adds sign bits to codes of `bits` bits. The sign of code i is the top bit of byte i of
 * `signs`. */
INLINE __m256i with_signs(int bits, __m256i codes, __m256i signs) {
    __m256i sign = _mm256_and_si256(signs, _mm256_set1_epi8(-128));
    return _mm256_or_si256(codes, _mm256_srli_epi16(sign, 8 - bits));
}

INLINE __m256i in_order(vec codes) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    if (codes.group == 8) return _mm256_permute4x64_epi64(codes.bytes, 0xd8);
    return _mm256_permutevar8x32_epi32(codes.bytes, order);
}

/* A register holds 32 codes, one per byte, but not in their order (type vec). The lower half of the
 * register has `group` codes, the upper half has the next `group` codes, and so on in turn. Returns
 * the index of the code in byte i of the register. */
INLINE int place_of(int i, int group) {
    int half = i / 16, turn = i % 16 / group;
    return (2 * turn + half) * group + i % group;
}

INLINE __m128i pack4(vec codes) {
    __m256i pairs = _mm256_maddubs_epi16(codes.bytes, _mm256_set1_epi16(16 << 8 | 1));
    __m256i packed = _mm256_packus_epi16(pairs, pairs);
    __m128i even = _mm256_castsi256_si128(packed), odd = _mm256_extracti128_si256(packed, 1);
    return codes.group == 8 ? _mm_unpacklo_epi32(even, odd) : _mm_unpacklo_epi16(even, odd);
}

/* Packs 32 codes of 6 bits into 24 bytes; the rest of the register is 0. */
INLINE __m256i pack6(vec codes) {
    const __m256i three_of_four = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    __m256i pairs = _mm256_maddubs_epi16(in_order(codes), _mm256_set1_epi16(64 << 8 | 1));
    __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(4096 << 16 | 1));
    return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, three_of_four),
                                       _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
}

INLINE void store_half(uint8_t *to, __m128i bytes) {
    _mm_storeu_si128((__m128i *)(void *)to, bytes);
}

INLINE void store_chunk(uint8_t *to, vec codes, uint32_t bits) {
    if (bits == 4) store_half(to, pack4(codes));
    if (bits == 8) store_bits(to, in_order(codes));
    if (bits != 6) return;
    __m256i packed = pack6(codes);
    store_half(to, _mm256_castsi256_si128(packed));
    _mm_storel_epi64((__m128i *)(void *)(to + 16), _mm256_extracti128_si256(packed, 1));
}

/* Returns a mask with all bits set in the bytes of the first n codes. */
INLINE __m256i first_codes(int64_t n, int group) {
    uint8_t ones[CHUNK];
    for (int i = 0; i < CHUNK; i++)
        ones[i] = place_of(i, group) < n ? 0xff : 0;
    return load_bits(ones);
}

/* Stores the first n codes. Codes of 4 or 6 bits share bytes in groups; if the last group is not
 * full, its remaining bits become 0. */
INLINE void store_last(uint8_t *to, vec codes, int64_t n, uint32_t bits) {
    int64_t group = bits == 4 ? 2 : bits == 6 ? 4 : 1;
    uint8_t all[CHUNK];
    codes.bytes = _mm256_and_si256(codes.bytes, first_codes(n, codes.group));
    store_chunk(all, codes, bits);
    memcpy(to, all, (size_t)(bsmm_ceil_div(n, group) * group * bits / 8));
}

INLINE __m256 next_factor(factor_cursor *cursor, int count) {
    __m256 factor = _mm256_set1_ps(*cursor->at);
    pass_columns(cursor, count);
    return factor;
}

/* `meeting` holds the factor of a block, with which the values of the block are scaled before they
 * are rounded: `by` has the factor in all lanes. WAY_MULTIPLY multiplies the values by the factor,
 * and WAY_DIVIDE and WAY_DIVIDE_TAME divide them by it. WAY_COMPARE instead multiplies the
 * midpoints between e2m1 values by the factor and compares the values with these products.
 * `reciprocal` is 1 / by and is used only with WAY_DIVIDE_TAME. */
typedef struct meeting {
    __m256 by, reciprocal;
} meeting;

INLINE meeting next_meeting(meeting_cursor *cursor, int count, element_way way) {
    __m256 by = next_factor(&cursor->by, count);
    return (meeting){by, way == WAY_DIVIDE_TAME ? next_factor(&cursor->reciprocal, count) : by};
}

/* Returns the block factors for the next 32 values: m[0] has the factors for the first 16 values,
 * and m[1] has those for the last 16. */
INLINE void next_meetings(meeting_cursor *cursor, element_way way, meeting m[2]) {
    bool one = cursor->by.width % CHUNK == 0;
    m[0] = next_meeting(cursor, one ? CHUNK : FACTOR_RUN, way);
    m[1] = one ? m[0] : next_meeting(cursor, FACTOR_RUN, way);
}

/* Computes x / m.by, correctly rounded, without a division: q approximates the quotient, and an FMA
 * with the remainder corrects it (as in bsmm_ratio of rules_e4m3.h). The method is valid for "tame"
 * blocks, whose largest magnitude (amax) is 0 or between 2^-60 and 2^60. In such blocks the
 * remainder underflows only if the quotient is so small that it rounds to zero. */
INLINE __m256 divide(__m256 x, meeting m) {
    __m256 q = _mm256_mul_ps(x, m.reciprocal);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, m.by, x), m.reciprocal, q);
}

INLINE __m256 meet(__m256 x, meeting m, element_way way) {
    if (way == WAY_DIVIDE_TAME) return divide(x, m);
    return way == WAY_DIVIDE ? _mm256_div_ps(x, m.by) : _mm256_mul_ps(x, m.by);
}

/* Restores x in lanes in which x is NaN, so that a NaN keeps its sign. If x and the factor are both
 * NaN, the sign of the product would depend on the order of operands that the compiler chooses. */
INLINE __m256 keep_nan(__m256 y, __m256 x) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* Loads values 8 i to 8 i + 7 and converts them to fp32. */
INLINE __m256 load_lanes(const void *from, uint32_t elem, int i) {
    const uint16_t *words = from;
    if (elem == BSMM_ELEM_F32) return _mm256_loadu_ps((const float *)from + i * LANES);
    __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)(words + i * LANES));
    if (elem == BSMM_ELEM_F16) return _mm256_cvtph_ps(codes);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

/* Combines codes with their signs and clears all other bits of the 32-bit lanes. The code of a NaN
 * may already contain the sign bit. */
INLINE __m256i joined(const vector_coder *k, signed_codes c) {
    __m256i sign = _mm256_andnot_si256(k->magnitude, _mm256_srli_epi32(c.signs, k->sign_shift));
    return _mm256_or_si256(_mm256_and_si256(c.codes, _mm256_set1_epi32(0xff)), sign);
}

/* Encodes values as e2m1 with ties towards zero (BSMM_TIES_DOWN). `y` is the product or the
 * quotient of the value x and its block's factor. Usually y is encoded. With WAY_COMPARE, x itself
 * is compared with the rounding bounds (midpoints between e2m1 values) times the factor. */
INLINE signed_codes codes_down_of(const vector_coder *k, __m256 y, __m256 x, __m256 factor,
                                  element_way way) {
    if (way == WAY_COMPARE) return codes_down(k, _mm256_castps_si256(x), factor, false);
    return codes_down(k, _mm256_castps_si256(y), _mm256_set1_ps(1), true);
}

INLINE __m256i careful_codes(const vector_coder *k, __m256 x, meeting m, element_way way) {
    __m256 y = keep_nan(meet(x, m, way), x);
    if (k->down) return joined(k, codes_down_of(k, y, x, m.by, way));
    signed_codes c = {nearest_even(k, clamp(k, y)), _mm256_castps_si256(y)};
    return joined(k, apply_rules(k, magnitude_bits(y), c));
}

INLINE vec encode_carefully(const vector_coder *k, const void *from, uint32_t elem,
                            meeting_cursor *cursor, element_way way) {
    __m256i c[4];
    meeting m[2];
    next_meetings(cursor, way, m);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        c[i] = careful_codes(k, load_lanes(from, elem, i), m[i / 2], way);
    return (vec){bytes_of_dwords(c), 4};
}

/* Encodes 32 values in fp32. A code gets the sign of its value before scaling, because the fast
 * division (WAY_DIVIDE_TAME) loses the sign of -0. With CARE_PLUS the recipe wants +0 for -0. The
 * function then adds +0 to the scaled value, which turns -0 into +0, and takes the sign of the sum.
 */
INLINE vec encode_floats(const vector_coder *k, const void *from, uint32_t elem,
                         meeting_cursor *cursor, element_way way, encode_care care) {
    __m256i c[4], signs[4];
    meeting m[2];
    next_meetings(cursor, way, m);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m256 x = load_lanes(from, elem, i), y = meet(x, m[i / 2], way);
        if (care == CARE_PLUS) y = _mm256_add_ps(y, _mm256_setzero_ps());
        c[i] = _mm256_and_si256(nearest_even(k, clamp(k, y)), k->magnitude);
        signs[i] = _mm256_castps_si256(care == CARE_PLUS ? y : x);
    }
    return (vec){with_signs((int)k->bits, bytes_of_dwords(c), signs_of_dwords(signs)), 4};
}

/* Encodes 16 bf16 values. Each code is in the 16-bit lane of its value, without a sign; all other
 * bits are 0. */
INLINE __m256i encode_words(const vector_coder *k, __m256i words, meeting m, element_way way) {
    __m256 even = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    __m256 odd = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(-0x10000)));
    __m256i even_code = nearest_even(k, clamp(k, meet(even, m, way)));
    __m256i odd_code = nearest_even(k, clamp(k, meet(odd, m, way)));
    return _mm256_blend_epi16(even_code, _mm256_slli_epi32(odd_code, 16), 0xaa);
}

INLINE vec encode_bf16(const vector_coder *k, const uint16_t *from, meeting_cursor *cursor,
                       element_way way) {
    meeting m[2];
    next_meetings(cursor, way, m);
    __m256i first = load_bits(from), second = load_bits(from + WORDS);
    __m256i codes =
        _mm256_packus_epi16(encode_words(k, first, m[0], way), encode_words(k, second, m[1], way));
    return (vec){with_signs((int)k->bits, codes, _mm256_packs_epi16(first, second)), 8};
}

INLINE vec encode_chunk(const vector_coder *k, const void *from, uint32_t elem,
                        meeting_cursor *cursor, element_way way, encode_care care) {
    if (care == CARE_ALL) return encode_carefully(k, from, elem, cursor, way);
    if (elem == BSMM_ELEM_BF16 && care == CARE_NONE) return encode_bf16(k, from, cursor, way);
    return encode_floats(k, from, elem, cursor, way, care);
}

INLINE vec encode_windows(const uint16_t *from, factor_cursor *cursor) {
    meeting m[2];
    meeting_cursor both = {*cursor, *cursor};
    next_meetings(&both, WAY_MULTIPLY, m);
    *cursor = both.by;
    __m256i first = load_bits(from), second = load_bits(from + WORDS);
    __m256i places = _mm256_packus_epi16(place_words(first, _mm256_castps_si256(m[0].by)),
                                         place_words(second, _mm256_castps_si256(m[1].by)));
    return (vec){with_signs(4, codes_at(places), _mm256_packs_epi16(first, second)), 8};
}

static bool has_windows(void) {
    return true;
}

#    include "quantize/encode_body.h"

const bsmm_strip_ops bsmm_strip_avx2 = {bsmm_amax_avx2, encode, bsmm_decode_avx2, bsmm_drain_avx2};

#endif
