/* This file packs operands by AVX-512 byte permutes. The code decodes 64 codes of a row at once and
 * transposes 8 rows of 16 groups of 4 bytes in registers.
 *
 * Eight codes of b bits take b bytes. A byte permute moves these bytes into a 64-bit lane, a
 * multishift moves each code to a byte of its own, and a table lookup decodes it. The bits above a
 * code in its byte are arbitrary; a lookup in 64 entries ignores them. Loads are masked to the
 * bytes of the row, so they cannot fault past its end. */
#include "base/cpu.h"
#include "cpu/pack/pack.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_PACK_LANES, RUN = BSMM_PACK_RUN };

/* Lists the indices, in a row's bytes of codes, of the 8 bytes that one 64-bit lane gets. The lane
 * then has the codes 8 * q to 8 * q + 7. Eight codes of `bits` bits fill `bits` bytes, so code 8 *
 * q begins at byte q * bits. If `bits` is below 8, the last of the 8 bytes belong to later codes.
 */
#    define QUAD(q, bits)                                                                          \
        (q) * (bits), (q) * (bits) + 1, (q) * (bits) + 2, (q) * (bits) + 3, (q) * (bits) + 4,      \
            (q) * (bits) + 5, (q) * (bits) + 6, (q) * (bits) + 7
#    define IN_ORDER(bits)                                                                         \
        {                                                                                          \
            QUAD(0, bits), QUAD(1, bits), QUAD(2, bits), QUAD(3, bits), QUAD(4, bits),             \
                QUAD(5, bits), QUAD(6, bits), QUAD(7, bits)                                        \
        }
/* The instruction that unpacks bytes to 16-bit lanes works on each 128 bits of a vector separately.
 * FOR_UNPACKING is an order of 64-bit lanes that makes up for this: if the codes are stored in this
 * order, unpacking the low halves gives codes 0 to 31, and unpacking the high halves gives codes 32
 * to 63. */
#    define FOR_UNPACKING(bits)                                                                    \
        {                                                                                          \
            QUAD(0, bits), QUAD(4, bits), QUAD(1, bits), QUAD(5, bits), QUAD(2, bits),             \
                QUAD(6, bits), QUAD(3, bits), QUAD(7, bits)                                        \
        }

/* These tables of byte positions are indexed by bits / 2 - 2, where bits is the width of a code: 4,
 * 6 or 8. */
static const _Alignas(64) uint8_t in_order[][64] = {IN_ORDER(4), IN_ORDER(6), IN_ORDER(8)};
static const _Alignas(64) uint8_t for_unpacking[][64] = {FOR_UNPACKING(4), FOR_UNPACKING(6),
                                                         FOR_UNPACKING(8)};

/* This struct holds constants with which RUN codes of a row are read. */
typedef struct reader {
    int64_t bits;
    __m512i spread; /* `spread` is the byte permute that moves 8 codes to each 64-bit lane. */
    __m512i shifts; /* `shifts` is the position in bits of each code in its lane. */
} reader;

INLINE reader reader_of(uint32_t bits, const uint8_t order[][64]) {
    reader r = {.bits = bits};
    r.spread = _mm512_load_si512(order[bits / 2 - 2]);
    r.shifts = _mm512_set1_epi64((int64_t)(0x0706050403020100u * bits));
    return r;
}

/* Returns a mask of the lowest n bits; n may be 0 to 64. */
INLINE uint64_t ones(int64_t n) {
    return n ? ~(uint64_t)0 >> (64 - n) : 0;
}

/* Limits n, the number of codes that are left in a row, to the range 0 to RUN. n is negative if a
 * packed unit, i.e. a range of K of a fixed length, extends past the end of K. */
INLINE int64_t clamp_run(int64_t n) {
    return n < 0 ? 0 : n < RUN ? n : RUN;
}

/* Reads codes [k, k + RUN) of a row, one per byte. The row has n codes from k on; the bytes after
 * them are loaded as 0. */
