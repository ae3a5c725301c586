/* Decodes codes to f32, f16 or bf16 with AVX-512. The loop turns 64 codes into four registers of
 * floats, multiplies them by two factors (block scale and second-level scale) and rounds once. The
 * elements become floats as follows:
 *
 * - 4 bits: each 32-bit lane gets a copy of the uint32 that contains its code, shifts the code to
 *   the lowest bits and looks up the value in a table.
 * - 6 bits: each 32-bit lane does the same with three bytes, which contain four codes. The table
 *   has magnitudes, and the sign is added.
 * - 8 bits: the code is shifted into the bit fields of f16, whose exponent field is at least as
 *   wide. A multiplication by a power of two corrects the difference of the exponent biases. NaN
 *   codes are replaced.
 * - 8 bits to bf16: integer arithmetic turns 32 codes into bf16 values. The bf16 values are split
 *   into registers of even and odd floats, multiplied by their factors and merged again. If a code
 *   is not finite, or a product lies halfway between two bf16 values, the path "8 bits" is used
 *   instead.
 *
 * An inexact product that becomes a 16-bit value is first rounded to odd: it is truncated to fp32,
 * and its last bit is set if the truncation lost anything. Rounding it again to 16 bits then equals
 * rounding the exact product once. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx512.h"

#    include <string.h>

/* This struct holds the constants of a decode job in registers. */
typedef struct vector_values {
    __m512 table[2], bias, other;
    __m512i nan_base, nan_mask, nans;
    __m128i shift;
    /* These constants are used to convert 8-bit codes to bf16. */
    __m512i special_base, special_mask, specials;
    __m512i pairs_shift, pairs_field, pairs_base, exponent, subnormals;
} vector_values;

INLINE vector_values vector_values_of(const bsmm_decode_job *job) {
    return (vector_values){
        .table = {_mm512_loadu_ps(job->table), _mm512_loadu_ps(job->table + LANES)},
        .bias = _mm512_set1_ps(job->bias),
        .other = _mm512_set1_ps(job->other),
        .nan_base = _mm512_set1_epi16(job->nan_base),
        .nan_mask = _mm512_set1_epi16(job->nan_mask),
        .nans = _mm512_set1_epi16(job->nans),
        .shift = _mm_cvtsi32_si128(job->shift),
        .special_base = _mm512_set1_epi8((char)job->special_base),
        .special_mask = _mm512_set1_epi8((char)job->nan_mask),
        .specials = _mm512_set1_epi8((char)job->specials),
        .pairs_shift = _mm512_set1_epi16((int16_t)(7 - job->mantissa_bits)),
        .pairs_field = _mm512_set1_epi16((int16_t)(0x7f << (7 - job->mantissa_bits))),
        .pairs_base = _mm512_set1_epi16(job->pairs_base),
        .exponent = _mm512_set1_epi16((int16_t)(0x7f >> job->mantissa_bits << job->mantissa_bits)),
        .subnormals = _mm512_loadu_si512(job->subnormals),
    };
}

INLINE void values4(const vector_values *v, __m512i codes, __m512 x[4]) {
    const __m512i shifts =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i index = _mm512_add_epi32(halves, _mm512_set1_epi32(2 * i));
        __m512i code = _mm512_srlv_epi32(_mm512_permutexvar_epi32(index, codes), shifts);
        x[i] = _mm512_permutexvar_ps(code, v->table[0]);
    }
}

INLINE void values6(const vector_values *v, __m512i codes, __m512 x[4]) {
    const __m512i shifts =
        _mm512_setr_epi32(0, 6, 12, 18, 0, 6, 12, 18, 0, 6, 12, 18, 0, 6, 12, 18);
    const __m512i threes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
    const __m512i spread =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    __m512i groups = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, codes), spread);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i index = _mm512_add_epi32(threes, _mm512_set1_epi32(4 * i));
        __m512i code = _mm512_srlv_epi32(_mm512_permutexvar_epi32(index, groups), shifts);
        __m512 magnitude = _mm512_permutex2var_ps(v->table[0], code, v->table[1]);
        __m512i sign = _mm512_slli_epi32(code, 26);
        /* This ternary logic instruction computes magnitude | (sign & top bit). */
        x[i] = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(magnitude), sign,
                                                             _mm512_set1_epi32(INT32_MIN), 0xf8));
    }
}

