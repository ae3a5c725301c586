/* Strip operations by AVX-512.
 *
 * amax:   one register of maxima for each block, then one transposing reduction for all sixteen.
 * encode: 64 values at a time are loaded, meet their factors and are rounded as coder.c does, in
 *         four registers; codes and signs become bytes in one, and packed codes.
 *
 * The last values of a row come through masks or a copy; nothing past them is touched. */
#include "quantize/strip.h"

#if defined(__x86_64__)

#    include "quantize/lanes_avx512.h"

#    include <string.h>

/* ---- the largest magnitude ---- */

/* Lane i: the maximum of v[i]'s lanes. */
INLINE __m512i reduce_all(const __m512i v[BSMM_STRIP_BLOCKS]) {
    __m512i a[8], b[4], c[2];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        b[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        c[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(b[2 * i], b[2 * i + 1], 0xdd));
    return _mm512_max_epu32(_mm512_shuffle_i32x4(c[0], c[1], 0x88),
                            _mm512_shuffle_i32x4(c[0], c[1], 0xdd));
}

INLINE __m512i max_f32(__m512i max, const float *from, int64_t n) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        max = _mm512_max_epu32(max, _mm512_and_si512(_mm512_loadu_si512(from + i), magnitude));
    if (i >= n) return max;
    __m512i last = _mm512_maskz_loadu_epi32(first_lanes(n - i), from + i);
    return _mm512_max_epu32(max, _mm512_and_si512(last, magnitude));
}

/* Of f16 or bf16 codes; `max` holds words. */
INLINE __m512i max_words(__m512i max, const uint16_t *from, int64_t n) {
    const __m512i magnitude = _mm512_set1_epi16(0x7fff);
    int64_t i = 0;
    for (; i + WORDS <= n; i += WORDS)
        max = _mm512_max_epu16(max, _mm512_and_si512(_mm512_loadu_si512(from + i), magnitude));
    if (i >= n) return max;
    __m512i last = _mm512_maskz_loadu_epi16((1u << (n - i)) - 1, from + i);
    return _mm512_max_epu16(max, _mm512_and_si512(last, magnitude));
}

/* The larger of each pair of words, as 32 bits. */
INLINE __m512i larger_words(__m512i words) {
    return _mm512_max_epu16(_mm512_and_si512(words, _mm512_set1_epi32(0xffff)),
                            _mm512_srli_epi32(words, 16));
}

/* memory.c's f16_value: what a NaN carries stays. */
INLINE __m512i f16_bits(__m512i codes) {
    const __m512i special = _mm512_set1_epi32(0x7c00);
    __m512 value = _mm512_castsi512_ps(_mm512_slli_epi32(codes, 13));
    __m512i bits = _mm512_castps_si512(_mm512_mul_ps(value, _mm512_set1_ps(0x1p112f)));
    __mmask16 is_special = _mm512_cmpge_epu32_mask(codes, special);
    return _mm512_mask_or_epi32(bits, is_special, bits, _mm512_set1_epi32(0x7f800000));
}

INLINE __m512i block_max(const bsmm_plain *values, int64_t rows, int64_t c, int64_t n,
                         uint32_t elem) {
    __m512i max = _mm512_setzero_si512();
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = r * values->pitch + c;
        max = elem == BSMM_ELEM_F32 ? max_f32(max, (const float *)values->data + at, n)
                                    : max_words(max, (const uint16_t *)values->data + at, n);
    }
    return elem == BSMM_ELEM_F32 ? max : larger_words(max);
}

INLINE void amax_of(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                    uint32_t elem, uint32_t *amax) {
    __m512i max[BSMM_STRIP_BLOCKS];
    int64_t whole = cols / width;
    for (int64_t i = 0; i < whole; i++)
        max[i] = block_max(values, rows, i * width, width, elem);
    for (int64_t i = whole; i < BSMM_STRIP_BLOCKS; i++)
        max[i] = block_max(values, i == whole ? rows : 0, i * width, cols - i * width, elem);
    __m512i all = reduce_all(max);
    if (elem == BSMM_ELEM_BF16) all = _mm512_slli_epi32(all, 16);
    if (elem == BSMM_ELEM_F16) all = f16_bits(all);
    _mm512_storeu_si512(amax, all);
}

