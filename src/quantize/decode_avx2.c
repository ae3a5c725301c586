/* Decodes codes to f32, f16 or bf16 with AVX2. The loop turns 32 codes into four registers of
 * floats, multiplies them by two factors (block scale and second-level scale) and rounds once. For
 * 4-bit codes and a 16-bit result, the loop instead multiplies and rounds only the eight magnitudes
 * of e2m1. It then uses the codes as indices into a table of the results' bytes.
 *
 * A product that is not exact in fp32 is rounded twice, first to fp32 and then to 16 bits. Usually
 * this gives the same result as rounding the product once to 16 bits. It may give another result
 * only if the first rounding gives an fp32 value exactly halfway between two 16-bit values. If that
 * is possible, the loop uses another first rounding, to odd: of the two fp32 values around the
 * product, it takes the one whose last bit is 1. The two roundings then give the same result as
 * one. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/factor_cursor.h"
#    include "quantize/values_avx2.h"

#    include <string.h>

/* AHEAD is the distance in bytes of codes by which the loops prefetch in software. They do so
 * because the output is written by stores that bypass the caches, and such stores make the hardware
 * prefetcher slower. */
enum { AHEAD = 4096 };

/* A product_kind says which product of a value with its two scales is rounded. EXACT: none is, so
 * the only rounding is the conversion to the output format. BY_LEVEL: the product with the block
 * scale is exact, and the product with the second-level scale is rounded. BY_SCALE: there is no
 * second-level scale, and the product with the block scale is rounded. */
typedef enum product_kind { EXACT, BY_LEVEL, BY_SCALE } product_kind;

/* `shape` holds the parameters of a decoding loop that are compile-time constants. Each combination
 * has a compiled loop of its own. */
typedef struct shape {
    uint32_t bits, to_elem;
    product_kind kind;
} shape;

/* Tells whether the values of even columns and of odd columns are in separate registers. Two
 * registers of bf16 results can then be combined without a permutation. */
INLINE bool in_pairs(const shape s) {
    return s.to_elem == BSMM_ELEM_BF16 && s.bits > 4;
}

INLINE void values(const shape s, const vector_values *v, const uint8_t *codes, __m256 x[PARTS]) {
    if (s.bits == 4)
        values4(v, codes, x);
    else if (s.bits == 6)
        values8(v, codes6(codes), false, in_pairs(s), x);
    else
        values8(v, load_bits(codes), true, in_pairs(s), x);
}

INLINE __m256 magnitude(__m256 value) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), value);
}

/* Rounds x * factor to odd. The argument y is the product rounded to nearest. If the exact product
 * is no float, rounding to odd takes the neighboring float whose last bit is 1; a later rounding to
 * 16 bits then equals rounding the exact product once. The function finds the float next to the
 * exact product that is nearer to zero and sets its last bit. If y is larger in magnitude than the
 * product, this float is the one before y; otherwise it is y.
 *
 * An FMA computes the difference between the product and y. The difference is a float, so the FMA
 * is exact unless it underflows; an underflow could round the difference to 0. For a factor below
 * 1, x and y are therefore multiplied by 2^32 first. The multiplication cannot overflow, because x
 * is a multiple of 2^-25 and at most 2^25 (an e5m2 code times an e4m3 scale). The difference cannot
 * underflow: a factor is a multiple of 2^-149, so the difference is a multiple of 2^(32 - 25 -
 * 149), which is above the least float. For a factor of at least 1, the difference is a multiple of
 * 2^(-25 - 23).
 *
 * y may be Inf. If the product is finite, the result is then the largest float, which rounds to Inf
 * in 16 bits. If the product is Inf or NaN, the difference is NaN, and the result is y. */