INLINE __m512i f16_codes(const vector_values *v, __m256i bytes) {
    __m512i words = _mm512_cvtepu8_epi16(bytes);
    __m512i magnitude = _mm512_and_si512(words, _mm512_set1_epi16(0x7f));
    __m512i sign = _mm512_slli_epi16(words, 8);
    __m512i shifted = _mm512_sll_epi16(magnitude, v->shift);
    /* This ternary logic instruction computes shifted | (sign & top bit). */
    __m512i f16 = _mm512_ternarylogic_epi32(shifted, sign, _mm512_set1_epi16(INT16_MIN), 0xf8);
    __m512i from_nan = _mm512_and_si512(_mm512_sub_epi16(words, v->nan_base), v->nan_mask);
    __mmask32 is_nan = _mm512_cmplt_epu16_mask(from_nan, v->nans);
    return _mm512_mask_mov_epi16(f16, is_nan, _mm512_set1_epi16(0x7e00));
}

INLINE void values8(const vector_values *v, __m512i codes, __m512 x[4]) {
    __m512i f16[2] = {f16_codes(v, _mm512_castsi512_si256(codes)),
                      f16_codes(v, _mm512_extracti64x4_epi64(codes, 1))};
    for (int i = 0; i < 2; i++) {
        __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(f16[i]));
        __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(f16[i], 1));
        x[2 * i] = _mm512_mul_ps(low, v->bias);
        x[2 * i + 1] = _mm512_mul_ps(high, v->bias);
    }
}

enum {
    TRUNCATE = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC,
    UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC,
    NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC
};

/* Returns x * factor, rounded to odd: if the product is inexact, it is truncated and its last bit
 * is set. An FMA computes the exact product minus the truncated one, in magnitudes. If this
 * difference is above 0, the truncation lost something. The FMA rounds up, so that a tiny
 * difference cannot underflow to 0. */
INLINE __m512 multiply_odd(__m512 x, __m512 factor) {
    __m512 y = _mm512_mul_round_ps(x, factor, TRUNCATE);
    __m512 rest =
        _mm512_fmsub_round_ps(_mm512_abs_ps(x), _mm512_abs_ps(factor), _mm512_abs_ps(y), UP);
    __mmask16 is_less = _mm512_cmp_ps_mask(rest, _mm512_setzero_ps(), _CMP_GT_OQ);
    __m512i bits = _mm512_castps_si512(y);
    return _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, is_less, bits, _mm512_set1_epi32(1)));
}

INLINE void store_line(uint8_t *to, __m512i line, bool stream) {
    if (stream)
        _mm512_stream_si512((__m512i *)(void *)to, line);
    else
        _mm512_storeu_si512(to, line);
}

/* Rounds floats to bf16, to nearest even, in the upper 16 bits of each lane. Every NaN here has the
 * same fixed payload, so that the carry of the rounding cannot change its sign or turn it into
 * Inf. */
INLINE __m512i round_bf16(__m512 value) {
    __m512i bits = _mm512_castps_si512(value);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
}

/* Packs the upper halves of the 32-bit lanes of two registers into one register. The pack
 * instruction works within 128-bit parts, so a permutation restores the order. */
INLINE __m512i upper_halves(__m512i low, __m512i high) {
    __m512i pairs = _mm512_packus_epi32(_mm512_srli_epi32(low, 16), _mm512_srli_epi32(high, 16));
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), pairs);
}

/* Stores four registers of floats as bf16. If `whole` is true, bf16 holds every float exactly, and
 * the function cuts off the lower 16 bits instead of rounding. This is so if each float is the
 * exact product of a scale and an element of at most 6 bits. Such a product has at most 8
 * significant bits, as bf16 has, and is a multiple of 2^-131, which is above the smallest bf16
 * number 2^-133. */
INLINE void store_bf16(uint8_t *to, const __m512 y[4], bool whole, bool stream) {
    for (int i = 0; i < 2; i++) {
        __m512i low = whole ? _mm512_castps_si512(y[2 * i]) : round_bf16(y[2 * i]);
        __m512i high = whole ? _mm512_castps_si512(y[2 * i + 1]) : round_bf16(y[2 * i + 1]);
        store_line(to + 64 * i, upper_halves(low, high), stream);
    }
}

INLINE void store_f16(uint8_t *to, const __m512 y[4], bool stream) {
    for (int i = 0; i < 2; i++) {
        __m256i low = _mm512_cvtps_ph(y[2 * i], NEAREST);
        __m256i high = _mm512_cvtps_ph(y[2 * i + 1], NEAREST);
        store_line(to + 64 * i, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), stream);
    }
}