INLINE void amax_by_elem(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                         uint32_t *amax) {
    if (values->elem == BSMM_ELEM_F32)
        amax_of(values, rows, cols, width, BSMM_ELEM_F32, amax);
    else if (values->elem == BSMM_ELEM_BF16)
        amax_of(values, rows, cols, width, BSMM_ELEM_BF16, amax);
    else
        amax_of(values, rows, cols, width, BSMM_ELEM_F16, amax);
}

/* The widths of the usual formats are constants of their own loops. */
TARGET static void amax(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                        uint32_t limit, uint32_t *amax_to) {
    if (limit != UINT32_MAX)
        bsmm_strip_portable.amax(values, rows, cols, width, limit, amax_to);
    else if (rows == 1 && cols == 16 * BSMM_STRIP_BLOCKS && width == 16)
        amax_by_elem(values, 1, 16 * BSMM_STRIP_BLOCKS, 16, amax_to);
    else if (rows == 1 && cols == 32 * BSMM_STRIP_BLOCKS && width == 32)
        amax_by_elem(values, 1, 32 * BSMM_STRIP_BLOCKS, 32, amax_to);
    else
        amax_by_elem(values, rows, cols, width, amax_to);
}

/* ---- elements ---- */

/* A coder's constants in registers. */
typedef struct vector_coder {
    __m512i rebias, min_normal, magic, max_code, shift;
    __m512i nan_code, nan_sign_and, zero_and, zero_or, zero_code_and;
    __m512i sign_bit;   /* of each byte's code */
    __m128i sign_shift; /* from a byte's top bit */
} vector_coder;

INLINE vector_coder vector_coder_of(const bsmm_coder *k, uint32_t bits) {
    int nan_sign_and = k->nan_code && !k->nan_sign ? -1 : 0;
    return (vector_coder){
        .rebias = _mm512_set1_epi32((int)k->rebias),
        .min_normal = _mm512_set1_epi32((int)k->min_normal),
        .magic = _mm512_set1_epi32((int)k->magic),
        .max_code = _mm512_set1_epi32((int)k->max_code),
        .shift = _mm512_set1_epi32((int)k->shift),
        .nan_code = _mm512_set1_epi32((int)k->nan_code),
        .nan_sign_and = _mm512_set1_epi32(nan_sign_and),
        .zero_and = _mm512_set1_epi32((int)k->zero_and),
        .zero_or = _mm512_set1_epi32((int)k->zero_or),
        .zero_code_and = _mm512_set1_epi32((int)k->zero_code_and),
        .sign_bit = _mm512_set1_epi8((char)(1u << (bits - 1))),
        .sign_shift = _mm_cvtsi32_si128(8 - (int)bits),
    };
}

/* coder.c's nearest_even. */
INLINE __m512i nearest_even(const vector_coder *k, __m512i a) {
    __m512i odd = _mm512_and_si512(_mm512_srlv_epi32(a, k->shift), _mm512_set1_epi32(1));
    __m512i sum = _mm512_add_epi32(_mm512_add_epi32(a, k->rebias), odd);
    __m512i normal = _mm512_srlv_epi32(sum, k->shift);
    __m512 aligned = _mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(k->magic));
    __m512i small = _mm512_sub_epi32(_mm512_castps_si512(aligned), k->magic);
    __mmask16 is_small = _mm512_cmplt_epu32_mask(a, k->min_normal);
    return _mm512_min_epu32(_mm512_mask_mov_epi32(normal, is_small, small), k->max_code);
}

/* Codes without their signs, which are the top bits of `signs`. */
typedef struct signed_codes {
    __m512i codes, signs;
} signed_codes;

