/* Computes tiny products of e2m1 by e2m1 with integer dot products (small_m_tiny.h). A scale unit
 * is 16 or 32 elements of K with one scale in each row. The products of a unit are summed exactly
 * as integers, and one fp32 FMA multiplies this sum by the scales and adds it to the result.
 * cpu_avx512_int8dot_small_m does the same, so the results are bitwise identical. */
#include "cpu/small_m/small_m_int8dot.h"
#include "cpu/small_m/small_m_tiny.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_tiny_avx512.h"

#    define TARGET                                                                                 \
        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { ROWS = BSMM_TINY_ROWS, STEPS = BSMM_TINY_STEPS, LANES = BSMM_SMALL_M_LANES };
enum { STEP_BYTES = 16 }; /* STEP_BYTES is the number of bytes of 32 e2m1 elements. */

/* This struct holds the integers of A. In each step of 32 elements of K, a row has four words of
 * the even elements and four words of the odd ones. A step has one scale unit, or two. `begin` has
 * the initial values of the integer sums, in four entries for each step and row. Entry 0 is for the
 * step's first scale unit, and entry 2 is for the second one. Entries 1 and 3 are not used. */
typedef struct tile {
    _Alignas(64) int32_t even[STEPS][ROWS][4], odd[STEPS][ROWS][4], begin[STEPS][ROWS][4];
    _Alignas(64) int32_t scales[2 * STEPS][ROWS];
} tile;

/* Loads the codes of four rows of A. If fewer than four rows are left, the last row is loaded again
 * in place of the missing ones. */
INLINE __m512i load_four(const bsmm_operand *o, int64_t row, int64_t step) {
    const uint8_t *data = (const uint8_t *)o->m.data + step * STEP_BYTES;
    const int64_t pitch = o->m.ld / 2, last = o->m.rows - 1;
    __m512i v = _mm512_castsi128_si512(
        _mm_loadu_si128((const __m128i *)(const void *)(data + bsmm_min_i64(row, last) * pitch)));
    v = _mm512_inserti32x4(
        v,
        _mm_loadu_si128(
            (const __m128i *)(const void *)(data + bsmm_min_i64(row + 1, last) * pitch)),
        1);
    v = _mm512_inserti32x4(
        v,
        _mm_loadu_si128(
            (const __m128i *)(const void *)(data + bsmm_min_i64(row + 2, last) * pitch)),
        2);
    return _mm512_inserti32x4(
        v,
        _mm_loadu_si128(
            (const __m128i *)(const void *)(data + bsmm_min_i64(row + 3, last) * pitch)),
        3);
}

INLINE void load_a(const bsmm_product *p, int width, bool e4m3, tile *to) {
    const bsmm_pack_table *t = bsmm_pack_table_of(BSMM_ELEM_E2M1);
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(const void *)t->a));
    const __m512i nibble = _mm512_set1_epi8(15), factor = _mm512_set1_epi8((char)t->largest);
    for (int64_t step = 0; step < p->a.m.cols / BSMM_SMALL_M_STEP; step++)
#    pragma GCC unroll 4
        for (int row = 0; row < width; row += 4) {
            __m512i codes = load_four(&p->a, row, step);
            __m512i even = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble));
            __m512i odd =
                _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble));
            __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), factor, even);
            sum = _mm512_dpbusd_epi32(sum, factor, odd);
            sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
            if (!e4m3) sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
            _mm512_store_si512(to->even[step][row], even);
            _mm512_store_si512(to->odd[step][row], odd);
            _mm512_store_si512(to->begin[step][row], _mm512_sub_epi32(_mm512_setzero_si512(), sum));
        }
}

/* Converts e4m3 codes without sign to fp32, multiplied by 2^-8: their bits are moved to the
 * positions of f16. */
INLINE __m512 values_of_e4m3(__m128i codes) {
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 7));
}

