/* Codes to values by AVX2: 32 codes become four registers of floats, meet two factors, and are
 * rounded once.
 *
 * 4 bits: codes look up the two bytes of a bf16. To 16 bits it is the eight magnitudes that meet
 *         factors and are rounded, and codes look up the bytes of what they became.
 * 8 bits: shifted into an f16 code, whose exponent is wider or as wide; what the bias differs by is
 *         a power of two. NaN codes are replaced.
 * 6 bits: moved to the upper bits of bytes, then the same.
 *
 * Products that are not exact go to 16 bits through fp32. That is rounding twice, which is rounding
 * once unless the float lies halfway between two results and is not the product: all that lies
 * between two halves rounds to one result, and halves are floats. Where one may be halfway, the
 * product is rounded to odd instead. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/factor_cursor.h"
#    include "quantize/lanes_avx2.h"

#    include <string.h>

enum { PARTS = CHUNK / LANES };

/* Bytes of codes: stores past the caches hold up the processor's own prefetching. */
enum { AHEAD = 4096 };

/* How values become products: EXACT by the scale; BY_LEVEL by the scale, exactly, and by the second
 * level; BY_SCALE by a scale of any bits. */
typedef enum product_kind { EXACT, BY_LEVEL, BY_SCALE } product_kind;

/* What loops are made for, each with constants of its own. */
typedef struct shape {
    uint32_t bits, to_elem;
    product_kind kind;
} shape;

/* A job's constants in registers. */
typedef struct vector_values {
    __m256i low_bytes, high_bytes; /* 4 bits */
    __m256 magnitudes;
    __m256i nan_base, nan_mask, last_nan, field; /* 8 bits */
    __m128i shift;
    __m256 bias, level;
} vector_values;

INLINE __m256i twice(const void *from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(from));
}

INLINE vector_values vector_values_of(const bsmm_decode_job *job) {
    const int shift = job->mantissa_bits + 6 - (int)job->bits;
    return (vector_values){
        .low_bytes = twice(job->low_bytes),
        .high_bytes = twice(job->high_bytes),
        .magnitudes = _mm256_loadu_ps(job->table),
        .nan_base = _mm256_set1_epi8((char)job->nan_base),
        .nan_mask = _mm256_set1_epi8((char)job->nan_mask),
        .last_nan = _mm256_set1_epi8((char)(job->nans - 1)),
        .field = _mm256_set1_epi16((int16_t)(0x8000 | 0x7f00 >> shift)),
        .shift = _mm_cvtsi32_si128(shift),
        .bias = _mm256_set1_ps(job->bias),
        .level = _mm256_set1_ps(job->other),
    };
}

/* ---- elements ---- */

/* A byte to two codes; `order` is where each 16 bytes of codes take theirs from. */
INLINE __m256i codes4(const uint8_t *codes, __m256i order) {
    __m256i words = _mm256_shuffle_epi8(twice(codes), order);
    __m256i both = _mm256_or_si256(words, _mm256_slli_epi16(words, 4));
    return _mm256_and_si256(both, _mm256_set1_epi8(0xf));
}

/* Bytes are taken so that unpacking, which works in halves of registers, leaves columns in order.
 */
INLINE void values4(const vector_values *v, const uint8_t *codes, __m256 x[PARTS]) {
    const __m256i fours =
        _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, /* */
                         2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
    __m256i code = codes4(codes, fours), zero = _mm256_setzero_si256();
    __m256i low = _mm256_shuffle_epi8(v->low_bytes, code);
    __m256i high = _mm256_shuffle_epi8(v->high_bytes, code);
    __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    x[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, first));
    x[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, first));
    x[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, second));
    x[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, second));
}

/* Codes in the upper bits of bytes. Each two codes are brought into a word of their own, first into
 * its bits 4 to 15. */
INLINE __m256i codes6(const uint8_t *codes) {
    const __m256i pairs =
        _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, /* bytes 0 to 11 */
                         4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15); /* 8 to 23 */
    __m256i bytes = _mm256_castsi128_si256(_mm_loadu_si128((const void *)codes));
    bytes = _mm256_inserti128_si256(bytes, _mm_loadu_si128((const void *)(codes + 8)), 1);
    __m256i words = _mm256_shuffle_epi8(bytes, pairs);
    words = _mm256_blend_epi16(_mm256_slli_epi16(words, 4), words, 0xaa);
    __m256i even = _mm256_and_si256(_mm256_srli_epi16(words, 2), _mm256_set1_epi16(0xfc));
    return _mm256_or_si256(even, _mm256_and_si256(words, _mm256_set1_epi16((int16_t)0xfc00)));
}

