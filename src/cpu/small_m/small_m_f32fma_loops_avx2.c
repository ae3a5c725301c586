/* Multiplies few rows of A by weights that are read as they are stored, one batch of K (64 or 128
 * elements) at a time. A batch of codes is decoded to f16 values, called halves, which are stored
 * in L1 with 8 rows of B side by side. The halves are then converted to fp32 and multiplied by A in
 * the order of K. Up to four rows of A share a conversion.
 *
 * For 4-bit and 8-bit codes, a batch is a whole cache line of each row of B and is read at once. If
 * the stride between rows is a power of two, the rows map to the same sets of a cache, and a line
 * would be evicted before a second read. Later batches are prefetched row by row, several cache
 * lines of each row. */
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
    /* PART is the number of elements of K that are multiplied with one scale per row. */
    PART = 16,
    MOST_PARTS = 8, /* MOST_PARTS is the largest number of parts (PART elements of K) in a batch. */
    /* CHUNK is the number of batches along a row of B that are prefetched at once. A batch has 64
     * or 128 elements. */
    CHUNK = 8,
    MOST_GROUPS = BSMM_SMALL_M_PANELS * LANES / GROUP,
    /* AT_ONCE is the number of vectors of 8 columns that are loaded at once. The number of
     * registers limits it. */
    AT_ONCE = 4,
    TILES = 3,
};

_Static_assert(MOST_GROUPS % AT_ONCE == 0, "add_columns would add columns past the last");

/* This struct has a batch of decoded elements and the tile of A that multiplies the batch. A batch
 * is 64 or 128 elements of K of each row of B. The decoded elements are f16 values, so the code
 * calls them halves. */
typedef struct batch {
    /* `halves` holds the decoded elements of B of this batch as f16 values. It has one group of 8
     * rows of B after another. In a group, the 8 elements of the rows for one index along K lie
     * side by side. The indices along K do not come in ascending order; bsmm_small_m_f32fma_spread
     * gives their order. */
    const uint8_t *halves;
    const float *a; /* `a` holds elements of A in the order [K of the batch][row of A]. */
    /* If e8m0 scales multiply the accumulators (scaling SUMS), `codes` has the codes of the powers
     * of two by which the accumulators are multiplied. */
    const uint8_t *codes;
    int64_t scale_pitch;
    /* If the loop multiplies decoded elements by their scales (scaling ELEMENTS), `scales` holds
     * one scale for each 16 elements of K of each row of B. The order is [16 elements of K][group
     * of 8 rows of B][row of the group]. */
    const float *scales;
    int64_t width;
    float *sums; /* `sums` holds accumulators in the order [row of A][pitch]. */
    int64_t pitch;
    /* A batch is the elements of K that are decoded at a time, and a chunk is a range of K that is
     * summed by itself. If `begins` is true, this batch is the first one of a chunk, and its sums
     * begin with 0. */
    bool begins;
    /* A chunk is a range of K that is summed by itself. If this batch is the last one of a chunk,
     * `totals` points to D's accumulators, in the order [row of A][BSMM_SMALL_M_COLUMNS], and the
     * sum of the chunk is added to them. Otherwise `totals` is NULL. The sum so far then stays in
     * `sums`, and the next batch continues it. */
    float *totals;
    /* D's accumulators are multiplied by factors before the sums of a chunk (a range of K that is
     * summed by itself) are added to them. If e8m0 scales multiply the accumulators (scaling SUMS),
     * `total_codes` has the codes of these factors. leave_steps in small_m_f32fma_scales_avx2.c
     * computes them. */
    const uint8_t *total_codes;
} batch;

/* Returns the offset in bytes, in a decoded batch, of the first element of part number `part`. A
 * part is PART elements of K. The batch holds elements of a group of 8 rows of B as f16 values, in
 * vectors of 32 bytes. The lower 16 bytes of a vector hold one element of K of the 8 rows. The
 * upper 16 bytes hold the element of K that is `run` elements further, of the same rows. */
INLINE int64_t place_of(int64_t part, int run) {
    int64_t k = part * PART;
    return k / (2 * run) * (2 * run * GROUP * 2) + k / run % 2 * 16 + k % run * 32;
}

/* Returns the factors, i.e. powers of two, of group g of 8 rows of B. A factor's code is its
 * exponent plus 127. */