/* The integers of both operands are twice the elements, so A's scales are divided by 4. e8m0 scales
 * are kept as exponents, without the bias of fp32. e4m3 scales are read as f16, which gives 2^-8 of
 * their values in each operand. A's scales are multiplied by 2^16 to compensate for it. */
INLINE void load_a_scales(const bsmm_tiny_codes *codes, int64_t units, bool e4m3, tile *to) {
    for (int64_t i = 0; i < units; i++) {
        __m128i code = bsmm_tiny_codes_of(codes, i);
        __m512i exponents = _mm512_slli_epi32(
            _mm512_sub_epi32(_mm512_cvtepu8_epi32(code), _mm512_set1_epi32(127 + 2)), 23);
        __m512 values = _mm512_mul_ps(values_of_e4m3(code), _mm512_set1_ps(0x1p14f));
        _mm512_store_si512(to->scales[i], e4m3 ? _mm512_castps_si512(values) : exponents);
    }
}

/* Adds the products of one scale unit (16 or 32 elements of K) to the accumulators. Eight elements
 * of K of B are in two registers: byte[2 * g] has the even ones, and byte[2 * g + 1] has the odd
 * ones. The same eight elements of a row of A are in word first + g of a->even and of a->odd. The
 * unit has `count` such words. */
INLINE void add_unit(const tile *a, const __m512i *byte, __m128i codes, int64_t step, int64_t unit,
                     int first, int count, int width, bool e4m3, __m512 *acc) {
    const __m512i exponents = _mm512_slli_epi32(_mm512_cvtepu8_epi32(codes), 23);
    const __m512 values = values_of_e4m3(codes);
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++) {
        __m512i sum = _mm512_set1_epi32(a->begin[step][r][first]), odd = _mm512_setzero_si512();
#    pragma GCC unroll 4
        for (int g = 0; g < count; g++) {
            sum = _mm512_dpbusd_epi32(sum, byte[2 * g],
                                      _mm512_set1_epi32(a->even[step][r][first + g]));
            odd = _mm512_dpbusd_epi32(odd, byte[2 * g + 1],
                                      _mm512_set1_epi32(a->odd[step][r][first + g]));
        }
        __m512 total = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, odd));
        __m512i scale = _mm512_set1_epi32(a->scales[unit][r]);
        __m512 product = e4m3 ? _mm512_mul_ps(_mm512_castsi512_ps(scale), values)
                              : _mm512_castsi512_ps(_mm512_add_epi32(scale, exponents));
        acc[r] = _mm512_fmadd_ps(total, product, acc[r]);
    }
}

INLINE void multiply_panel(const tile *a, const bsmm_tiny_rows *b, const bsmm_tiny_codes *codes,
                           int64_t steps, __m512i table, int width, bool e4m3, __m512 *acc) {
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        acc[r] = _mm512_setzero_ps();
    for (int64_t step = 0; step < steps; step++) {
        __m512i word[4], byte[8];
        bsmm_tiny_load_words(b, step, word);
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            byte[2 * i] = _mm512_permutexvar_epi8(word[i], table);
            byte[2 * i + 1] = _mm512_permutexvar_epi8(_mm512_srli_epi16(word[i], 4), table);
        }
        if (!e4m3) {
            add_unit(a, byte, bsmm_tiny_codes_of(codes, step), step, step, 0, 4, width, false, acc);
            continue;
        }
        add_unit(a, byte, bsmm_tiny_codes_of(codes, 2 * step), step, 2 * step, 0, 2, width, true,
                 acc);
        add_unit(a, byte + 4, bsmm_tiny_codes_of(codes, 2 * step + 1), step, 2 * step + 1, 2, 2,
                 width, true, acc);
    }
}

/* Loads the scale codes of `rows` rows. Returns false if a scale is outside the range of the
 * multiply loop. e8m0 scales must be between 2^-50 and 2^50, as in packing. e4m3 scales must have
 * no sign and must not be NaN. */
