/* Computes tiny products of f32 by f32 with fp32 FMAs (small_m_tiny.h).
 *
 * The results are bitwise identical to those of cpu_avx2_f32, which packs both operands. Both add
 * one product after another along K, and K of a tiny product is at most one chunk, i.e. a range of
 * K that is summed by itself. Packing divides each row by a power of two, which this function does
 * not do. A power of two changes only exponents, provided that all values and sums stay in the
 * range of normal fp32 numbers. The function therefore accepts only elements that are 0 or have a
 * magnitude of at least 2^-30 and below 2^20. Packing would mark no row of such elements as wide
 * (to be summed in double). */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_tiny.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_tiny_avx512.h"

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { ROWS = BSMM_TINY_ROWS, LANES = BSMM_SMALL_M_LANES };
enum { MOST_K = BSMM_TINY_STEPS * BSMM_SMALL_M_STEP };
enum { LEAST_F32 = (127 - 30) << 23, PAST_F32 = (127 + 20) << 23 };

_Static_assert((int)MOST_K <= (int)BSMM_F32FMA_SHORT_CHUNK, "a tiny product has one chunk");

/* This struct holds the largest and the smallest magnitude of f32 elements, as codes without the
 * sign. Zeros must not count as the smallest magnitude. `least` is therefore the minimum of the
 * unsigned numbers code - 1, where the code 0 becomes the largest unsigned number. */
typedef struct extent {
    __m512i most, least;
} extent;

INLINE void include(extent *e, __m512i elements) {
    __m512i code = _mm512_and_si512(elements, _mm512_set1_epi32(0x7fffffff));
    e->most = _mm512_max_epu32(e->most, code);
    e->least = _mm512_min_epu32(e->least, _mm512_sub_epi32(code, _mm512_set1_epi32(1)));
}

INLINE bool is_usual(const extent *e) {
    return !(_mm512_cmpge_epu32_mask(e->most, _mm512_set1_epi32(PAST_F32)) |
             _mm512_cmplt_epu32_mask(e->least, _mm512_set1_epi32(LEAST_F32 - 1)));
}

/* Copies A to `to`, and sets the rows from A's last row to row `width` to 0. */
INLINE void load_a(const bsmm_operand *a, int width, extent *e, float to[ROWS][MOST_K]) {
    const float *from = a->m.data;
    for (int64_t r = 0; r < a->m.rows; r++, from += a->m.ld)
        for (int64_t k = 0; k < a->m.cols; k += LANES) {
            __m512i elements = _mm512_loadu_si512(from + k);
            include(e, elements);
            _mm512_store_si512(&to[r][k], elements);
        }
    for (int64_t r = a->m.rows; r < width; r++)
        memset(to[r], 0, sizeof to[r]);
}

/* Multiplies A by a panel (16 rows) of B. */
INLINE void multiply_panel(float a[ROWS][MOST_K], const bsmm_tiny_rows *rows, int64_t cols,
                           int width, extent *e, __m512 *acc) {
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        acc[r] = _mm512_setzero_ps();
    for (int64_t k = 0; k < cols; k += 4) {
        __m512i word[4];
        bsmm_tiny_load_words(rows, k / 4, word);
#    pragma GCC unroll 4
        for (int d = 0; d < 4; d++) {
            include(e, word[d]);
#    pragma GCC unroll 16
            for (int r = 0; r < width; r++)
                acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(a[r][k + d]), _mm512_castsi512_ps(word[d]),
                                         acc[r]);
        }
    }
}

/* Multiplies the panels of B (16 rows each) one after another. C may lie in the memory of D, and
 * another function that needs C computes D if an element is unusual. No result may therefore be
 * stored to D before all panels have been computed. */
INLINE bool multiply(const bsmm_product *p, int width) {
    const int64_t count = bsmm_ceil_div(p->b.m.rows, LANES);
    const bool is_plain = bsmm_small_m_tiny_is_plain(p);
    _Alignas(64) float a[ROWS][MOST_K];
    __m512 acc[BSMM_TINY_COLS / LANES][ROWS];
    extent e = {_mm512_setzero_si512(), _mm512_set1_epi32(-1)};
    load_a(&p->a, width, &e, a);
    for (int64_t i = 0; i < count; i++) {
        bsmm_tiny_rows rows;
        __m512 sums[ROWS];
        bsmm_tiny_find_rows(&p->b, i * LANES, bsmm_min_i64(LANES, p->b.m.rows - i * LANES), 32,
                            &rows);
        multiply_panel(a, &rows, p->a.m.cols, width, &e, sums);
        memcpy(acc[i], sums, (size_t)width * sizeof *sums);
    }
    if (!is_usual(&e)) return false;
    for (int64_t i = 0; i < count; i++)
        bsmm_tiny_store(p, is_plain, i * LANES, bsmm_min_i64(LANES, p->b.m.rows - i * LANES), width,
                        acc[i]);
    return true;
}

#    define VARIANT(width)                                                                         \
        TARGET static bool multiply_##width(const bsmm_product *p) {                               \
            return multiply(p, width);                                                             \
        }
VARIANT(4)
VARIANT(8)
VARIANT(12)
VARIANT(16)

bool bsmm_small_m_tiny_f32fma(const bsmm_product *p, const void *context) {
    static bool (*const multiplies[4])(const bsmm_product *) = {multiply_4, multiply_8, multiply_12,
                                                                multiply_16};
    (void)context;
    if (!bsmm_tiny_has_usual_globals(p)) return false;
    return multiplies[bsmm_tiny_width(p) / 4 - 1](p);
}

#else

bool bsmm_small_m_tiny_f32fma(const bsmm_product *p, const void *context) {
    (void)p, (void)context;
    return false;
}

#endif

static bool is_plain_f32(const bsmm_format *f) {
    return f->elem == BSMM_ELEM_F32 && f->scale == BSMM_SCALE_NONE;
}

bool bsmm_small_m_tiny_f32fma_takes(const bsmm_product *p) {
    return is_plain_f32(&p->a.m.format) && is_plain_f32(&p->b.m.format);
}