INLINE void store_f32(uint8_t *to, const __m512 y[4], bool stream) {
    for (int i = 0; i < 4; i++)
        store_line(to + 64 * i, _mm512_castps_si512(y[i]), stream);
}

/* AHEAD is the distance of the software prefetch in bytes of codes. The output stores bypass the
 * caches, and such stores slow down the hardware prefetcher. */
enum { AHEAD = 4096 };

/* `shape` holds the parameters of a decoding loop that are compile-time constants. Each combination
 * has a compiled loop of its own. */
typedef struct shape {
    uint32_t bits, to_elem;
    /* `exact` is true if the second-level scale (the scale of the whole matrix) is 1 and no product
     * is rounded (job->is_exact). */
    bool exact;
} shape;

INLINE void decode_chunk(const shape s, bool scale_is_exact, const vector_values *v, __m512i codes,
                         factor_cursor *cursor, __m512 y[4]) {
    __m512 x[4];
    if (s.bits == 4)
        values4(v, codes, x);
    else if (s.bits == 6)
        values6(v, codes, x);
    else
        values8(v, codes, x);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512 scale = next_factor(cursor, LANES);
        if (s.exact) {
            y[i] = _mm512_mul_ps(x[i], scale);
            continue;
        }
        __m512 exact = _mm512_mul_ps(x[i], scale_is_exact ? scale : v->other);
        __m512 factor = scale_is_exact ? v->other : scale;
        y[i] =
            s.to_elem == BSMM_ELEM_F32 ? _mm512_mul_ps(exact, factor) : multiply_odd(exact, factor);
    }
}

INLINE void store_chunk(const shape s, uint8_t *to, const __m512 y[4], bool stream) {
    if (s.to_elem == BSMM_ELEM_F32)
        store_f32(to, y, stream);
    else if (s.to_elem == BSMM_ELEM_F16)
        store_f16(to, y, stream);
    else
        store_bf16(to, y, s.exact && s.bits < 8, stream);
}

/* Converts 32 finite codes of 8 bits to bf16. A subnormal element has an exponent field of 0. Its
 * mantissa bits are the index in a table of bf16 values. */
INLINE __m512i bf16_of_codes(const vector_values *v, __m256i bytes) {
    __m512i codes = _mm512_cvtepi8_epi16(bytes);
    __m512i field = _mm512_and_si512(_mm512_sllv_epi16(codes, v->pairs_shift), v->pairs_field);
    __m512i normal = _mm512_add_epi16(field, v->pairs_base);
    __mmask32 is_small = _mm512_testn_epi16_mask(codes, v->exponent);
    __m512i magnitude = _mm512_mask_permutexvar_epi16(normal, is_small, codes, v->subnormals);
    return choose_bits(_mm512_set1_epi16(INT16_MIN), codes, magnitude);
}

/* Multiplies element values by the block scale and by the second-level scale (the scale of the
 * whole matrix). The result is an fp32 number that is exact or rounded once; the caller rounds it
 * to bf16. */
INLINE __m512 pair_product(const shape s, bool scale_is_exact, const vector_values *v, __m512 x,
                           __m512 scale) {
    if (s.exact) return _mm512_mul_ps(x, scale);
    __m512 exact = _mm512_mul_ps(x, scale_is_exact ? scale : v->other);
    return _mm512_mul_ps(exact, scale_is_exact ? v->other : scale);
}

/* Returns a mask of the 32-bit lanes whose lower half is 0x8000, i.e. floats halfway between two
 * bf16 values. If such a float is itself a rounded product, its bits do not tell whether the exact
 * product was above or below the halfway point. */
INLINE __mmask32 halfway(__m512 y) {
    return _mm512_mask_cmpeq_epi16_mask(0x55555555, _mm512_castps_si512(y),
                                        _mm512_set1_epi16(INT16_MIN));
}

/* Computes 32 bf16 products. Returns false if a rounded fp32 product lies halfway between two bf16
 * values, because such a product does not tell which of these two values is nearer to the exact
 * product. */