INLINE bool load_usual_codes(const bsmm_operand *o, int64_t row, int64_t rows, bool e4m3,
                             bsmm_tiny_codes *to) {
    return bsmm_tiny_load_codes(o, row, rows, e4m3 ? 0 : 127 - 50, e4m3 ? 0x7e : 127 + 50, to);
}

INLINE bool multiply(const bsmm_product *p, const void *context, int width, bool e4m3) {
    const int64_t steps = p->a.m.cols / BSMM_SMALL_M_STEP;
    const __m512i table = _mm512_load_si512(context);
    const bool is_plain = bsmm_small_m_tiny_is_plain(p);
    bsmm_tiny_codes codes[BSMM_TINY_COLS / LANES], a_codes;
    tile a;
    if (!load_usual_codes(&p->a, 0, p->a.m.rows, e4m3, &a_codes)) return false;
    for (int64_t col = 0; col < p->b.m.rows; col += LANES)
        if (!load_usual_codes(&p->b, col, bsmm_min_i64(LANES, p->b.m.rows - col), e4m3,
                              &codes[col / LANES]))
            return false;
    load_a(p, width, e4m3, &a);
    load_a_scales(&a_codes, e4m3 ? 2 * steps : steps, e4m3, &a);
    for (int64_t col = 0; col < p->b.m.rows; col += LANES) {
        __m512 acc[ROWS];
        bsmm_tiny_rows b;
        int64_t cols = bsmm_min_i64(LANES, p->b.m.rows - col);
        bsmm_tiny_find_rows(&p->b, col, cols, 4, &b);
        multiply_panel(&a, &b, &codes[col / LANES], steps, table, width, e4m3, acc);
        bsmm_tiny_store(p, is_plain, col, cols, width, acc);
    }
    return true;
}

#    define VARIANT(width, name, e4m3)                                                             \
        TARGET static bool multiply_##name##_##width(const bsmm_product *p, const void *context) { \
            return multiply(p, context, width, e4m3);                                              \
        }
VARIANT(4, e8m0, false)
VARIANT(8, e8m0, false)
VARIANT(12, e8m0, false)
VARIANT(16, e8m0, false)
VARIANT(4, e4m3, true)
VARIANT(8, e4m3, true)
VARIANT(12, e4m3, true)
VARIANT(16, e4m3, true)

bool bsmm_small_m_tiny_int8dot(const bsmm_product *p, const void *context) {
    static bool (*const multiplies[2][4])(const bsmm_product *, const void *) = {
        {multiply_e8m0_4, multiply_e8m0_8, multiply_e8m0_12, multiply_e8m0_16},
        {multiply_e4m3_4, multiply_e4m3_8, multiply_e4m3_12, multiply_e4m3_16},
    };
    if (!bsmm_tiny_has_usual_globals(p)) return false;
    bool e4m3 = p->b.m.format.scale == BSMM_SCALE_E4M3;
    return multiplies[e4m3][bsmm_tiny_width(p) / 4 - 1](p, context);
}

#else

bool bsmm_small_m_tiny_int8dot(const bsmm_product *p, const void *context) {
    (void)p, (void)context;
    return false;
}

#endif

static bool is_four_with(const bsmm_format *f, uint32_t scale, uint32_t block) {
    return f->elem == BSMM_ELEM_E2M1 && f->scale == scale && f->block_cols == block;
}

bool bsmm_small_m_tiny_int8dot_takes(const bsmm_product *p) {
    const bsmm_format *a = &p->a.m.format, *b = &p->b.m.format;
    return (is_four_with(a, BSMM_SCALE_E8M0, 32) && is_four_with(b, BSMM_SCALE_E8M0, 32)) ||
           (is_four_with(a, BSMM_SCALE_E4M3, 16) && is_four_with(b, BSMM_SCALE_E4M3, 16));
}