/* f16 codes of codes in the upper bytes of words. */
INLINE __m256i f16_codes(const vector_values *v, __m256i words) {
    return _mm256_and_si256(_mm256_sra_epi16(words, v->shift), v->field);
}

INLINE __m256 floats(const vector_values *v, __m128i f16) {
    return _mm256_mul_ps(_mm256_cvtph_ps(f16), v->bias);
}

INLINE void values8(const vector_values *v, __m256i codes, bool has_nans, __m256 x[PARTS]) {
    const __m256i zero = _mm256_setzero_si256(), quiet = _mm256_set1_epi16(0x7e00);
    __m256i first = f16_codes(v, _mm256_unpacklo_epi8(zero, codes));
    __m256i second = f16_codes(v, _mm256_unpackhi_epi8(zero, codes));
    if (has_nans) {
        __m256i above = _mm256_and_si256(_mm256_sub_epi8(codes, v->nan_base), v->nan_mask);
        __m256i is_nan = _mm256_cmpeq_epi8(_mm256_min_epu8(above, v->last_nan), above);
        first = _mm256_blendv_epi8(first, quiet, _mm256_unpacklo_epi8(is_nan, is_nan));
        second = _mm256_blendv_epi8(second, quiet, _mm256_unpackhi_epi8(is_nan, is_nan));
    }
    x[0] = floats(v, _mm256_castsi256_si128(first));
    x[1] = floats(v, _mm256_castsi256_si128(second));
    x[2] = floats(v, _mm256_extracti128_si256(first, 1));
    x[3] = floats(v, _mm256_extracti128_si256(second, 1));
}

INLINE void values(uint32_t bits, const vector_values *v, const uint8_t *codes, __m256 x[PARTS]) {
    if (bits == 4)
        values4(v, codes, x);
    else if (bits == 6)
        values8(v, codes6(codes), false, x);
    else
        values8(v, load_bits(codes), true, x);
}

/* ---- products ---- */

INLINE __m256 magnitude(__m256 value) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), value);
}

/* Odd rounding of x * factor, of which y is the nearest float: of the two floats around what is not
 * one, that whose last bit is set; then rounding it again is rounding once. It is the one nearer to
 * zero with the bit set, and y is the other one if it is larger than the product.
 *
 * What y is too large or too small by is a float, and the FMA exact, unless it underflows: rounded
 * it keeps its sign, but may become 0. Therefore factors below 1 meet 2^32 times x and y. x is a
 * multiple of 2^-26 within 2^26 (two e4m3 codes, or e5m2fnuz), so that nothing overflows, and a
 * factor one of 2^-149: what is left is a multiple of 2^(32 - 26 - 149), above the least float.
 * With a factor of 1 and more it is one of 2^(-26 - 23).
 *
 * y may be Inf: of a finite product it becomes the largest float, which rounds to Inf in 16 bits;
 * of Inf or NaN the rest is NaN and y remains. */
INLINE __m256 to_odd(__m256 x, __m256 factor, __m256 y) {
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
    __m256 size = magnitude(factor), is_less = _mm256_cmp_ps(size, one, _CMP_LT_OQ);
    __m256 up = _mm256_blendv_ps(one, _mm256_set1_ps(0x1p32f), is_less);
    __m256 large = _mm256_mul_ps(magnitude(x), up), product = _mm256_mul_ps(magnitude(y), up);
    __m256 rest = _mm256_fmsub_ps(large, size, product);
    __m256i above = _mm256_castps_si256(_mm256_cmp_ps(rest, zero, _CMP_LT_OQ)); /* -1 */
    __m256i below = _mm256_castps_si256(_mm256_cmp_ps(rest, zero, _CMP_GT_OQ));
    __m256i odd = _mm256_srli_epi32(_mm256_or_si256(above, below), 31);
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(y), above);
    return _mm256_castsi256_ps(_mm256_or_si256(bits, odd));
}

/* Whether one of n floats may lie halfway between two bf16: the lower half is one half. Or between
 * two f16: 11 bits and one more, fewer where f16 is subnormal, and not 0. */
