/* Multiplies any number of rows of A by weights B in e2m1 or e2m3. A vector holds 8 columns of D,
 * i.e. results of 8 rows of B.
 *
 * The kernel reads B as it is stored, 128 elements of K of each row at a time. It transposes and
 * decodes these elements once for all rows of A, and stores them in the L1 cache in the layout of
 * packed units (pack_int8dot.h). Then it multiplies them with the register tile of
 * cpu_avx2_int8dot, which has 4 rows of A and 16 columns of D. */
#include "cpu/small_m/small_m_int8dot_avx2.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_int8dot_loops_avx2.h"

enum { STEP = BSMM_SMALL_M_STEP, NR = BSMM_INT8_NR };

/* Loads 16 bytes of each of 8 rows and transposes them. Lane i of word[d] gets 32-bit word d of row
 * i. */
INLINE void load_words(const uint8_t *b, int64_t pitch, __m256i word[4]) {
    __m256i row[4];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        row[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(b + i * pitch)),
                                         load_16(b + (i + 4) * pitch), 1);
    __m256i low01 = _mm256_unpacklo_epi32(row[0], row[1]);
    __m256i high01 = _mm256_unpackhi_epi32(row[0], row[1]);
    __m256i low23 = _mm256_unpacklo_epi32(row[2], row[3]);
    __m256i high23 = _mm256_unpackhi_epi32(row[2], row[3]);
    word[0] = _mm256_unpacklo_epi64(low01, low23);
    word[1] = _mm256_unpackhi_epi64(low01, low23);
    word[2] = _mm256_unpacklo_epi64(high01, high23);
    word[3] = _mm256_unpackhi_epi64(high01, high23);
}

INLINE void decode_fours(const uint8_t *b, int64_t pitch, __m256i table, __m256i byte[GROUPS]) {
    const __m256i nibble = _mm256_set1_epi8(0xf);
    __m256i word[4];
    load_words(b, pitch, word);
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m256i upper = _mm256_srli_epi16(word[i], 4);
        byte[2 * i] = _mm256_shuffle_epi8(table, _mm256_and_si256(word[i], nibble));
        byte[2 * i + 1] = _mm256_shuffle_epi8(table, _mm256_and_si256(upper, nibble));
    }
}

INLINE void decode_sixes(const uint8_t *b, int64_t pitch, const quarters *t, __m256i byte[GROUPS]) {
    __m256i row[LANES];
#    pragma GCC unroll 8
    for (int i = 0; i < LANES; i++)
        row[i] = look_up(t, read_sixes(b + i * pitch));
    transpose(row, byte);
}

INLINE void decode(const uint8_t *b, int64_t pitch, const quarters *t, bool fours,
                   __m256i byte[GROUPS]) {
    if (fours)
        decode_fours(b, pitch, t->part[0], byte);
    else
        decode_sixes(b, pitch, t, byte);
}

INLINE void store(uint8_t *to, __m256i v) {
    _mm256_store_si256((__m256i *)(void *)to, v);
}

/* Decodes one step (32 elements of K) of 8 rows of B, and its scales. */
INLINE void spread_step(const uint8_t *b, int64_t pitch, const uint8_t *codes, const quarters *t,
                        bool fours, bsmm_int8_scaling scaling, uint8_t *to) {
    const int64_t unit = unit_of(scaling), unit_bytes = BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    __m256i byte[GROUPS];
    decode(b, pitch, t, fours, byte);
#    pragma GCC unroll 2
    for (int64_t u = 0; u < STEP / unit; u++, to += unit_bytes, codes += NR) {
#    pragma GCC unroll 8
        for (int64_t g = 0; g < unit / 4; g++)
            store(to + g * NR * 4, byte[u * unit / 4 + g]);
        store(to + NR * unit, load_scales(codes, scaling));
    }
}

/* Multiplies unit number u of a part of A by a unit of B. The part, at the address `part`, has 64
 * elements of K of each of `width` rows of A. It consists of units of `unit` elements of K. `b`
 * points to the unit of B. The function multiplies `rows` rows of A at a time. */
INLINE void add_unit(const uint8_t *part, int64_t width, int rows, int64_t u, const uint8_t *b,
                     bool fours, int64_t unit, bool wide, float *acc) {
    const bsmm_int8_strides places = {.row = BSMM_INT8_ROW_BYTES(unit),
                                      .odd = fours ? BSMM_INT8_PART / 2 : 4,
                                      .pair = fours ? 4 : 8,
                                      .scale = 4 * BSMM_INT8_PART_UNITS(unit)};
    const uint8_t *a = part + u * unit / (fours ? 2 : 1), *begins = part + BSMM_INT8_PART + 4 * u;
    for (int64_t r = 0; r < width; r += rows, acc += rows * BSMM_SMALL_M_COLUMNS) {
        bsmm_int8_add_unit(a, begins, &places, rows, b, unit, wide, unit == STEP, acc,
                           BSMM_SMALL_M_COLUMNS);
        a += rows * places.row;
        begins += rows * places.row;
    }
}

INLINE void add_units(const uint8_t *a, const uint8_t *b, int64_t width, int rows, int64_t units,
                      int64_t unit, bool fours, bool wide, float *acc) {
    const int64_t part_units = BSMM_INT8_PART_UNITS(unit);
    for (int64_t u = 0; u < units; u++, b += BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B))
        add_unit(a + u / part_units * BSMM_INT8_PART_BYTES(width, unit), width, rows,
                 u % part_units, b, fours, unit, wide, acc);
}