INLINE __m256 to_odd(__m256 x, __m256 factor, __m256 y) {
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
    __m256 size = magnitude(factor), is_less = _mm256_cmp_ps(size, one, _CMP_LT_OQ);
    __m256 up = _mm256_blendv_ps(one, _mm256_set1_ps(0x1p32f), is_less);
    __m256 large = _mm256_mul_ps(magnitude(x), up), product = _mm256_mul_ps(magnitude(y), up);
    __m256 rest = _mm256_fmsub_ps(large, size, product);
    /* A lane of `above` is -1 if the magnitude of y, the product rounded to fp32, is larger than
     * that of the exact product. Adding -1 to the bits of y gives the next float towards zero. */
    __m256i above = _mm256_castps_si256(_mm256_cmp_ps(rest, zero, _CMP_LT_OQ));
    __m256i below = _mm256_castps_si256(_mm256_cmp_ps(rest, zero, _CMP_GT_OQ));
    __m256i odd = _mm256_srli_epi32(_mm256_or_si256(above, below), 31);
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(y), above);
    return _mm256_castsi256_ps(_mm256_or_si256(bits, odd));
}

/* Tells whether one of n registers has a float that may lie exactly halfway between two 16-bit
 * values. For bf16, the lower 16 bits of such a float are 0x8000. For f16, its lowest 12 bits are
 * zero. A subnormal f16 has fewer mantissa bits, so this test reports some floats that do not lie
 * halfway; that costs time but no accuracy. The value 0 is not reported. */
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

/* Rounds floats to bf16, to nearest even, in the upper 16 bits of each lane. Every NaN here has the
 * same fixed payload, so that the carry of the rounding cannot change its sign or turn it into
 * Inf. */
INLINE __m256 round_bf16(__m256 value) {
    __m256i bits = _mm256_castps_si256(value);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    return _mm256_castsi256_ps(bits);
}

/* Rounds floats to bf16, to nearest, in the upper 16 bits of each lane. No float may lie halfway
 * between two bf16 values. */
INLINE __m256 round_up_bf16(__m256 value) {
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(value), _mm256_set1_epi32(0x8000));
    return _mm256_castsi256_ps(bits);
}

/* Multiplies n registers of elements by their scales. Inexact products become bf16 values, or
 * floats that a later conversion to f16 rounds correctly. */
INLINE void multiply(const shape s, const vector_values *v, int n, const __m256 *x,
                     const __m256 *scales, __m256 *y) {
    __m256 exact[PARTS];
#    pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        exact[i] = s.kind == BY_SCALE ? x[i] : _mm256_mul_ps(x[i], scales[i]);
        y[i] = s.kind == EXACT ? exact[i]
                               : _mm256_mul_ps(exact[i], s.kind == BY_LEVEL ? v->level : scales[i]);
    }
    if (s.kind == EXACT || s.to_elem == BSMM_ELEM_F32) return;
    bool plain = !any_halfway(s.to_elem, y, n), is_bf16 = s.to_elem == BSMM_ELEM_BF16;
    if (plain && !is_bf16) return;
#    pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        if (plain) {
            y[i] = round_up_bf16(y[i]);
            continue;
        }
        __m256 odd = to_odd(exact[i], s.kind == BY_LEVEL ? v->level : scales[i], y[i]);
        y[i] = is_bf16 ? round_bf16(odd) : odd;
    }
}

INLINE void store(uint8_t *to, __m256i values, bool stream) {
    if (stream)
        _mm256_stream_si256((__m256i *)(void *)to, values);
    else
        store_bits(to, values);
}

/* Packs two registers of floats into one register of 16-bit values. For bf16 the floats must
 * already be rounded to bf16. */
INLINE __m256i narrow(const shape s, __m256 low, __m256 high) {
    if (s.to_elem == BSMM_ELEM_F16)
        return _mm256_set_m128i(_mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT),
                                _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
    __m256i first = _mm256_srli_epi32(_mm256_castps_si256(low), 16);
    __m256i second = _mm256_castps_si256(high);
    if (in_pairs(s)) return _mm256_blend_epi16(first, second, 0xaa);
    __m256i words = _mm256_packus_epi32(first, _mm256_srli_epi32(second, 16));
    return _mm256_permute4x64_epi64(words, _MM_SHUFFLE(3, 1, 2, 0));
}

/* These properties of a row select the code path that decodes it. */
typedef struct row_facts {
    /* `rounds` is true if the product of an 8-bit element and its e8m0 or e4m3 scale may be inexact
     * in bf16. The product has at most 8 significant bits, so fp32 always holds it exactly. bf16
     * has 8 significant bits too, and holds it exactly unless it is so small that it is subnormal
     * in bf16. Then it must be rounded. */
    bool rounds;
    /* `one` is true if all columns of each chunk of 32 columns have the same block scale. */
    bool one;
    bool streams;
} row_facts;