INLINE __m256 factor_of(const uint8_t *codes, int64_t scale_pitch, int g) {
    codes += g / 2 * scale_pitch + g % 2 * GROUP;
    __m256i factor = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)codes));
    return _mm256_castsi256_ps(_mm256_slli_epi32(factor, 23));
}

/* The loop does not multiply the elements of a block by the block's scale, but keeps the
 * accumulators divided by this scale. When the loop goes on to the next block of K, this function
 * multiplies the accumulators by (scale of the block before / scale of the next block). The
 * quotient is a power of two, and its code is stored in place of the next block's scale. */
INLINE void move_sums(const batch *x, int rows, int groups, int64_t part, __m256 *sum) {
#    pragma GCC unroll 8
    for (int g = 0; g < groups; g++) {
        __m256 factor = factor_of(x->codes + part / 2 * LANES, x->scale_pitch, g);
#    pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            sum[r * groups + g] = _mm256_mul_ps(sum[r * groups + g], factor);
    }
}

INLINE void load_sums(const batch *x, int64_t first, int rows, int groups, __m256 *sum) {
    const float *at = x->sums + first * x->pitch;
#    pragma GCC unroll 8
    for (int i = 0; i < rows * groups; i++)
        sum[i] = x->begins ? _mm256_setzero_ps()
                           : _mm256_loadu_ps(at + i / groups * x->pitch + i % groups * GROUP);
}

INLINE void store_sums(const batch *x, int64_t first, int rows, int groups, const __m256 *sum) {
    float *at = x->sums + first * x->pitch;
#    pragma GCC unroll 8
    for (int i = 0; i < rows * groups; i++)
        _mm256_storeu_ps(at + i / groups * x->pitch + i % groups * GROUP, sum[i]);
}

/* Adds the sums of a chunk, i.e. of a range of K that is summed by itself, to D's accumulators. If
 * the kernel multiplies sums by e8m0 scales, the accumulators are kept divided by the current
 * scale, which is a power of two. Where the scale has changed, each accumulator is first multiplied
 * by the quotient of the old and the new scale. This is exact, so the FMA rounds only the sum. */
INLINE void add_chunk(const batch *x, int64_t first, int rows, int groups,
                      bsmm_small_m_f32fma_scaling scaling, const __m256 *sum) {
#    pragma GCC unroll 8
    for (int g = 0; g < groups; g++) {
        __m256 factor = _mm256_set1_ps(1);
        if (scaling == BSMM_SMALL_M_F32FMA_SUMS)
            factor = factor_of(x->total_codes, x->scale_pitch, g);
#    pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            float *at = x->totals + (first + r) * BSMM_SMALL_M_COLUMNS + g * GROUP;
            _mm256_storeu_ps(at, _mm256_fmadd_ps(_mm256_loadu_ps(at), factor, sum[r * groups + g]));
        }
    }
}

/* Multiplies `count` vectors of B by one element of each row of A, and adds the products to `sum`.
 * A vector has one element of each of 8 rows of B, which make 8 columns of D. `first` is the index
 * of the first vector. */
INLINE void add_columns(const uint8_t *b, const float *a, const float *scales, int rows, int groups,
                        int first, int count, int run, bsmm_small_m_f32fma_scaling scaling,
                        __m256 *sum) {
    __m256 column[AT_ONCE];
#    pragma GCC unroll 4
    for (int g = 0; g < count; g++) {
        const uint8_t *at = b + (first + g) * BSMM_SMALL_M_F32FMA_GROUP_BYTES(run);
        column[g] = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)at));
        if (scaling == BSMM_SMALL_M_F32FMA_ELEMENTS)
            column[g] = _mm256_mul_ps(column[g], _mm256_load_ps(scales + (first + g) * GROUP));
    }
#    pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        __m256 element = _mm256_set1_ps(a[r]);
#    pragma GCC unroll 4
        for (int g = 0; g < count; g++) {
            __m256 *at = &sum[r * groups + first + g];
            *at = _mm256_fmadd_ps(element, column[g], *at);
        }
    }
}

