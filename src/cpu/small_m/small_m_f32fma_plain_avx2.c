/* Multiplies few rows of A by weights B in f32 or bf16 without scales, as they are stored, and by
 * compact f16 weights (16 rows of B side by side).
 *
 * The loop takes one step (32 elements of K) of a panel of B (16 rows) at a time and writes it to a
 * buffer in L1, as fp32 in the order [element of K][row of the panel]. Then it multiplies the
 * buffer by each row of the tile of A. Weights of form compact in f32 already have this order, so
 * the loop reads them where they are.
 *
 * Other kernels pack B first. Packing divides each row of f32 and bf16 weights by a power of two,
 * so that no product is subnormal in fp32. The loop in this file does not divide. It takes only
 * panels in which each element is 0 or has a magnitude from 2^SMALLEST to below 2^LARGEST. Panels
 * with other elements must be packed, also those with Inf or NaN. In a panel that the loop takes,
 * all products are far from the ends of fp32's range (small_m_f32fma_scales_avx2.c), so its sums
 * differ from those of a packed panel only by a power of two and have the same rounding errors. */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_f32fma.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

#    define TARGET __attribute__((target("avx2,fma,f16c")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum {
    LANES = BSMM_SMALL_M_LANES,
    GROUP = BSMM_SMALL_M_F32FMA_GROUP,
    STEP = BSMM_SMALL_M_STEP,
    PANELS = BSMM_SMALL_M_PANELS,
    LINE = 64, /* LINE is the number of bytes in a cache line. */
    /* CHUNK is the number of steps (32 elements of K) along a row of B that are prefetched
     * together. */
    CHUNK = 8,
    SEGMENT_STEPS = BSMM_F32FMA_SEGMENT_UNIT / STEP,
    MOST_SUMS = 12, /* MOST_SUMS is the largest number of accumulators in registers. */
};

/* Holds the largest and the smallest magnitude of the elements of a panel, as fp32 codes without
 * the sign. Zeros must not count as the smallest magnitude. `least` is therefore the minimum of the
 * unsigned numbers code - 1, where the code 0 becomes the largest unsigned number. */
typedef struct extent {
    __m256i most, least;
} extent;

INLINE void include(extent *e, __m256 elements) {
    __m256i code = _mm256_and_si256(_mm256_castps_si256(elements), _mm256_set1_epi32(0x7fffffff));
    e->most = _mm256_max_epu32(e->most, code);
    e->least = _mm256_min_epu32(e->least, _mm256_add_epi32(code, _mm256_set1_epi32(-1)));
}

/* Returns true if the panel has an element that the loop cannot multiply. */
INLINE bool is_unusual(const extent *e) {
#    define CODE_OF_POWER(exponent) _mm256_set1_epi32((((exponent) + 127) << 23) - 1)
    const __m256i most = CODE_OF_POWER(BSMM_SMALL_M_F32FMA_LARGEST);
    const __m256i least = CODE_OF_POWER(BSMM_SMALL_M_F32FMA_SMALLEST);
    __m256i below = _mm256_cmpeq_epi32(_mm256_max_epu32(e->most, most), most);
    __m256i above = _mm256_cmpeq_epi32(_mm256_min_epu32(e->least, least), least);
    return _mm256_movemask_epi8(_mm256_and_si256(below, above)) != -1;
}

INLINE __m256 load_words(const uint8_t *from) {
    return _mm256_loadu_ps((const float *)(const void *)from);
}

/* Transposes 8 words of 4 rows, which lie `pitch` bytes apart. word[w] becomes word w of the 4 rows
 * in its lower half, and word w + 4 of the 4 rows in its upper half. The functions below read whole
 * cache lines of few rows at a time. If the stride between rows is a power of two, all rows map to
 * the same sets of a cache, and lines would be evicted before a second read. */
INLINE void transpose_words(const uint8_t *b, int64_t pitch, __m256 word[4]) {
    __m256 row[4];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        row[i] = load_words(b + i * pitch);
    __m256 low01 = _mm256_unpacklo_ps(row[0], row[1]), high01 = _mm256_unpackhi_ps(row[0], row[1]);
    __m256 low23 = _mm256_unpacklo_ps(row[2], row[3]), high23 = _mm256_unpackhi_ps(row[2], row[3]);
    word[0] = _mm256_shuffle_ps(low01, low23, 0x44);
    word[1] = _mm256_shuffle_ps(low01, low23, 0xee);
    word[2] = _mm256_shuffle_ps(high01, high23, 0x44);
    word[3] = _mm256_shuffle_ps(high01, high23, 0xee);
}