INLINE bool decode_pairs(const shape s, bool scale_is_exact, bool whole, const vector_values *v,
                         __m256i bytes, __m512 scale, __m512i *to) {
    const __m512i lower = _mm512_set1_epi32(0xffff);
    __m512i x = bf16_of_codes(v, bytes);
    __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    __m512 odd = _mm512_castsi512_ps(_mm512_andnot_si512(lower, x));
    even = pair_product(s, scale_is_exact, v, even, scale);
    odd = pair_product(s, scale_is_exact, v, odd, scale);
    __m512i low = whole ? _mm512_castps_si512(even) : round_bf16(even);
    __m512i high = whole ? _mm512_castps_si512(odd) : round_bf16(odd);
    *to = choose_bits(lower, _mm512_srli_epi32(low, 16), high);
    return whole || (halfway(even) | halfway(odd)) == 0;
}

/* Decodes 64 codes of 8 bits to bf16. Returns false, without storing anything, if a code is not
 * finite or a product lies halfway between two bf16 values. Only the slow path (decode_chunk)
 * decodes such codes correctly. */
INLINE bool decode_words(const shape s, bool scale_is_exact, bool whole, const vector_values *v,
                         __m512i codes, factor_cursor *cursor, uint8_t *to, bool stream) {
    __m512i special = _mm512_and_si512(_mm512_sub_epi8(codes, v->special_base), v->special_mask);
    __m512i low, high;
    bool known = _mm512_cmplt_epu8_mask(special, v->specials) == 0;
    known &= decode_pairs(s, scale_is_exact, whole, v, _mm512_castsi512_si256(codes),
                          next_factors(cursor), &low);
    known &= decode_pairs(s, scale_is_exact, whole, v, _mm512_extracti64x4_epi64(codes, 1),
                          next_factors(cursor), &high);
    if (!known) return false;
    store_line(to, low, stream);
    store_line(to + 64, high, stream);
    return true;
}

/* Tells whether the exact product of each 8-bit element and its scale is a bf16 value that is
 * normal, zero or NaN, so that no product must be rounded. */
INLINE bool are_whole(const float *scales, int64_t blocks) {
    bool tiny = false;
    for (int64_t i = 0; i < blocks; i++)
        tiny |= scales[i] < 0x1p-96f;
    return !tiny;
}

INLINE void decode_row(const shape s, const bsmm_decode_job *job, const uint8_t *codes,
                       int64_t cols, const float *scales, uint8_t *out) {
    const vector_values v = vector_values_of(job);
    const bool exact = job->scale_is_exact, streams = job->streams && (uintptr_t)out % 64 == 0;
    const int64_t size = s.to_elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint64_t whole = s.bits == 8 ? UINT64_MAX : (1ull << 8 * s.bits) - 1;
    const bool words = s.bits == 8 && s.to_elem == BSMM_ELEM_BF16;
    const bool all_whole = words && s.exact && are_whole(scales, bsmm_ceil_div(cols, job->width));
    factor_cursor cursor = factors_from(scales, cols, job->width);
    int64_t left = cols;
    __m512 y[4];
    for (; left >= CHUNK; left -= CHUNK, codes += CHUNK / 8 * s.bits, out += CHUNK * size) {
        _mm_prefetch((const char *)codes + AHEAD, _MM_HINT_T0);
        factor_cursor ahead = cursor;
        if (words && decode_words(s, exact, all_whole, &v, _mm512_loadu_si512(codes), &ahead, out,
                                  streams)) {
            cursor = ahead;
            continue;
        }
        decode_chunk(s, exact, &v, _mm512_maskz_loadu_epi8(whole, codes), &cursor, y);
        store_chunk(s, out, y, streams);
    }
    if (left == 0) return;
    float last[CHUNK];
    uint64_t bytes = (uint64_t)bsmm_ceil_div(left * s.bits, 8);
    decode_chunk(s, exact, &v, _mm512_maskz_loadu_epi8((1ull << bytes) - 1, codes), &cursor, y);
    store_chunk(s, (uint8_t *)last, y, false);
    memcpy(out, last, (size_t)(left * size));
}

#    include "quantize/decode_body.h"

INLINE void decode_kinds(uint32_t bits, const bsmm_decode_job *job, const uint8_t *codes,
                         int64_t cols, const float *scales, void *to) {
    if (job->is_exact)
        decode_to(bits, true, job, codes, cols, scales, to);
    else
        decode_to(bits, false, job, codes, cols, scales, to);
}

TARGET void bsmm_decode_avx512(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                               const float *scales, void *to) {
    decode_job(job, codes, cols, scales, to);
}

void bsmm_drain_avx512(void) {
    _mm_sfence();
}

#endif