INLINE void add_part(const batch *x, const float *a, int rows, int groups, int run,
                     bsmm_small_m_f32fma_scaling scaling, int64_t part, __m256 *sum) {
    const uint8_t *b = x->halves + place_of(part, run);
    const float *scales = x->scales + part * groups * GROUP;
    const int count = groups < AT_ONCE ? groups : AT_ONCE;
#    pragma GCC unroll 4
    for (int i = 0; i < PART; i++, b += 32, a += x->width)
#    pragma GCC unroll 2
        for (int first = 0; first < groups; first += count)
            add_columns(b, a, scales, rows, groups, first, count, run, scaling, sum);
}

/* Multiplies a batch (64 or 128 elements of K of each row of B), which was decoded before, by the
 * tile of A. The function takes `rows` rows of A at a time, so that the 8 accumulators stay in
 * registers. */
INLINE void add_batch(const batch *x, int rows, int groups, int run,
                      bsmm_small_m_f32fma_scaling scaling) {
    for (int64_t first = 0; first < x->width; first += rows) {
        __m256 sum[8];
        load_sums(x, first, rows, groups, sum);
        for (int64_t q = 0; q < BSMM_SMALL_M_F32FMA_BATCH(run) / PART; q++) {
            if (scaling == BSMM_SMALL_M_F32FMA_SUMS && q % 2 == 0)
                move_sums(x, rows, groups, q, sum);
            add_part(x, x->a + first + q * PART * x->width, rows, groups, run, scaling, q, sum);
        }
        if (x->totals)
            add_chunk(x, first, rows, groups, scaling, sum);
        else
            store_sums(x, first, rows, groups, sum);
    }
}

/* Defines one function for each combination of three things: the number of rows of A, the number of
 * adjacent elements of K in a run (32 for 4-bit codes, else 16), and the way to apply scales. */
#    define VARIANT(rows, groups, run, scaling)                                                    \
        TARGET static void add_##rows##_##run##_##scaling(const batch *x) {                        \
            add_batch(x, rows, groups, run, BSMM_SMALL_M_F32FMA_##scaling);                        \
        }
#    define VARIANTS(run, scaling)                                                                 \
        VARIANT(1, 8, run, scaling) VARIANT(2, 4, run, scaling) VARIANT(4, 2, run, scaling)
#    define ROW(run, scaling)                                                                      \
        { add_1_##run##_##scaling, add_2_##run##_##scaling, add_4_##run##_##scaling }
#    define SCALINGS(run)                                                                          \
        {                                                                                          \
            [BSMM_SMALL_M_F32FMA_SUMS] = ROW(run, SUMS),                                           \
            [BSMM_SMALL_M_F32FMA_ELEMENTS] = ROW(run, ELEMENTS),                                   \
            [BSMM_SMALL_M_F32FMA_NONE] = ROW(run, NONE)                                            \
        }

VARIANTS(16, SUMS)
VARIANTS(16, ELEMENTS)
VARIANTS(16, NONE)
VARIANTS(32, SUMS)
VARIANTS(32, ELEMENTS)
VARIANTS(32, NONE)

static void (*const adds[2][BSMM_SMALL_M_F32FMA_SCALINGS][TILES])(const batch *) = {SCALINGS(16),
                                                                                    SCALINGS(32)};

/* `loops` holds the functions and sizes that were chosen for a product. The plan stores this
 * struct, and the multiply function reads it. */
typedef struct loops {
    bsmm_small_m_f32fma_halves halves;
    bsmm_small_m_f32fma_spread *spread;
    void (*add)(const batch *x);
    int64_t width, groups;
    /* A batch is the elements of K that are decoded at a time. `batch` is their number, and
     * `row_bytes` is the number of bytes of one row of B in a batch. */
    int64_t batch, row_bytes;
    uint32_t scale; /* `scale` is the scale format of B. */
    bool by_segment, by_elements;
} loops;

_Static_assert(sizeof(loops) <= BSMM_SMALL_M_CONTEXT_BYTES, "loops are a context");

static int tile_of(int64_t width) {
    return width == 1 ? 0 : width == 2 ? 1 : 2;
}

int64_t bsmm_small_m_f32fma_width(const bsmm_product *p) {
    static const int64_t widths[] = {1, 2, 4, 8, 12, 16};
    return widths[bsmm_small_m_choose_width(p, widths, BSMM_COUNT(widths), 3)];
}

int64_t bsmm_small_m_f32fma_panels(int64_t width) {
    return 4 >> tile_of(width);
}

void bsmm_small_m_f32fma_make(const bsmm_product *p, void *context) {
    const bsmm_format *f = &p->b.m.format;
    uint32_t bits = bsmm_elem_row(f->elem)->bits;
    bsmm_small_m_f32fma_scaling scaling = bsmm_small_m_f32fma_scaling_of(p);
    int64_t width = bsmm_small_m_f32fma_width(p);
    loops l = {.halves = *bsmm_small_m_f32fma_halves_of(f->elem), .scale = f->scale};
    l.spread = bsmm_small_m_f32fma_spread_of(bits);
    l.add = adds[bits == 4][scaling][tile_of(width)];
    l.width = width;
    l.groups = bsmm_small_m_f32fma_panels(width) * LANES / GROUP;
    l.batch = bits == 4 ? BSMM_SMALL_M_F32FMA_BATCH(32) : BSMM_SMALL_M_F32FMA_BATCH(16);
    l.row_bytes = l.batch * bits / 8;
    l.by_segment = bsmm_f32fma_by_segment(p);
    l.by_elements = scaling == BSMM_SMALL_M_F32FMA_ELEMENTS;
    memcpy(context, &l, sizeof l);
}

/* Converts 8 scale codes, one for each of 8 rows of B, to fp32 numbers. An e4m3 code is converted
 * like an f16 code, which gives 2^-8 times the scale; the row's factor corrects this. An e8m0 code
 * becomes the exponent field of an fp32 number. */
INLINE __m256 scales_of(const uint8_t *codes, bool e4m3) {
    __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)codes);
    if (e4m3) return _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(v), 7));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(v), 23));
}