/* Stores the lower half of a vector at `to`, and the upper half `apart` elements of K later. */
INLINE void store_halves(float *to, int64_t apart, __m256 elements) {
    _mm_store_ps(to, _mm256_castps256_ps128(elements));
    _mm_store_ps(to + apart * LANES, _mm256_extractf128_ps(elements, 1));
}

/* A fill function writes one step (32 elements of K) of a panel of B to the buffer `to`, as fp32 in
 * the order [element of K][row of the panel], and includes the elements in *e. It returns where the
 * elements are: `to`, or `b` itself if they already have this order. The functions for compact
 * weights do not use `pitch`. *later tells which lines the functions for other weights prefetch. */
typedef const float *fill(const uint8_t *b, int64_t pitch, float *to, extent *e,
                          bsmm_small_m_later *later);

TARGET static const float *fill_f32(const uint8_t *b, int64_t pitch, float *to, extent *e,
                                    bsmm_small_m_later *later) {
    extent all = *e;
    for (int64_t row = 0; row < LANES; row += 4)
#    pragma GCC unroll 4
        for (int64_t k = 0; k < STEP; k += 8) {
            __m256 word[4];
            bsmm_small_m_ask(later, 2);
            transpose_words(b + row * pitch + 4 * k, pitch, word);
#    pragma GCC unroll 4
            for (int w = 0; w < 4; w++) {
                include(&all, word[w]);
                store_halves(to + (k + w) * LANES + row, 4, word[w]);
            }
        }
    *e = all;
    return to;
}

TARGET static const float *take_f32(const uint8_t *b, int64_t pitch, float *to, extent *e,
                                    bsmm_small_m_later *later) {
    extent all = *e;
    (void)pitch, (void)to, (void)later;
#    pragma GCC unroll 4
    for (int64_t i = 0; i < STEP * LANES; i += GROUP)
        include(&all, load_words(b + 4 * i));
    *e = all;
    return (const float *)(const void *)b;
}

/* Widens pairs of bf16 elements, and includes both elements in *e. A pair is one 32-bit word. The
 * elements of smaller K become pair[0]. */
INLINE void widen_bf16(extent *e, __m256 words, __m256 pair[2]) {
    const __m256i odd = _mm256_set1_epi32((int)0xffff0000);
    pair[0] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
    pair[1] = _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(words), odd));
    include(e, pair[0]);
    include(e, pair[1]);
}

TARGET static const float *fill_bf16(const uint8_t *b, int64_t pitch, float *to, extent *e,
                                     bsmm_small_m_later *later) {
    extent all = *e;
    for (int64_t row = 0; row < LANES; row += 4)
#    pragma GCC unroll 2
        for (int64_t k = 0; k < STEP; k += 16) {
            __m256 word[4], pair[2];
            bsmm_small_m_ask(later, 2);
            transpose_words(b + row * pitch + 2 * k, pitch, word);
#    pragma GCC unroll 4
            for (int w = 0; w < 4; w++) {
                widen_bf16(&all, word[w], pair);
                store_halves(to + (k + 2 * w) * LANES + row, 8, pair[0]);
                store_halves(to + (k + 2 * w + 1) * LANES + row, 8, pair[1]);
            }
        }
    *e = all;
    return to;
}

TARGET static const float *take_bf16(const uint8_t *b, int64_t pitch, float *to, extent *e,
                                     bsmm_small_m_later *later) {
    extent all = *e;
    (void)pitch, (void)later;
#    pragma GCC unroll 2
    for (int64_t k = 0; k < STEP; k += 2, b += LINE)
        for (int64_t row = 0; row < LANES; row += GROUP) {
            __m256 pair[2];
            widen_bf16(&all, load_words(b + 4 * row), pair);
            _mm256_store_ps(to + k * LANES + row, pair[0]);
            _mm256_store_ps(to + (k + 1) * LANES + row, pair[1]);
        }
    *e = all;
    return to;
}