/* Returns the block scales of the next 32 columns: *first for columns 0 to 15 and *second for
 * columns 16 to 31. If `one` is set, all 32 columns lie in the same block. */
INLINE void next_factors(factor_cursor *cursor, bool one, __m256 *first, __m256 *second) {
    *first = *second = _mm256_broadcast_ss(cursor->at);
    pass_columns(cursor, one ? CHUNK : WORDS);
    if (one) return;
    *second = _mm256_broadcast_ss(cursor->at);
    pass_columns(cursor, WORDS);
}

INLINE void decode_chunk(const shape s, const vector_values *v, const uint8_t *codes,
                         factor_cursor *cursor, const row_facts *facts, uint8_t *to, bool stream) {
    __m256 x[PARTS], y[PARTS], first, second;
    next_factors(cursor, facts->one, &first, &second);
    const __m256 scales[PARTS] = {first, first, second, second};
    values(s, v, codes, x);
    multiply(s, v, PARTS, x, scales, y);
    if (s.to_elem == BSMM_ELEM_F32) {
#    pragma GCC unroll 4
        for (int i = 0; i < PARTS; i++)
            store(to + 32 * i, _mm256_castps_si256(y[i]), stream);
        return;
    }
    for (int i = 0; facts->rounds && i < PARTS; i++)
        y[i] = round_bf16(y[i]);
    store(to, narrow(s, y[0], y[1]), stream);
    store(to + 32, narrow(s, y[2], y[3]), stream);
}

/* This is a table of the 16-bit results (value times scales) of all sixteen 4-bit codes, split into
 * low and high bytes for the byte shuffle instruction. Each 128-bit half of a register has its own
 * table, because the columns that the two halves decode may have different block scales. */
typedef struct code_tables {
    __m256i low, high;
} code_tables;

/* Makes tables of the products of a block's scale and the magnitudes of all codes, for two blocks:
 * `first` is the scale for the lower 128 bits of the registers, `second` for the upper ones. The
 * products for negative codes are made by flipping the sign bit. That would be wrong for a NaN,
 * which must keep its sign. The function therefore returns false if a product is NaN. This is also
 * the case if the rounded format has no Inf, and rounding has turned an Inf into a NaN. */
INLINE bool code_tables_of(const shape s, const vector_values *v, __m256 first, __m256 second,
                           code_tables *t) {
    const __m256i lows = _mm256_set1_epi64x(0x0e0c0a0806040200), one = _mm256_set1_epi8(1);
    const __m256i signs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, -128, -128, -128, -128, -128, -128, -128, -128));
    const __m256 x[2] = {v->magnitudes, v->magnitudes};
    __m256 y[2];
    multiply(s, v, 2, x, (const __m256[]){first, second}, y);
    __m256i words = narrow(s, y[0], y[1]);
    t->low = _mm256_shuffle_epi8(words, lows);
    t->high = _mm256_shuffle_epi8(words, _mm256_or_si256(lows, one));
    t->high = _mm256_xor_si256(t->high, signs);
    return _mm256_movemask_ps(_mm256_cmp_ps(y[0], y[1], _CMP_UNORD_Q)) == 0;
}

/* Looks up 16-bit results for 32 codes of one byte each. *first receives the results of the first
 * 16 codes, and *second those of the last 16. */
INLINE void look_up(const code_tables *t, __m256i codes, __m256i *first, __m256i *second) {
    __m256i low = _mm256_shuffle_epi8(t->low, codes), high = _mm256_shuffle_epi8(t->high, codes);
    __m256i even = _mm256_unpacklo_epi8(low, high), odd = _mm256_unpackhi_epi8(low, high);
    *first = _mm256_permute2x128_si256(even, odd, 0x20);
    *second = _mm256_permute2x128_si256(even, odd, 0x31);
}

/* Decodes 64 codes by table look-up. Returns false, without storing anything, if a result would be
 * NaN, which the tables cannot hold. */