INLINE void take_scales(const loops *l, const uint8_t *codes, int64_t pitch, float *to) {
    bool e4m3 = l->scale == BSMM_SCALE_E4M3;
    for (int64_t q = 0; q < l->batch / PART; q++)
        for (int64_t g = 0; g < l->groups; g++, to += GROUP)
            _mm256_store_ps(
                to, scales_of(codes + g / 2 * pitch + (e4m3 ? q : q / 2) * LANES + g % 2 * GROUP,
                              e4m3));
}

/* Multiplies the sums of a segment (128 elements of K) by A's scale and then by B's scale, as
 * engine_f32fma_body.h does, and adds them to D's accumulators. */
INLINE void add_segment(const bsmm_small_m_span *s, const loops *l, int64_t segment,
                        const float *a_scales, const float *sums) {
    for (int64_t r = 0; r < l->width; r++)
        for (int64_t g = 0; g < l->groups; g++, sums += GROUP) {
            float *at = s->acc + r * BSMM_SMALL_M_COLUMNS + g * GROUP;
            __m256 column = _mm256_set1_ps(1);
            if (s->scales)
                column = _mm256_loadu_ps(s->scales + g / 2 * s->scale_pitch + segment * LANES +
                                         g % 2 * GROUP);
            __m256 sum = _mm256_mul_ps(_mm256_loadu_ps(sums), _mm256_set1_ps(a_scales[r]));
            _mm256_storeu_ps(at, _mm256_fmadd_ps(sum, column, _mm256_loadu_ps(at)));
        }
}

/* `space` holds buffers for the multiplication of one span, i.e. of one or a few panels of B (16
 * rows each) over a range of K. */
typedef struct space {
    _Alignas(64) uint8_t halves[MOST_GROUPS * BSMM_SMALL_M_F32FMA_GROUP_BYTES(32)];
    _Alignas(32) float scales[MOST_PARTS * MOST_GROUPS * GROUP];
    /* `sums` holds the sums over a segment (128 elements of K), for the rows of a tile of A and the
     * panels (16 rows of B) that are multiplied at a time. The array has a fixed size. It suffices
     * for every tile: with more rows of A, fewer panels are multiplied at a time. */
    float sums[BSMM_SMALL_M_WIDTH * 2 * GROUP];
    bsmm_small_m_f32fma_seen codes[BSMM_SMALL_M_PANELS];
    bsmm_small_m_later next;
} space;

/* Decodes batch number i along K to f16 values (halves). A batch is l->batch elements of K. Once in
 * CHUNK batches, the function also chooses the addresses to prefetch. */