INLINE __m256 widen_f16(__m256i halves, int part) {
    return _mm256_cvtph_ps(part ? _mm256_extracti128_si256(halves, 1)
                                : _mm256_castsi256_si128(halves));
}

/* f16's range is so small that no element of it is unusual, so *e is not used. A vector of 4 rows
 * and 2 elements of K is widened at once. */
TARGET static const float *fill_f16(const uint8_t *b, int64_t pitch, float *to, extent *e,
                                    bsmm_small_m_later *later) {
    (void)e;
    for (int64_t row = 0; row < LANES; row += 4)
#    pragma GCC unroll 2
        for (int64_t k = 0; k < STEP; k += 16) {
            __m256i from[4], two[4];
            bsmm_small_m_ask(later, 2);
#    pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                from[i] = _mm256_castps_si256(load_words(b + (row + i) * pitch + 2 * k));
#    pragma GCC unroll 2
            for (int i = 0; i < 2; i++) {
                two[i] = _mm256_unpacklo_epi16(from[2 * i], from[2 * i + 1]);
                two[2 + i] = _mm256_unpackhi_epi16(from[2 * i], from[2 * i + 1]);
            }
#    pragma GCC unroll 4
            for (int w = 0; w < 4; w++) {
                const __m256i *at = two + w / 2 * 2;
                __m256i four = w % 2 ? _mm256_unpackhi_epi32(at[0], at[1])
                                     : _mm256_unpacklo_epi32(at[0], at[1]);
                float *column = to + (k + 2 * w) * LANES + row;
                store_halves(column, 1, widen_f16(four, 0));
                store_halves(column + 8 * LANES, 1, widen_f16(four, 1));
            }
        }
    return to;
}

/* Loads 16 bytes from `low` and 16 bytes from `high`. */
INLINE __m256i load_both(const uint8_t *low, const uint8_t *high) {
    return _mm256_castps_si256(
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)(const void *)low)),
                             _mm_loadu_ps((const float *)(const void *)high), 1));
}

/* Compact weights have pairs of elements of 16 rows side by side. The instruction packus, which
 * takes the lower 16 bits of each word, interleaves its operands by halves. The operands are
 * therefore loaded by halves too. */
TARGET static const float *take_f16(const uint8_t *b, int64_t pitch, float *to, extent *e,
                                    bsmm_small_m_later *later) {
    const __m256i even = _mm256_set1_epi32(0xffff);
    (void)pitch, (void)e, (void)later;
#    pragma GCC unroll 2
    for (int64_t k = 0; k < STEP; k += 2, b += LINE) {
        __m256i first = load_both(b, b + 32), second = load_both(b + 16, b + 48);
        __m256i pair[2] = {
            _mm256_packus_epi32(_mm256_and_si256(first, even), _mm256_and_si256(second, even)),
            _mm256_packus_epi32(_mm256_srli_epi32(first, 16), _mm256_srli_epi32(second, 16))};
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm256_store_ps(to + k * LANES + i * GROUP, widen_f16(pair[i / 2], i % 2));
    }
    return to;
}

/* This struct has one step (32 elements of K) of one or a few panels of B, and the tile of A that
 * multiplies it. */
typedef struct step {
    /* `b` points to the fp32 elements of each panel, in the order [element of K][row]. */
    const float *b[PANELS];
    const float *a; /* `a` holds the elements of A in the order [element of K][row of A]. */
    int64_t width;
    /* A chunk is a range of K that is summed by itself. `sums` holds the sums of an incomplete
     * chunk, with `pitch` floats for each row of A. If `begins` is true, this step is the first one
     * of a chunk, and its sums begin with 0. */
    float *sums;
    int64_t pitch;
    bool begins;
} step;