/* coder.c's rules for zeros and NaN. A NaN's code may hold the sign bit already: fnuz. */
INLINE signed_codes apply_rules(const vector_coder *k, __m512i a, signed_codes c) {
    __mmask16 is_nan = _mm512_cmpgt_epu32_mask(a, _mm512_set1_epi32(0x7f800000));
    __mmask16 is_zero = _mm512_testn_epi32_mask(a, a);
    __mmask16 is_code0 = _mm512_testn_epi32_mask(c.codes, c.codes);
    c.signs = _mm512_mask_and_epi32(c.signs, is_zero, c.signs, k->zero_and);
    c.signs = _mm512_mask_or_epi32(c.signs, is_zero, c.signs, k->zero_or);
    c.signs = _mm512_mask_and_epi32(c.signs, is_code0, c.signs, k->zero_code_and);
    c.signs = _mm512_mask_and_epi32(c.signs, is_nan, c.signs, k->nan_sign_and);
    c.codes = _mm512_mask_mov_epi32(c.codes, is_nan, k->nan_code);
    return c;
}

/* How much has to be seen to: -0 + 0 is 0, and any other sum with 0 changes nothing. */
typedef enum encode_care {
    CARE_NONE, /* no NaN arises, zeros keep their signs */
    CARE_PLUS, /* no NaN arises, -0 becomes +0 */
    CARE_ALL
} encode_care;

INLINE signed_codes codes_of(const vector_coder *k, __m512 values, encode_care care) {
    if (care == CARE_PLUS) values = _mm512_add_ps(values, _mm512_setzero_ps());
    signed_codes c = {.signs = _mm512_castps_si512(values)};
    __m512i a = _mm512_and_si512(c.signs, _mm512_set1_epi32(0x7fffffff));
    c.codes = nearest_even(k, a);
    return care == CARE_ALL ? apply_rules(k, a, c) : c;
}

/* ---- packing ---- */

/* Four times 16 codes as bytes; saturation keeps the signs. Register i's dwords end up as dwords i,
 * 4 + i, 8 + i and 12 + i, which `natural` puts right. */
INLINE __m512i bytes_of(const vector_coder *k, const signed_codes c[4]) {
    const __m512i natural = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i codes = _mm512_packus_epi16(_mm512_packus_epi32(c[0].codes, c[1].codes),
                                        _mm512_packus_epi32(c[2].codes, c[3].codes));
    __m512i signs = _mm512_packs_epi16(_mm512_packs_epi32(c[0].signs, c[1].signs),
                                       _mm512_packs_epi32(c[2].signs, c[3].signs));
    signs = _mm512_srl_epi16(signs, k->sign_shift);
    /* codes | (signs & sign_bit) */
    __m512i bytes = _mm512_ternarylogic_epi32(codes, signs, k->sign_bit, 0xf8);
    return _mm512_permutexvar_epi32(natural, bytes);
}

/* 64 codes of 4 or 6 bits from bytes; the rest of the register is 0. */
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

/* ---- rows ---- */

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

/* The processor's own prefetching stops where strips are read twice. */
INLINE void prefetch_chunk(const uint8_t *from, uint32_t elem) {
    const int64_t ahead = 4096;
    for (int64_t i = 0; i < (elem == BSMM_ELEM_F32 ? 4 : 2); i++)
        _mm_prefetch((const char *)from + ahead + 64 * i, _MM_HINT_T0);
}

/* A NaN keeps its sign whatever the factor is; of two NaNs the compiler's order of factors would
 * decide. */
INLINE __m512 keep_nan(__m512 y, __m512 x) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

INLINE __m512i encode_chunk(const vector_coder *k, const void *from, uint32_t elem,
                            factor_cursor *cursor, bool divide, encode_care care) {
    __m512 x[4];
    signed_codes c[4];
    load_chunk(from, elem, x);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512 factor = next_factor(cursor);
        __m512 y = divide ? _mm512_div_ps(x[i], factor) : _mm512_mul_ps(x[i], factor);
        if (care == CARE_ALL) y = keep_nan(y, x[i]);
        c[i] = codes_of(k, y, care);
    }
    return bytes_of(k, c);
}

INLINE void store_chunk(uint8_t *to, __m512i packed, uint32_t bits) {
    if (bits == 4)
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(packed));
    else
        _mm512_mask_storeu_epi8(to, bits == 6 ? UINT64_MAX >> 16 : UINT64_MAX, packed);
}