INLINE void spread_batch(const bsmm_small_m_span *s, const loops *l, int64_t i, space *w) {
    if (i % CHUNK == 0)
        w->next = bsmm_small_m_follow(s, i * l->row_bytes, CHUNK * l->row_bytes,
                                      s->row_steps * BSMM_SMALL_M_STEP / l->batch * l->row_bytes);
    for (int64_t g = 0; g < l->groups; g++)
        l->spread(s->b + i * l->row_bytes + g * GROUP * s->pitch, s->pitch, &l->halves,
                  w->halves + g * GROUP * 2 * l->batch, &w->next, &w->codes[g / 2]);
}

/* Multiplies one or a few panels of B (16 rows each) over a range of K by the tile of A. Neither A
 * nor B has fp32 scales. Each chunk of K is summed by itself in s->part. At the end of a chunk, its
 * sum is added to D's accumulators in s->acc. If the range ends inside a chunk, the sum stays in
 * s->part, and the call for the next range continues it. */
INLINE void multiply_folded(const bsmm_small_m_span *s, const loops *l, space *w) {
    const int64_t step_codes = l->scale == BSMM_SCALE_E4M3 ? 2 * LANES : LANES;
    const int64_t batch_steps = l->batch / BSMM_SMALL_M_STEP;
    batch x = {.halves = w->halves,
               .a = (const float *)(const void *)s->a,
               .codes = s->codes,
               .scale_pitch = s->scale_pitch,
               .scales = w->scales,
               .width = l->width,
               .sums = s->part,
               .pitch = BSMM_SMALL_M_COLUMNS};
    int64_t done = s->first, count = s->steps / batch_steps;
    x.total_codes = s->codes - s->first * step_codes;
    for (int64_t i = 0; i < count; i++) {
        x.begins = done == 0;
        if (x.begins) x.total_codes = x.codes;
        done += batch_steps;
        x.totals = done == s->chunk_steps || (s->ends && i + 1 == count) ? s->acc : NULL;
        if (x.totals) done = 0;
        spread_batch(s, l, i, w);
        if (l->by_elements) take_scales(l, x.codes, s->scale_pitch, w->scales);
        l->add(&x);
        x.a += l->batch * l->width;
        x.codes += batch_steps * step_codes;
    }
}

INLINE void multiply_segments(const bsmm_small_m_span *s, const loops *l, space *w) {
    const int64_t segment_k = BSMM_F32FMA_SEGMENT_UNIT;
    const int64_t unit_bytes = BSMM_F32FMA_UNIT_BYTES(l->width, segment_k);
    const int64_t step_codes = l->scale == BSMM_SCALE_E4M3 ? 2 * LANES : LANES;
    batch x = {.halves = w->halves,
               .scales = w->scales,
               .width = l->width,
               .sums = w->sums,
               .pitch = l->groups * GROUP};
    for (int64_t i = 0; i < s->steps * BSMM_SMALL_M_STEP / l->batch; i++) {
        const int64_t k = i * l->batch;
        const float *a = (const float *)(const void *)(s->a + k / segment_k * unit_bytes);
        if (k % segment_k == 0) memset(w->sums, 0, sizeof w->sums);
        spread_batch(s, l, i, w);
        if (l->by_elements)
            take_scales(l, s->codes + k / BSMM_SMALL_M_STEP * step_codes, s->scale_pitch,
                        w->scales);
        x.a = a + k % segment_k * l->width;
        l->add(&x);
        if ((k + l->batch) % segment_k == 0)
            add_segment(s, l, k / segment_k, a + segment_k * l->width, w->sums);
    }
}

TARGET uint32_t bsmm_small_m_f32fma_multiply(const bsmm_small_m_span *s) {
    const loops *l = s->context;
    space w;
    memset(w.codes, 0, sizeof w.codes);
    if (l->by_segment)
        multiply_segments(s, l, &w);
    else
        multiply_folded(s, l, &w);
    uint32_t found = 0;
    for (int p = 0; p < l->groups / 2 && l->row_bytes == l->batch; p++)
        if (bsmm_small_m_f32fma_has_nan(&w.codes[p])) found |= 1u << p;
    return found;
}

#else

typedef int bsmm_small_m_f32fma_loops_needs_x86_64;

#endif