INLINE bool any_halfway(uint32_t to_elem, const __m256 *y, int n) {
    const __m256i half = _mm256_set1_epi16(INT16_MIN), zero = _mm256_setzero_si256();
    __m256i any = zero;
#    pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        __m256i bits = _mm256_castps_si256(y[i]), is;
        if (to_elem == BSMM_ELEM_BF16)
            is = _mm256_cmpeq_epi16(bits, half);
        else
            is = _mm256_andnot_si256(
                _mm256_castps_si256(_mm256_cmp_ps(y[i], _mm256_setzero_ps(), _CMP_EQ_OQ)),
                _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0xfff)), zero));
        any = _mm256_or_si256(any, is);
    }
    return (_mm256_movemask_epi8(any) & 0x33333333) != 0;
}

/* n registers, each with scales of its own, ready to be rounded. */
INLINE void multiply(const shape s, const vector_values *v, int n, const __m256 *x,
                     const __m256 *scales, __m256 *y) {
    __m256 exact[PARTS];
#    pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        exact[i] = s.kind == BY_SCALE ? x[i] : _mm256_mul_ps(x[i], scales[i]);
        y[i] = s.kind == EXACT ? exact[i]
                               : _mm256_mul_ps(exact[i], s.kind == BY_LEVEL ? v->level : scales[i]);
    }
    if (s.kind == EXACT || s.to_elem == BSMM_ELEM_F32 || !any_halfway(s.to_elem, y, n)) return;
#    pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        y[i] = to_odd(exact[i], s.kind == BY_LEVEL ? v->level : scales[i], y[i]);
}

/* ---- rounding and stores ---- */

INLINE void store(uint8_t *to, __m256i values, bool stream) {
    if (stream)
        _mm256_stream_si256((__m256i *)(void *)to, values);
    else
        store_bits(to, values);
}

/* Nearest even, in the lower halves. NaNs here have one payload, which no carry leaves. */
INLINE __m256i round_bf16(__m256 value, bool whole) {
    __m256i bits = _mm256_castps_si256(value);
    if (whole) return _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    return _mm256_srli_epi32(bits, 16);
}

/* Two registers in 16 bits. whole: the values are bf16. So is every exact product of 6 bits and
 * fewer: the smallest is 2^-131, the last place of bf16's subnormals is 2^-133. */
INLINE __m256i narrow(uint32_t to_elem, __m256 low, __m256 high, bool whole) {
    if (to_elem == BSMM_ELEM_F16)
        return _mm256_set_m128i(_mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT),
                                _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
    __m256i pairs = _mm256_packus_epi32(round_bf16(low, whole), round_bf16(high, whole));
    return _mm256_permute4x64_epi64(pairs, _MM_SHUFFLE(3, 1, 2, 0));
}

/* ---- chunks ---- */

INLINE __m256 next_factor(factor_cursor *cursor) {
    __m256 factor = _mm256_broadcast_ss(cursor->at);
    pass_columns(cursor, WORDS);
    return factor;
}

INLINE void decode_chunk(const shape s, const vector_values *v, const uint8_t *codes,
                         factor_cursor *cursor, bool whole, uint8_t *to, bool stream) {
    __m256 x[PARTS], y[PARTS], first = next_factor(cursor), second = next_factor(cursor);
    const __m256 scales[PARTS] = {first, first, second, second};
    values(s.bits, v, codes, x);
    multiply(s, v, PARTS, x, scales, y);
    if (s.to_elem == BSMM_ELEM_F32) {
#    pragma GCC unroll 4
        for (int i = 0; i < PARTS; i++)
            store(to + 32 * i, _mm256_castps_si256(y[i]), stream);
        return;
    }
    store(to, narrow(s.to_elem, y[0], y[1], whole), stream);
    store(to + 32, narrow(s.to_elem, y[2], y[3], whole), stream);
}

/* 4 bits to 16 by tables, one for each 16 codes: the upper bytes of what the magnitudes became,
 * and the lower ones. False where one is NaN, which has no sign to change. */