/* The first n codes; what completes their group is 0. */
INLINE void store_last(uint8_t *to, __m512i bytes, int64_t n, uint32_t bits) {
    int64_t group = bits == 4 ? 2 : bits == 6 ? 4 : 1;
    int64_t used = bsmm_ceil_div(n, group) * group * bits / 8;
    bytes = _mm512_maskz_mov_epi8((1ull << n) - 1, bytes);
    _mm512_mask_storeu_epi8(to, (1ull << used) - 1, pack(bytes, bits));
}

typedef struct encode_row {
    const void *from;
    uint32_t elem, bits;
    int64_t cols, width;
    const float *factors;
    bool divide;
    uint8_t *to;
} encode_row;

/* `bits` and `elem` are the row's. */
INLINE void encode_all(const bsmm_coder *coder, const encode_row *row, uint32_t bits, uint32_t elem,
                       encode_care care) {
    const vector_coder k = vector_coder_of(coder, bits);
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *from = row->from;
    const bool divide = row->divide;
    uint8_t *to = row->to;
    factor_cursor cursor = factors_from(row->factors, row->cols, row->width);
    int64_t left = row->cols;
    for (; left >= CHUNK; left -= CHUNK, from += CHUNK * bytes, to += CHUNK / 8 * bits) {
        prefetch_chunk(from, elem);
        __m512i codes = encode_chunk(&k, from, elem, &cursor, divide, care);
        store_chunk(to, pack(codes, bits), bits);
    }
    if (left == 0) return;
    float last[CHUNK] = {0};
    memcpy(last, from, (size_t)(left * bytes));
    store_last(to, encode_chunk(&k, last, elem, &cursor, divide, care), left, bits);
}

INLINE void encode_tame(const bsmm_coder *coder, const encode_row *row, uint32_t bits) {
    if (row->elem == BSMM_ELEM_F32)
        encode_all(coder, row, bits, BSMM_ELEM_F32, CARE_NONE);
    else if (row->elem == BSMM_ELEM_BF16)
        encode_all(coder, row, bits, BSMM_ELEM_BF16, CARE_NONE);
    else
        encode_all(coder, row, bits, BSMM_ELEM_F16, CARE_NONE);
}

/* The usual case has a loop for each width and element. */
TARGET static void encode_care_none(const bsmm_coder *coder, const encode_row *row) {
    if (row->bits == 4)
        encode_tame(coder, row, 4);
    else if (row->bits == 6)
        encode_tame(coder, row, 6);
    else
        encode_tame(coder, row, 8);
}

TARGET static void encode_care_plus(const bsmm_coder *coder, const encode_row *row) {
    encode_all(coder, row, row->bits, row->elem, CARE_PLUS);
}

TARGET static void encode_care_all(const bsmm_coder *coder, const encode_row *row) {
    encode_all(coder, row, row->bits, row->elem, CARE_ALL);
}

static encode_care care_of(const bsmm_coder *k, bool tame) {
    bool one_zero = k->zero_code_and == 0;
    if (!tame || one_zero || k->zero_or) return CARE_ALL;
    return k->zero_and ? CARE_NONE : CARE_PLUS;
}

static void encode(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame) {
    bool across = factors && job->width < cols && job->width % LANES;
    if (job->step == BSMM_STEP_COMPARE || job->coder->down || across) {
        bsmm_strip_portable.encode(job, row, r, c, cols, factors, tame);
        return;
    }
    static const float one = 1;
    uint32_t bits = bsmm_elem_row(job->dst->m.format.elem)->bits;
    encode_row all = {.from = row->data,
                      .elem = row->elem,
                      .bits = bits,
                      .cols = cols,
                      .width = job->width,
                      .factors = factors ? factors : &one,
                      .divide = job->step == BSMM_STEP_DIVIDE,
                      .to = (uint8_t *)job->dst->m.data +
                            bsmm_operand_index(job->dst, r, c) * bits / 8};
    static void (*const encoders[])(const bsmm_coder *,
                                    const encode_row *) = {[CARE_NONE] = encode_care_none,
                                                           [CARE_PLUS] = encode_care_plus,
                                                           [CARE_ALL] = encode_care_all};
    encoders[care_of(job->coder, tame)](job->coder, &all);
}

const bsmm_strip_ops bsmm_strip_avx512 = {amax, encode, bsmm_decode_avx512, bsmm_drain_avx512};

#endif