INLINE __m512i read_run(const reader *r, const uint8_t *row, int64_t k, int64_t n) {
    __m512i raw = _mm512_maskz_loadu_epi8(ones((n * r->bits + 7) / 8), row + k / 8 * r->bits);
    return _mm512_multishift_epi64_epi8(r->shifts, _mm512_permutexvar_epi8(r->spread, raw));
}

/* Transposes 8 rows of 64 bytes, in units of 4 bytes (groups). A row has 16 groups. After the
 * transposition, the same group of all 8 rows is adjacent, in 8 lanes. near[j] receives groups j
 * and j + 4, and far[j] receives groups 8 + j and 12 + j. */
INLINE void transpose(const __m512i row[LANES], __m512i near[4], __m512i far[4]) {
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    /* quad[h] has the groups (4 bytes) of rows 4 * h to 4 * h + 3. Each 128 bits hold one group of
     * each of these four rows. */
    __m512i quad[2][4];
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m512i a = _mm512_unpacklo_epi32(row[4 * h], row[4 * h + 1]);
        __m512i b = _mm512_unpackhi_epi32(row[4 * h], row[4 * h + 1]);
        __m512i c = _mm512_unpacklo_epi32(row[4 * h + 2], row[4 * h + 3]);
        __m512i d = _mm512_unpackhi_epi32(row[4 * h + 2], row[4 * h + 3]);
        quad[h][0] = _mm512_unpacklo_epi64(a, c);
        quad[h][1] = _mm512_unpackhi_epi64(a, c);
        quad[h][2] = _mm512_unpacklo_epi64(b, d);
        quad[h][3] = _mm512_unpackhi_epi64(b, d);
    }
#    pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        near[j] = _mm512_permutex2var_epi64(quad[0][j], low, quad[1][j]);
        far[j] = _mm512_permutex2var_epi64(quad[0][j], high, quad[1][j]);
    }
}

INLINE __m256i half(__m512i pair, int h) {
    return h ? _mm512_extracti64x4_epi64(pair, 1) : _mm512_castsi512_si256(pair);
}

INLINE void store_lanes(uint8_t *to, __m256i lanes, __mmask8 there) {
    _mm256_mask_storeu_epi32(to, there, lanes);
}

/* AHEAD is the prefetch distance of the panel that is written, in groups of 4 bytes of each row.
 * The packer writes a panel faster than the hardware prefetcher fetches its cache lines. */
enum { AHEAD = 64 };

/* Stores 8 groups, each of which has a pair of bf16 of each row. The elements are widened to fp32.
 * For each group, the second elements of all rows' pairs are stored first, and then the first
 * elements. */
INLINE void store_widened(uint8_t *to, int64_t pitch, const __m512i pair[4], __mmask8 there) {
#    pragma GCC unroll 8
    for (int g = 0; g < 8; g++, to += pitch) {
        __m256i lanes = half(pair[g % 4], g / 4);
        __m256i odd = _mm256_and_si256(lanes, _mm256_set1_epi32((int32_t)0xffff0000));
        store_lanes(to, odd, there);
        store_lanes(to + pitch / 2, _mm256_slli_epi32(lanes, 16), there);
    }
}

/* Stores 8 groups of 4 bytes of each of 8 rows. A register of `pair` holds two groups: pair[g] has
 * group g of all rows in its lower half, and group g + 4 in its upper half. This is the order in
 * which `transpose` fills near[] and far[]. */
INLINE void store_eight(uint8_t *to, int64_t pitch, const __m512i pair[4], __mmask8 there) {
#    pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        store_lanes(to + g * pitch, half(pair[g % 4], g / 4), there);
        __builtin_prefetch(to + (g + AHEAD) * pitch, 1);
    }
}

INLINE __mmask8 mask_of(int64_t lanes) {
    return (__mmask8)ones(lanes);
}

/* Computes -factor * (sum of the integers of 16 elements of K) for each row, from which the initial
 * value of a unit's integer sum is made. The registers hold 32 elements of K: the first 16 in the
 * lower halves and the last 16 in the upper halves. Partial sums fit 16 bits, because each 16-bit
 * lane adds 8 products of at most 60 * 60. */