/* Multiplies one step by `rows` rows of A, from row `first` on. */
INLINE void add_rows(const step *x, int64_t first, int rows, int panels) {
    const int groups = panels * LANES / GROUP;
    float *at = x->sums + first * x->pitch;
    const float *a = x->a + first;
    __m256 sum[MOST_SUMS];
#    pragma GCC unroll 12
    for (int i = 0; i < rows * groups; i++)
        sum[i] = x->begins ? _mm256_setzero_ps()
                           : _mm256_loadu_ps(at + i / groups * x->pitch + i % groups * GROUP);
#    pragma GCC unroll 2
    for (int64_t k = 0; k < STEP; k++, a += x->width) {
        __m256 column[MOST_SUMS];
#    pragma GCC unroll 8
        for (int g = 0; g < groups; g++)
            column[g] = _mm256_loadu_ps(x->b[g / 2] + k * LANES + g % 2 * GROUP);
#    pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            __m256 element = _mm256_set1_ps(a[r]);
#    pragma GCC unroll 8
            for (int g = 0; g < groups; g++)
                sum[r * groups + g] = _mm256_fmadd_ps(element, column[g], sum[r * groups + g]);
        }
    }
#    pragma GCC unroll 12
    for (int i = 0; i < rows * groups; i++)
        _mm256_storeu_ps(at + i / groups * x->pitch + i % groups * GROUP, sum[i]);
}

/* Expands X(rows, panels, first, second, third) for each number of rows that a tile of A can have,
 * in ascending order. The rows are multiplied in up to three parts, of `first`, `second` and
 * `third` rows. With 8 accumulators or more, i.e. 4 rows of A by 2 vectors of B, the processor need
 * not wait for the result of one FMA before it starts the next one. */
#    define EACH_WIDTH(X)                                                                          \
        X(1, 4, 1, 0, 0)                                                                           \
        X(2, 2, 2, 0, 0)                                                                           \
        X(4, 1, 4, 0, 0)                                                                           \
        X(5, 1, 5, 0, 0)                                                                           \
        X(6, 1, 6, 0, 0)                                                                           \
        X(8, 1, 4, 4, 0)                                                                           \
        X(9, 1, 5, 4, 0)                                                                           \
        X(10, 1, 5, 5, 0)                                                                          \
        X(12, 1, 6, 6, 0)                                                                          \
        X(14, 1, 5, 5, 4)                                                                          \
        X(16, 1, 6, 5, 5)

#    define VARIANT(rows, panels, first, second, third)                                            \
        TARGET static void add_##rows(const step *x) {                                             \
            add_rows(x, 0, first, panels);                                                         \
            if (second) add_rows(x, first, second, panels);                                        \
            if (third) add_rows(x, first + second, third, panels);                                 \
        }
#    define WIDTH(rows, ...)             rows,
#    define PANELS_OF(rows, panels, ...) panels,
#    define ADD(rows, ...)               add_##rows,
EACH_WIDTH(VARIANT)

static const int64_t widths[] = {EACH_WIDTH(WIDTH)};
static const int64_t panels_of[] = {EACH_WIDTH(PANELS_OF)};
static void (*const adds[])(const step *) = {EACH_WIDTH(ADD)};

static int tile_of(const bsmm_product *p) {
    return bsmm_small_m_choose_width(p, widths, BSMM_COUNT(widths), 3);
}

int64_t bsmm_small_m_f32fma_plain_width(const bsmm_product *p) {
    return widths[tile_of(p)];
}

int64_t bsmm_small_m_f32fma_plain_panels(const bsmm_product *p) {
    return panels_of[tile_of(p)];
}

/* `loops` holds the functions and sizes that were chosen for a product. The plan stores this
 * struct, and the multiply function reads it. */
typedef struct loops {
    fill *fill[2]; /* `fill` has the functions for weights as stored [0] and compact ones [1]. */
    void (*add)(const step *x);
    int64_t width, panels;
    int64_t row_bytes; /* `row_bytes` is the number of bytes of one row of B in a step. */
    bool by_segment, is_f16;
} loops;

_Static_assert(sizeof(loops) <= BSMM_SMALL_M_CONTEXT_BYTES, "loops are a context");

void bsmm_small_m_f32fma_plain_make(const bsmm_product *p, void *context) {
    uint32_t elem = p->b.m.format.elem;
    int tile = tile_of(p);
    loops l = {.fill = {fill_f32, take_f32},
               .add = adds[tile],
               .width = widths[tile],
               .panels = panels_of[tile],
               .row_bytes = STEP * bsmm_elem_row(elem)->bits / 8,
               .by_segment = bsmm_f32fma_by_segment(p),
               .is_f16 = elem == BSMM_ELEM_F16};
    if (elem == BSMM_ELEM_BF16) l.fill[0] = fill_bf16, l.fill[1] = take_bf16;
    if (elem == BSMM_ELEM_F16) l.fill[0] = fill_f16, l.fill[1] = take_f16;
    memcpy(context, &l, sizeof l);
}