INLINE bool decode_by_tables(const shape s, const vector_values *v, const uint8_t *codes,
                             factor_cursor *cursor, uint8_t *to, bool stream) {
    const __m256i in_order =
        _mm256_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 4, -1, 5, -1, 6, -1, 7, -1, /* */
                         8, -1, 9, -1, 10, -1, 11, -1, 12, -1, 13, -1, 14, -1, 15, -1);
    const __m256i split = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14));
    const __m256 x[2] = {v->magnitudes, v->magnitudes};
    factor_cursor after = *cursor;
    __m256 y[2], first = next_factor(&after), second = next_factor(&after);
    multiply(s, v, 2, x, (const __m256[]){first, second}, y);
    if (_mm256_movemask_ps(_mm256_cmp_ps(y[0], y[1], _CMP_UNORD_Q))) return false;
    __m256i table = _mm256_shuffle_epi8(narrow(s.to_elem, y[0], y[1], s.kind == EXACT), split);
    __m256i code = codes4(codes, in_order), eight = _mm256_set1_epi8(8);
    __m256i sign = _mm256_slli_epi16(_mm256_and_si256(code, eight), 4);
    __m256i low = _mm256_shuffle_epi8(table, _mm256_or_si256(code, eight));
    __m256i high = _mm256_shuffle_epi8(table, _mm256_andnot_si256(eight, code));
    high = _mm256_xor_si256(high, sign);
    __m256i evens = _mm256_unpacklo_epi8(low, high), odds = _mm256_unpackhi_epi8(low, high);
    store(to, _mm256_permute2x128_si256(evens, odds, 0x20), stream);
    store(to + 32, _mm256_permute2x128_si256(evens, odds, 0x31), stream);
    *cursor = after;
    return true;
}

/* ---- rows ---- */

/* Whether exact products of 8 bits are normal bf16 values, or zero; NaN is. */
INLINE bool are_whole(const float *scales, int64_t blocks) {
    bool tiny = false;
    for (int64_t i = 0; i < blocks; i++)
        tiny |= scales[i] < 0x1p-96f;
    return !tiny;
}

INLINE void decode_row(const shape s, const bsmm_decode_job *job, const uint8_t *codes,
                       int64_t cols, const float *scales, uint8_t *out) {
    const vector_values v = vector_values_of(job);
    const int64_t size = s.to_elem == BSMM_ELEM_F32 ? 4 : 2, bytes = CHUNK / 8 * s.bits;
    const bool streams = job->streams && (uintptr_t)out % 64 == 0;
    const bool tables = s.bits == 4 && s.to_elem != BSMM_ELEM_F32;
    const bool whole = s.to_elem == BSMM_ELEM_BF16 && s.kind == EXACT &&
                       (s.bits < 8 || are_whole(scales, bsmm_ceil_div(cols, job->width)));
    factor_cursor cursor = factors_from(scales, cols, job->width);
    int64_t left = cols;
    for (; left >= CHUNK; left -= CHUNK, codes += bytes, out += CHUNK * size) {
        _mm_prefetch((const char *)codes + AHEAD, _MM_HINT_T0);
        if (!tables || !decode_by_tables(s, &v, codes, &cursor, out, streams))
            decode_chunk(s, &v, codes, &cursor, whole, out, streams);
    }
    if (left == 0) return;
    uint8_t rest[CHUNK] = {0}, last[CHUNK * sizeof(float)];
    memcpy(rest, codes, (size_t)bsmm_ceil_div(left * s.bits, 8));
    decode_chunk(s, &v, rest, &cursor, whole, last, false);
    memcpy(out, last, (size_t)(left * size));
}

INLINE void decode_kind(uint32_t bits, uint32_t to_elem, const bsmm_decode_job *job,
                        const uint8_t *codes, int64_t cols, const float *scales, void *to) {
    if (job->is_exact)
        decode_row((shape){bits, to_elem, EXACT}, job, codes, cols, scales, to);
    else if (job->scale_is_exact)
        decode_row((shape){bits, to_elem, BY_LEVEL}, job, codes, cols, scales, to);
    else
        decode_row((shape){bits, to_elem, BY_SCALE}, job, codes, cols, scales, to);
}

INLINE void decode_bits(uint32_t bits, const bsmm_decode_job *job, const uint8_t *codes,
                        int64_t cols, const float *scales, void *to) {
    if (job->to_elem == BSMM_ELEM_F32)
        decode_kind(bits, BSMM_ELEM_F32, job, codes, cols, scales, to);
    else if (job->to_elem == BSMM_ELEM_F16)
        decode_kind(bits, BSMM_ELEM_F16, job, codes, cols, scales, to);
    else
        decode_kind(bits, BSMM_ELEM_BF16, job, codes, cols, scales, to);
}

TARGET void bsmm_decode_avx2(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                             const float *scales, void *to) {
    if (job->bits == 4)
        decode_bits(4, job, codes, cols, scales, to);
    else if (job->bits == 6)
        decode_bits(6, job, codes, cols, scales, to);
    else
        decode_bits(8, job, codes, cols, scales, to);
}

void bsmm_drain_avx2(void) {
    _mm_sfence();
}

#endif