INLINE __m512i begins(const __m512i pair[4], const bsmm_pack_begin *begin) {
    const __m512i factor = _mm512_set1_epi8((char)begin->factor);
    __m512i sum = _mm512_maddubs_epi16(factor, pair[0]);
#    pragma GCC unroll 3
    for (int j = 1; j < 4; j++)
        sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(factor, pair[j]));
    return _mm512_madd_epi16(sum, _mm512_set1_epi16(-1));
}

/* Stores 8 groups of 4 integers of each row. A unit is a range of K with one scale per row, and has
 * 4 or 8 groups. After each unit, the function stores for each row the integer at which the row's
 * sum of products begins (bsmm_pack_begin). */
INLINE void store_integers(uint8_t *to, const bsmm_pack_place *at, int64_t unit_groups,
                           int64_t left, const __m512i pair[4], const bsmm_pack_begin *begin) {
    __mmask8 there = mask_of(at->lanes);
    __m512i sums = begins(pair, begin);
    const __m256i plus = _mm256_set1_epi32(begin->plus);
    if (unit_groups == 8) {
        store_eight(to, at->pitch, pair, there);
        __m256i sum = _mm256_add_epi32(half(sums, 0), half(sums, 1));
        if (begin->factor) store_lanes(to + 8 * at->pitch, _mm256_add_epi32(sum, plus), there);
        return;
    }
#    pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        if (4 * h >= left) return;
#    pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            store_lanes(to + g * at->pitch, half(pair[g], h), there);
        if (begin->factor)
            store_lanes(to + 4 * at->pitch, _mm256_add_epi32(half(sums, h), plus), there);
        to += at->unit_bytes;
    }
}

INLINE void pack_integers(const bsmm_pack_codes *c, const int8_t *table,
                          const bsmm_pack_begin *begin, const bsmm_pack_place *at,
                          int64_t unit_groups) {
    const reader r = reader_of(c->bits, in_order);
    const __m512i values = _mm512_loadu_si512(table);
    uint8_t *to = at->to;
    /* In a panel (LANES packed rows), `step` is the number of bytes that 8 groups of 4 integers of
     * each row take. */
    int64_t step = 8 / unit_groups * at->unit_bytes;
    for (int64_t g = 0; g < at->groups; g += 16, to += 2 * step) {
        __m512i row[LANES], near[4], far[4];
        int64_t k = g * 4, n = clamp_run(c->count - k);
#    pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) {
            __m512i codes = read_run(&r, c->row[i], k, n);
            if (n < RUN) codes = _mm512_maskz_mov_epi8(ones(n), codes);
            row[i] = _mm512_permutexvar_epi8(codes, values);
        }
        transpose(row, near, far);
        store_integers(to, at, unit_groups, at->groups - g, near, begin);
        if (g + 8 < at->groups)
            store_integers(to + step, at, unit_groups, at->groups - g - 8, far, begin);
    }
}

TARGET static void integers(const bsmm_pack_codes *c, const int8_t *table,
                            const bsmm_pack_begin *begin, const bsmm_pack_place *at) {
    if (at->unit_groups == 8)
        pack_integers(c, table, begin, at, 8);
    else
        pack_integers(c, table, begin, at, 4);
}

typedef struct decoder {
    reader reader;
    __m512i code_mask;
    __m512i low[4], high[4];
} decoder;

INLINE decoder decoder_of(const bsmm_pack_table *t, uint32_t bits) {
    decoder d = {.reader = reader_of(bits, for_unpacking)};
    d.code_mask = _mm512_set1_epi8((char)((1u << bits) - 1));
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        d.low[i] = _mm512_load_si512(t->low + 64 * i);
        d.high[i] = _mm512_load_si512(t->high + 64 * i);
    }
    return d;
}

INLINE __m512i look_up(const __m512i table[4], __m512i codes, __mmask64 upper) {
    return _mm512_mask_blend_epi8(upper, _mm512_permutex2var_epi8(table[0], codes, table[1]),
                                  _mm512_permutex2var_epi8(table[2], codes, table[3]));
}