INLINE bool decode_by_tables(const shape s, const vector_values *v, const uint8_t *codes,
                             factor_cursor *cursor, bool one, uint8_t *to, bool stream) {
    const __m256i mask = _mm256_set1_epi8(0xf);
    /* `first` has the block scales of columns 0 to 15 and 16 to 31, and `second` those of columns
     * 32 to 47 and 48 to 63. */
    __m256 first[2], second[2];
    __m256i x[4], bytes = load_bits(codes), even = _mm256_and_si256(bytes, mask);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    code_tables low, high;
    factor_cursor after = *cursor;
    next_factors(&after, one, &first[0], &first[1]);
    next_factors(&after, one, &second[0], &second[1]);
    bool known = code_tables_of(s, v, first[0], second[0], &low);
    high = low;
    if (!one) known &= code_tables_of(s, v, first[1], second[1], &high);
    if (!known) return false;
    look_up(&low, _mm256_unpacklo_epi8(even, odd), &x[0], &x[2]);
    look_up(&high, _mm256_unpackhi_epi8(even, odd), &x[1], &x[3]);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        store(to + 32 * i, x[i], stream);
    *cursor = after;
    return true;
}

/* Returns true if the product of an 8-bit element and one of the scales may be too small for bf16,
 * whose smallest value is 2^-133. Such a product must be rounded. Only scales below 2^-96 can cause
 * this. Products of elements of at most 6 bits are never too small: the smallest is 2^-131. */
INLINE bool any_tiny(const float *scales, int64_t blocks) {
    bool tiny = false;
    for (int64_t i = 0; i < blocks; i++)
        tiny |= scales[i] < 0x1p-96f;
    return tiny;
}

INLINE row_facts facts_of(const shape s, const bsmm_decode_job *job, int64_t cols,
                          const float *scales, const void *to) {
    bool may_be_tiny = s.to_elem == BSMM_ELEM_BF16 && s.kind == EXACT && s.bits == 8;
    return (row_facts){
        .rounds = may_be_tiny && any_tiny(scales, bsmm_ceil_div(cols, job->width)),
        .one = job->width % CHUNK == 0 || job->width >= cols,
        .streams = job->streams && (uintptr_t)to % 64 == 0,
    };
}

INLINE void decode_row(const shape s, const bsmm_decode_job *job, const uint8_t *codes,
                       int64_t cols, const float *scales, uint8_t *out) {
    const vector_values v = vector_values_of(job);
    const row_facts facts = facts_of(s, job, cols, scales, out);
    const int64_t size = s.to_elem == BSMM_ELEM_F32 ? 4 : 2, bytes = CHUNK / 8 * s.bits;
    factor_cursor cursor = factors_from(scales, cols, job->width);
    int64_t left = cols;
    while (left >= CHUNK) {
        bool tables = s.bits == 4 && s.to_elem != BSMM_ELEM_F32 && left >= 2 * CHUNK;
        int chunks = 1;
        _mm_prefetch((const char *)codes + AHEAD, _MM_HINT_T0);
        if (tables && decode_by_tables(s, &v, codes, &cursor, facts.one, out, facts.streams))
            chunks = 2;
        else
            decode_chunk(s, &v, codes, &cursor, &facts, out, facts.streams);
        left -= chunks * CHUNK, codes += chunks * bytes, out += chunks * CHUNK * size;
    }
    if (left == 0) return;
    uint8_t rest[CHUNK] = {0}, last[CHUNK * sizeof(float)];
    memcpy(rest, codes, (size_t)bsmm_ceil_div(left * s.bits, 8));
    decode_chunk(s, &v, rest, &cursor, &facts, last, false);
    memcpy(out, last, (size_t)(left * size));
}

#    include "quantize/decode_body.h"

INLINE void decode_kinds(uint32_t bits, const bsmm_decode_job *job, const uint8_t *codes,
                         int64_t cols, const float *scales, void *to) {
    if (job->is_exact)
        decode_to(bits, EXACT, job, codes, cols, scales, to);
    else if (job->scale_is_exact)
        decode_to(bits, BY_LEVEL, job, codes, cols, scales, to);
    else
        decode_to(bits, BY_SCALE, job, codes, cols, scales, to);
}

TARGET void bsmm_decode_avx2(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                             const float *scales, void *to) {
    decode_job(job, codes, cols, scales, to);
}

void bsmm_drain_avx2(void) {
    _mm_sfence();
}

#endif