/* Adds the sums of a chunk (a range of K that is summed by itself) to D's accumulators. If
 * `a_scales` is not NULL, the chunk is a segment of 128 elements of K, and its sums are multiplied
 * by A's scales first. */
INLINE void add_chunk(const bsmm_small_m_span *s, const loops *l, const step *x,
                      const float *a_scales) {
    for (int64_t r = 0; r < l->width; r++)
        for (int64_t c = 0; c < l->panels * LANES; c += GROUP) {
            float *at = s->acc + r * BSMM_SMALL_M_COLUMNS + c;
            __m256 sum = _mm256_loadu_ps(x->sums + r * x->pitch + c);
            if (a_scales) sum = _mm256_mul_ps(sum, _mm256_set1_ps(a_scales[r]));
            _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), sum));
        }
}

/* Prefetches one step of a panel of compact weights, in which the 16 rows are stored together. */
INLINE void prefetch_strip(const bsmm_small_m_span *s, const loops *l, int64_t i, int64_t panel) {
    int64_t bytes = LANES * l->row_bytes, at = i * bytes + s->lead, end = s->row_steps * bytes;
    const uint8_t *from = (at < end ? s->b + at : s->next + (at - end)) + panel * s->panel_pitch;
    for (int64_t line = 0; line < bytes; line += LINE)
        __builtin_prefetch(from + line, 0, 2);
}

TARGET uint32_t bsmm_small_m_f32fma_plain(const bsmm_small_m_span *s) {
    const loops *l = s->context;
    const int64_t unit = l->by_segment ? BSMM_F32FMA_SEGMENT_UNIT : BSMM_F32FMA_FOLDED_UNIT;
    const int64_t unit_bytes = BSMM_F32FMA_UNIT_BYTES(l->width, unit), unit_steps = unit / STEP;
    const int64_t chunk = l->by_segment ? SEGMENT_STEPS : s->chunk_steps;
    const int64_t stride = s->compact ? LANES * l->row_bytes : l->row_bytes;
    _Alignas(64) float buffer[PANELS][STEP * LANES];
    float sums[BSMM_SMALL_M_WIDTH * LANES];
    const extent none = {_mm256_setzero_si256(), _mm256_set1_epi32(-1)};
    extent extents[PANELS] = {none, none, none, none};
    bsmm_small_m_later later = {0};
    step x = {.width = l->width, .sums = s->part, .pitch = BSMM_SMALL_M_COLUMNS};
    if (l->by_segment) x.sums = sums, x.pitch = l->panels * LANES;
    for (int64_t i = 0, done = s->first; i < s->steps; i++) {
        const uint8_t *a = s->a + i / unit_steps * unit_bytes;
        if (!s->compact && i % CHUNK == 0)
            later = bsmm_small_m_follow(s, i * stride, CHUNK * stride, s->row_steps * stride);
        for (int64_t p = 0; p < l->panels; p++) {
            if (s->compact) prefetch_strip(s, l, i, p);
            x.b[p] = l->fill[s->compact](s->b + p * s->panel_pitch + i * stride, s->pitch,
                                         buffer[p], &extents[p], &later);
        }
        x.a = (const float *)(const void *)a + i % unit_steps * STEP * l->width;
        x.begins = done == 0;
        l->add(&x);
        bool ends = ++done == chunk || (s->ends && i + 1 == s->steps);
        if (!ends) continue;
        add_chunk(s, l, &x,
                  l->by_segment ? (const float *)(const void *)a + unit * l->width : NULL);
        done = 0;
    }
    uint32_t unusual = 0;
    for (int64_t p = 0; p < l->panels && !l->is_f16; p++)
        unusual |= (uint32_t)is_unusual(&extents[p]) << p;
    return unusual;
}

#else

typedef int bsmm_small_m_f32fma_plain_needs_x86_64;

#endif