/* Multiplies 128 elements of K (a group of 4 steps). With 4-bit codes, these are 64 bytes of a row
 * of B, a whole cache line. A loop over single steps would read each line four times. If the stride
 * between rows of B is a power of two, the rows map to the same sets of a cache, and a line could
 * be evicted before it is read again. */
INLINE void multiply_group(const bsmm_small_m_span *s, int64_t first, const quarters *t, bool fours,
                           bsmm_int8_scaling scaling, bool wide, bsmm_small_m_later *later) {
    enum { MOST_BYTES = BSMM_SMALL_M_GROUP * 2 * BSMM_INT8_UNIT_BYTES(NR, STEP / 2, BSMM_INT8_B) };
    _Alignas(64) uint8_t spread[MOST_BYTES];
    const int64_t width = ((const bsmm_int8_tables *)s->context)->width;
    const int64_t unit = unit_of(scaling), units = STEP / unit, step_bytes = fours ? 16 : 24;
    const int64_t spread_bytes = units * BSMM_INT8_UNIT_BYTES(NR, unit, BSMM_INT8_B);
    for (int64_t half = 0; half < NR; half += LANES) {
        bsmm_small_m_ask(later, fours ? LANES : LANES * 3 / 2);
        for (int64_t i = 0; i < BSMM_SMALL_M_GROUP; i++)
            spread_step(s->b + half * s->pitch + (first + i) * step_bytes, s->pitch,
                        s->codes + (first + i) * units * NR + half, t, fours, scaling,
                        spread + i * spread_bytes + half * 4);
    }
    add_units(s->a + first / BSMM_INT8_PART_STEPS * BSMM_INT8_PART_BYTES(width, unit), spread,
              width, BSMM_INT8_MR, BSMM_SMALL_M_GROUP * units, unit, fours, wide, s->acc);
}

INLINE uint32_t multiply(const bsmm_small_m_span *s, bool fours, bsmm_int8_scaling scaling,
                         bool wide) {
    const quarters t = quarters_of(((const bsmm_int8_tables *)s->context)->integers);
    const int64_t step_bytes = fours ? 16 : 24, steps = fours ? CHUNK / 16 : CHUNK / 32;
    bsmm_small_m_later later = {0};
    for (int64_t i = 0; i < s->steps; i += BSMM_SMALL_M_GROUP) {
        if (i % steps == 0)
            later =
                bsmm_small_m_follow(s, i * step_bytes, steps * step_bytes, s->steps * step_bytes);
        multiply_group(s, i, &t, fours, scaling, wide, &later);
    }
    return 0;
}

/* Defines one function for each combination of B's element format and kind of scales. If `wide` is
 * true, the function adds 32-bit sums, which the products of two e2m3 operands need. */
#    define VARIANT(name, fours, scaling, wide)                                                    \
        TARGET static uint32_t multiply_##name##_##scaling(const bsmm_small_m_span *s) {           \
            return multiply(s, fours, BSMM_INT8_##scaling, wide);                                  \
        }
#    define VARIANTS(name, fours, wide)                                                            \
        VARIANT(name, fours, EXPONENT, wide)                                                       \
        VARIANT(name, fours, E8M0, wide)                                                           \
        VARIANT(name, fours, E4M3, wide)
#    define ROW(name)                                                                              \
        { multiply_##name##_EXPONENT, multiply_##name##_E8M0, multiply_##name##_E4M3 }

VARIANTS(e2m1, true, false)
VARIANTS(e2m3, false, false)
VARIANTS(wide, false, true)

bsmm_int8_loop *bsmm_int8_column_loop(const bsmm_product *p, bsmm_int8_scaling scaling) {
    static bsmm_int8_loop *const loops[][BSMM_INT8_SCALINGS] = {ROW(e2m1), ROW(e2m3), ROW(wide)};
    return loops[bsmm_small_m_int8_has_fours(p) ? 0 : bsmm_int8_is_wide(p) ? 2 : 1][scaling];
}

/* Multiplies packed panels of B. A panel is packed only if one of its scales is NaN or outside the
 * range from 2^-50 to 2^50. Such panels are rare, so one simple loop serves any number of rows of
 * A. The sums have 32 bits, which suffice for all element formats. */
#    define PACKED(name, unit, fours)                                                              \
        TARGET static void multiply_packed_##name(const uint8_t *a, const uint8_t *b,              \
                                                  int64_t width, int64_t units, float *acc) {      \
            add_units(a, b, width, 1, units, unit, fours, true, acc);                              \
        }

PACKED(value_e2m1, BSMM_INT8_MULTIPLY_UNIT, true)
PACKED(value_e2m3, BSMM_INT8_MULTIPLY_UNIT, false)
PACKED(exponent_e2m1, BSMM_INT8_EXPONENT_UNIT, true)
PACKED(exponent_e2m3, BSMM_INT8_EXPONENT_UNIT, false)

bsmm_int8_packed_loop *bsmm_int8_packed_loop_of(const bsmm_product *p) {
    static bsmm_int8_packed_loop *const loops[2][2] = {
        {multiply_packed_value_e2m3, multiply_packed_value_e2m1},
        {multiply_packed_exponent_e2m3, multiply_packed_exponent_e2m1},
    };
    return loops[bsmm_int8_by_exponent(p)][bsmm_small_m_int8_has_fours(p)];
}

#else

typedef int bsmm_small_m_int8_columns_needs_x86_64;

#endif