INLINE void decode_run(const decoder *d, const uint8_t *row, int64_t k, int64_t n, __m512i to[2]) {
    __m512i codes = _mm512_and_si512(read_run(&d->reader, row, k, n), d->code_mask);
    __mmask64 upper = _mm512_movepi8_mask(codes);
    __m512i low = look_up(d->low, codes, upper), high = look_up(d->high, codes, upper);
    to[0] = _mm512_unpacklo_epi8(low, high);
    to[1] = _mm512_unpackhi_epi8(low, high);
}

INLINE __m512i shift_half(__m512i bf16, int16_t shift) {
    if (shift == BSMM_PACK_NAN) return _mm512_set1_epi16(0x7fc0);
    __m512i exponents = _mm512_and_si512(bf16, _mm512_set1_epi16(0x7f80));
    /* The exponent field of a bf16 number begins at bit 7. The number is normal if this field is 1
     * to 0xfe. */
    __mmask32 normal = _mm512_cmplt_epu16_mask(_mm512_sub_epi16(exponents, _mm512_set1_epi16(0x80)),
                                               _mm512_set1_epi16(0x7f00));
    return _mm512_mask_add_epi16(bf16, normal, bf16, _mm512_set1_epi16(shift));
}

INLINE __m256i multiply_16(__m256i bf16, float factor) {
    __m512 value = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
    __m512i bits = _mm512_castps_si512(_mm512_mul_ps(value, _mm512_set1_ps(factor)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}

INLINE __m512i multiply_half(__m512i bf16, const float *factors) {
    __m256i first = multiply_16(half(bf16, 0), factors[0]);
    return _mm512_inserti64x4(_mm512_castsi256_si512(first), multiply_16(half(bf16, 1), factors[1]),
                              1);
}

/* Scales 32 consecutive bf16 elements of row number `lane`, beginning with element k along K. If
 * s->shifts is not NULL, one power of two multiplies all 32 elements: its exponent is added to
 * theirs. If s->factors is not NULL, each 16 elements are multiplied by one factor. Elements from
 * number n on lie past the end of K and become 0, even if their factor is NaN. */
INLINE __m512i scale_half(const bsmm_pack_scaling *s, __m512i bf16, int lane, int64_t k,
                          int64_t n) {
    if (s->shifts) bf16 = shift_half(bf16, s->shifts[lane][k / 32]);
    if (s->factors) bf16 = multiply_half(bf16, s->factors[lane] + k / 16);
    return n >= 32 ? bf16 : _mm512_maskz_mov_epi16((__mmask32)ones(n > 0 ? n : 0), bf16);
}

/* Loads 16-bit codes, which need no lookup because they are bf16. */
INLINE void load_run(const uint8_t *row, int64_t k, int64_t n, __m512i to[2]) {
    const uint16_t *from = (const uint16_t *)(const void *)row + k;
    to[0] = _mm512_maskz_loadu_epi16((__mmask32)ones(n), from);
    to[1] = _mm512_maskz_loadu_epi16((__mmask32)(ones(n) >> 32), from + 32);
}

INLINE void store_halves(const bsmm_pack_place *at, int64_t group, const __m512i row[LANES]) {
    __m512i near[4], far[4];
    uint8_t *to =
        at->to + group / at->unit_groups * at->unit_bytes + group % at->unit_groups * at->pitch;
    __mmask8 there = mask_of(at->lanes);
    transpose(row, near, far);
    if (at->widened) {
        store_widened(to, at->pitch, near, there);
        store_widened(to + 8 * at->pitch, at->pitch, far, there);
        return;
    }
    store_eight(to, at->pitch, near, there);
    store_eight(to + 8 * at->pitch, at->pitch, far, there);
}

INLINE void pack_halves(const bsmm_pack_codes *c, const decoder *d, const bsmm_pack_scaling *s,
                        const bsmm_pack_place *at) {
    for (int64_t g = 0; g < at->groups; g += RUN / 2) {
        __m512i first[LANES], second[LANES];
        int64_t k = g * 2, n = clamp_run(c->count - k);
#    pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) {
            __m512i run[2];
            if (d)
                decode_run(d, c->row[i], k, n, run);
            else
                load_run(c->row[i], k, n, run);
            first[i] = scale_half(s, run[0], i, k, n);
            second[i] = scale_half(s, run[1], i, k + 32, n - 32);
        }
        store_halves(at, g, first);
        if (g + 16 < at->groups) store_halves(at, g + 16, second);
    }
}

TARGET static void halves(const bsmm_pack_codes *c, const bsmm_pack_table *t,
                          const bsmm_pack_scaling *scaling, const bsmm_pack_place *at) {
    if (c->bits == 16) {
        pack_halves(c, NULL, scaling, at);
        return;
    }
    const decoder d = decoder_of(t, c->bits);
    pack_halves(c, &d, scaling, at);
}

/* Returns the smallest of 32 16-bit values, none of which may be negative. */
INLINE int16_t least_of(__m512i words) {
    __m256i x = _mm256_min_epi16(half(words, 0), half(words, 1));
    __m128i y = _mm_min_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return (int16_t)_mm_extract_epi16(_mm_minpos_epu16(y), 0);
}

TARGET static void extent(const uint16_t *codes, int64_t n, int16_t *largest, int16_t *smallest) {
    __m512i most = _mm512_setzero_si512(), least = _mm512_set1_epi16(INT16_MAX);
    for (int64_t k = 0; k < n; k += 32) {
        __m512i magnitude = _mm512_and_si512(
            _mm512_maskz_loadu_epi16((__mmask32)ones(n - k < 32 ? n - k : 32), codes + k),
            _mm512_set1_epi16(0x7fff));
        __mmask32 finite = _mm512_cmplt_epi16_mask(magnitude, _mm512_set1_epi16(0x7f80));
        __mmask32 nonzero = _mm512_mask_test_epi16_mask(finite, magnitude, magnitude);
        most = _mm512_mask_max_epi16(most, finite, most, magnitude);
        least = _mm512_mask_min_epi16(least, nonzero, least, magnitude);
    }
    const __m512i mirror = _mm512_set1_epi16(INT16_MAX);
    *largest = (int16_t)(INT16_MAX - least_of(_mm512_sub_epi16(mirror, most)));
    *smallest = least_of(least);
}

TARGET static void words(const int32_t (*from)[BSMM_PACK_STEPS], int64_t count, int64_t lanes,
                         uint8_t *to, int64_t pitch) {
    __mmask8 there = mask_of(lanes);
    for (int64_t i = 0; i < count; i += 16, to += 16 * pitch) {
        __m512i row[LANES], pair[2][4];
        __mmask16 left = (__mmask16)ones(count - i < 16 ? count - i : 16);
#    pragma GCC unroll 8
        for (int lane = 0; lane < LANES; lane++)
            row[lane] = _mm512_maskz_loadu_epi32(left, from[lane] + i);
        transpose(row, pair[0], pair[1]);
#    pragma GCC unroll 16
        for (int g = 0; g < 16; g++)
            if (i + g < count)
                store_lanes(to + g * pitch, half(pair[g / 8][g % 4], g % 8 / 4), there);
    }
}

const bsmm_pack_isa *bsmm_pack_avx512(void) {
    static const bsmm_pack_isa isa = {
        .columns = bsmm_pack_avx512_columns,
        .integers = integers,
        .halves = halves,
        .words = words,
        .extent = extent,
        .floats = bsmm_pack_avx2_floats,
        .reach = bsmm_pack_avx2_reach,
        .exponents = bsmm_pack_avx512_exponents,
    };
    return bsmm_cpu_features() & BSMM_CPU_AVX512_VBMI ? &isa : NULL;
}

#else

const bsmm_pack_isa *bsmm_pack_avx512(void) {
    return NULL;
}

#endif
