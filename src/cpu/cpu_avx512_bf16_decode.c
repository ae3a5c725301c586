/* cpu_avx512_bf16_decode: few rows of anything exact in bf16 against weights of 4, 6 and 8 bits as
 * stored.
 *
 * The bits of cpu_avx512_bf16dot: lanes are columns, and each column's sum runs along K in the same
 * order, pair by pair. Elements become bf16 by table; an e8m0 scale shifts them down from the row's
 * largest scale, by a saturating subtraction that keeps zeros; an e4m3 scale gives an e2m1 element
 * one of two mantissas, 1 or 1.5 of itself. A different power of two than the packer takes out of a
 * row changes no bit.
 *
 * A dot product's latency is six cycles, and a column's products wait for each other: with one or
 * two rows of A several panels run side by side. */
#include "base/cpu.h"
#include "cpu/bf16.h"
#include "cpu/decode.h"

#include <stdio.h>

static const int64_t most_rows = 16;

#if defined(__x86_64__)

#    include "cpu/decode_avx512.h"

#    include <math.h>
#    include <string.h>

#    define TARGET                                                                                 \
        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_DECODE_LANES, PANELS = BSMM_DECODE_PANELS };

/* How elements are stored and scaled. */
typedef enum weights { SHIFTED4, PRODUCTS4, SHIFTED6, SHIFTED8, KINDS } weights;

/* Dwords of a row in a group of steps, and pairs in a dword. */
#    define WORDS(kind) ((kind) <= PRODUCTS4 ? 16 : 32)
#    define PAIRS(kind) ((kind) <= PRODUCTS4 ? 4 : 2)

/* Lookup tables of a format; what they hold depends on the kind. */
typedef struct tables {
    _Alignas(64) uint8_t bytes[4][64];
    uint8_t special; /* magnitudes from here on are Inf and NaN, which have to be packed */
} tables;

typedef struct decoder {
    __m512i table[4];
    __m512i select[4]; /* for each pair of a dword: where its codes are */
    __m512i largest;   /* magnitude met, of 8 bits */
} decoder;

/* ---- elements to pairs ---- */

/* Bit offsets of a pair's two codes in both dwords of a quadword; `sign` puts the code's sign on
 * top of the word. */
INLINE __m512i select_pair(int first, int bits, bool sign) {
    int64_t low = first, high = first + bits, mask = 0x3f;
    int64_t low_top = sign ? low - 4 : low, high_top = sign ? high - 4 : high;
    int64_t even =
        (low & mask) | (low_top & mask) << 8 | (high & mask) << 16 | (high_top & mask) << 24;
    int64_t odd = ((low + 32) & mask) | ((low_top + 32) & mask) << 8 | ((high + 32) & mask) << 16 |
                  ((high_top + 32) & mask) << 24;
    return _mm512_set1_epi64(even | odd << 32);
}

INLINE void set_up(const tables *from, weights kind, decoder *d) {
    for (int i = 0; i < 4; i++)
        d->table[i] = _mm512_load_si512(from->bytes[i]);
    int bits = kind == SHIFTED6 ? 6 : 4;
    for (int i = 0; i < 4; i++)
        d->select[i] = select_pair(2 * bits * i, bits, kind == PRODUCTS4);
    d->largest = _mm512_setzero_si512();
}

/* One row's scale for a step, or a half of it, in each lane. */
typedef struct scaling {
    __m512i shift;        /* SHIFTED: to subtract from both words */
    __m512i one, onehalf; /* PRODUCTS: the largest products of either mantissa */
} scaling;

INLINE scaling no_scaling(void) {
    __m512i zero = _mm512_setzero_si512();
    return (scaling){zero, zero, zero};
}

INLINE scaling load_scaling(const uint8_t *codes, weights kind) {
    __m128i v = _mm_load_si128((const __m128i *)(const void *)codes);
    scaling s;
    if (kind == PRODUCTS4) {
        /* e4m3 read as f16 is 2^-8 of its value; the largest powers in e2m1 are 4 and 6. */
        __m512 value = _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(v), 7));
        __m512i one = _mm512_castps_si512(_mm512_mul_ps(value, _mm512_set1_ps(0x1p10f)));
        __m512i half = _mm512_castps_si512(_mm512_mul_ps(value, _mm512_set1_ps(0x1.8p10f)));
        s.one = _mm512_or_si512(one, _mm512_srli_epi32(one, 16));
        half = _mm512_or_si512(half, _mm512_srli_epi32(half, 16));
        s.onehalf = _mm512_add_epi16(half, _mm512_set1_epi16(1));
        s.shift = _mm512_setzero_si512();
        return s;
    }
    __m512i wide = _mm512_cvtepu8_epi32(v);
    s.shift = _mm512_or_si512(_mm512_slli_epi32(wide, 7), _mm512_slli_epi32(wide, 23));
    s.one = s.onehalf = s.shift;
    return s;
}

/* table[0]: how far each product lies below the largest of its mantissa; bit 0 marks 1.5, whose
 * largest is stored with 1 added. Zero is farther below than anything. */
INLINE __m512i product_pair(const decoder *d, __m512i codes, const scaling *s) {
    __m512i below = _mm512_permutexvar_epi16(codes, d->table[0]);
    __mmask32 marked = _mm512_test_epi16_mask(below, _mm512_set1_epi16(1));
    __m512i product = _mm512_subs_epu16(_mm512_mask_blend_epi16(marked, s->one, s->onehalf), below);
    return _mm512_ternarylogic_epi32(product, codes, _mm512_set1_epi16((short)0x8000), 0xf8);
}

/* The bytes of bf16 by two tables of 128, and the sign, but of zero: the subtraction would not keep
 * a negative one. */
INLINE void decode_bytes(decoder *d, __m512i word, const scaling *s, __m512i pair[2]) {
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    word = _mm512_shuffle_epi8(word, order);
    d->largest = _mm512_max_epu8(d->largest, _mm512_and_si512(word, _mm512_set1_epi8(0x7f)));
    __m512i low = _mm512_permutex2var_epi8(d->table[0], word, d->table[1]);
    __m512i high = _mm512_permutex2var_epi8(d->table[2], word, d->table[3]);
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    high = _mm512_mask_add_epi8(high, _mm512_cmpgt_epu8_mask(word, sign), high, sign);
    pair[0] = _mm512_subs_epu16(_mm512_unpacklo_epi8(low, high), s->shift);
    pair[1] = _mm512_subs_epu16(_mm512_unpackhi_epi8(low, high), s->shift);
}

INLINE void decode_word(decoder *d, weights kind, __m512i word, const scaling *s, __m512i *pair) {
    if (kind == SHIFTED8) {
        decode_bytes(d, word, s, pair);
        return;
    }
    const int pairs = PAIRS(kind);
#    pragma GCC unroll 4
    for (int i = 0; i < pairs; i++) {
        __m512i codes = _mm512_multishift_epi64_epi8(d->select[i], word);
        if (kind == PRODUCTS4)
            pair[i] = product_pair(d, codes, s);
        else if (kind == SHIFTED4)
            pair[i] = _mm512_subs_epu16(_mm512_permutexvar_epi16(codes, d->table[0]), s->shift);
        else
            pair[i] = _mm512_subs_epu16(_mm512_permutex2var_epi16(d->table[0], codes, d->table[1]),
                                        s->shift);
    }
}

/* A group of one panel. */
INLINE void load_group(const uint8_t *b, int64_t pitch, weights kind, __m512i *word) {
    if (kind == SHIFTED6) {
        for (int j = 0; j < BSMM_DECODE_GROUP; j++) {
            bsmm_load_sixes(b + 24 * j, pitch, 0, word + 8 * j);
            bsmm_load_sixes(b + 24 * j + 8, pitch, 4, word + 8 * j + 4);
        }
        return;
    }
    for (int i = 0; i < WORDS(kind) / 16; i++)
        bsmm_transpose_lines(b + 64 * i, pitch, word + 16 * i);
}

/* ---- sums ---- */

INLINE __m512 add_pair(__m512 acc, int32_t a, __m512i b) {
    return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_set1_epi32(a), (__m512bh)b);
}

/* Scale codes of a step: one, or two halves'. */
#    define STEP_CODES(kind) ((kind) == PRODUCTS4 ? 2 * LANES : LANES)

INLINE void add_group(const bsmm_decode_span *s, int64_t step, const int32_t *a,
                      __m512i word[PANELS][32], int width, int panels, weights kind, decoder *d,
                      __m512 acc[BSMM_DECODE_WIDTH]) {
    const int words = WORDS(kind) / BSMM_DECODE_GROUP, pairs = PAIRS(kind);
    const int scaled = kind == PRODUCTS4 ? words / 2 : words; /* words that share a scale */
    const uint8_t *codes = s->codes + step * STEP_CODES(kind);
    for (int i = 0; i < WORDS(kind) / scaled; i++, codes += LANES) {
        scaling scale[PANELS];
        for (int p = 0; p < panels; p++)
            scale[p] = s->scales ? no_scaling() : load_scaling(codes + p * s->scale_pitch, kind);
        for (int w = 0; w < scaled; w++) {
#    pragma GCC unroll 4
            for (int p = 0; p < panels; p++) {
                __m512i pair[4];
                decode_word(d, kind, word[p][i * scaled + w], &scale[p], pair);
#    pragma GCC unroll 4
                for (int q = 0; q < pairs; q++)
#    pragma GCC unroll 16
                    for (int r = 0; r < width; r++)
                        acc[p * width + r] =
                            add_pair(acc[p * width + r], a[q * width + r], pair[q]);
            }
            a += pairs * width;
        }
    }
}

/* Sums of a segment, times the product of its scales, into D's. */
INLINE void add_segment(const bsmm_decode_span *s, int64_t segment, const float *a_scales,
                        int width, int panels, const __m512 *acc) {
    for (int p = 0; p < panels; p++) {
        __m512 column = _mm512_set1_ps(1);
        if (s->scales) column = _mm512_loadu_ps(s->scales + p * s->scale_pitch + segment * LANES);
        for (int r = 0; r < width; r++) {
            float *at = s->acc + r * BSMM_DECODE_COLUMNS + p * LANES;
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            _mm512_storeu_ps(at, _mm512_fmadd_ps(acc[p * width + r], scale, _mm512_loadu_ps(at)));
        }
    }
}

INLINE uint32_t find_special(const decoder *d, uint8_t special, int panels) {
    bool found = _mm512_cmpge_epu8_mask(d->largest, _mm512_set1_epi8((char)special)) != 0;
    return found ? (1u << panels) - 1 : 0;
}

INLINE uint32_t multiply(const bsmm_decode_span *s, int width, weights kind, bool by_segment) {
    const tables *from = s->context;
    const int panels = width >= 4 ? 1 : 4 / width, step_bytes = WORDS(kind);
    const int64_t unit = by_segment ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    const int64_t a_unit = BSMM_BF16_UNIT_BYTES(width, unit);
    const int64_t row_bytes = kind == SHIFTED6 ? 24 : step_bytes;
    decoder d;
    set_up(from, kind, &d);
    __m512 acc[BSMM_DECODE_WIDTH];
    for (int i = 0; i < panels * width; i++)
        acc[i] =
            by_segment
                ? _mm512_setzero_ps()
                : _mm512_loadu_ps(s->acc + i % width * BSMM_DECODE_COLUMNS + i / width * LANES);
    for (int64_t i = 0; i < s->steps; i += BSMM_DECODE_GROUP) {
        const uint8_t *ahead = bsmm_decode_ahead(s, i * row_bytes, s->steps * row_bytes);
        __m512i word[PANELS][32];
        for (int p = 0; p < panels; p++) {
            const uint8_t *b = s->b + i * row_bytes + p * LANES * s->pitch;
            for (int j = 0; j < 4; j++)
                bsmm_prefetch_rows(ahead + p * LANES * s->pitch, s->pitch, j, BSMM_DECODE_GROUP * row_bytes);
            load_group(b, s->pitch, kind, word[p]);
        }
        const uint8_t *a = s->a + i * BSMM_DECODE_STEP / unit * a_unit;
        add_group(s, i, (const int32_t *)(const void *)a, word, width, panels, kind, &d, acc);
        if (!by_segment) continue;
        add_segment(s, i / BSMM_DECODE_GROUP, (const float *)(const void *)(a + width * unit * 2),
                    width, panels, acc);
        for (int q = 0; q < panels * width; q++)
            acc[q] = _mm512_setzero_ps();
    }
    for (int i = 0; i < panels * width && !by_segment; i++)
        _mm512_storeu_ps(s->acc + i % width * BSMM_DECODE_COLUMNS + i / width * LANES, acc[i]);
    return kind == SHIFTED8 ? find_special(&d, from->special, panels) : 0;
}

/* ---- one function per tile, kind and form ---- */

static const int64_t widths[] = {1, 2, 4, 8, 16};

#    define VARIANT(width, kind, form)                                                             \
        TARGET static uint32_t multiply_##kind##_##form##_##width(const bsmm_decode_span *s) {     \
            return multiply(s, width, kind, form);                                                 \
        }
#    define VARIANTS(kind, form)                                                                   \
        VARIANT(1, kind, form)                                                                     \
        VARIANT(2, kind, form)                                                                     \
        VARIANT(4, kind, form)                                                                     \
        VARIANT(8, kind, form)                                                                     \
        VARIANT(16, kind, form)
#    define ROW(kind, form)                                                                        \
        {                                                                                          \
            multiply_##kind##_##form##_1, multiply_##kind##_##form##_2,                            \
                multiply_##kind##_##form##_4, multiply_##kind##_##form##_8,                        \
                multiply_##kind##_##form##_16                                                      \
        }

enum { FOLDED = 0, SEGMENTED = 1 };
VARIANTS(SHIFTED4, FOLDED)
VARIANTS(SHIFTED4, SEGMENTED)
VARIANTS(PRODUCTS4, FOLDED)
VARIANTS(PRODUCTS4, SEGMENTED)
VARIANTS(SHIFTED6, FOLDED)
VARIANTS(SHIFTED6, SEGMENTED)
VARIANTS(SHIFTED8, FOLDED)
VARIANTS(SHIFTED8, SEGMENTED)

static uint32_t (*const multiplies[KINDS][2][BSMM_COUNT(widths)])(const bsmm_decode_span *) = {
    [SHIFTED4] = {ROW(SHIFTED4, FOLDED), ROW(SHIFTED4, SEGMENTED)},
    [PRODUCTS4] = {ROW(PRODUCTS4, FOLDED), ROW(PRODUCTS4, SEGMENTED)},
    [SHIFTED6] = {ROW(SHIFTED6, FOLDED), ROW(SHIFTED6, SEGMENTED)},
    [SHIFTED8] = {ROW(SHIFTED8, FOLDED), ROW(SHIFTED8, SEGMENTED)},
};

/* ---- tables ---- */

static weights kind_of(const bsmm_format *f) {
    uint32_t bits = bsmm_elem_row(f->elem)->bits;
    if (bits == 4) return f->scale == BSMM_SCALE_E4M3 ? PRODUCTS4 : SHIFTED4;
    return bits == 6 ? SHIFTED6 : SHIFTED8;
}

static uint16_t bf16_of(double value) {
    return (uint16_t)bsmm_elem_encode(BSMM_ELEM_BF16, value, false);
}

/* Zero is +0: what a product of zero adds is nothing, whatever its sign. */
static uint16_t word_of(uint32_t elem, uint32_t code) {
    double value = bsmm_elem_decode(elem, code);
    return value == 0 ? 0 : bf16_of(value);
}

static void make_words(uint32_t elem, tables *t) {
    uint32_t codes = 1u << bsmm_elem_row(elem)->bits;
    for (uint32_t i = 0; i < 64; i++) {
        uint16_t word = word_of(elem, i % codes);
        memcpy(&t->bytes[i / 32][i % 32 * 2], &word, sizeof word);
    }
}

/* Products of e2m1 are 2^-k of the largest with their mantissa, 4 or 6; see product_pair. */
static void make_products(tables *t) {
    for (uint32_t i = 0; i < 32; i++) {
        int exponent = 0;
        double value = bsmm_elem_decode(BSMM_ELEM_E2M1, i & 7);
        bool half = value != 0 && frexp(value, &exponent) == 0.75;
        uint16_t below = value == 0 ? 0xffff : (uint16_t)((3 - exponent) * 128 | half);
        memcpy(&t->bytes[0][i * 2], &below, sizeof below);
    }
}

static void make_bytes(uint32_t elem, tables *t) {
    t->special = 0x80;
    for (uint32_t i = 0; i < 128; i++) {
        double value = bsmm_elem_decode(elem, i);
        uint16_t word = bf16_of(value);
        if (!isfinite(value) && i < t->special) t->special = (uint8_t)i;
        t->bytes[i / 64][i % 64] = (uint8_t)word;
        t->bytes[2 + i / 64][i % 64] = (uint8_t)(word >> 8);
    }
}

static void make_tables(const bsmm_product *p, void *context) {
    tables *t = context;
    uint32_t elem = p->b.m.format.elem;
    memset(t, 0, sizeof *t);
    switch (kind_of(&p->b.m.format)) {
    case PRODUCTS4:
        make_products(t);
        break;
    case SHIFTED8:
        make_bytes(elem, t);
        break;
    default:
        make_words(elem, t);
    }
}

/* ---- a panel's scales ---- */

/* Shifts down from each row's largest scale; a row that spans more than the packer folds is its. */
static bool prepare_shifts(const bsmm_decode_scales *s) {
    int deepest = 60 + ilogb(bsmm_elem_row(s->p->b.m.format.elem)->min_subnormal);
    uint8_t largest[LANES] = {0}, smallest[LANES];
    memset(smallest, 0xff, sizeof smallest);
    for (int64_t i = 0; i < s->units; i++)
        for (int lane = 0; lane < LANES; lane++) {
            uint8_t code = s->codes[i * LANES + lane];
            largest[lane] = code > largest[lane] ? code : largest[lane];
            smallest[lane] = code < smallest[lane] ? code : smallest[lane];
        }
    for (int lane = 0; lane < LANES; lane++) {
        if (largest[lane] == 0xff || largest[lane] - smallest[lane] > deepest) return false;
        s->factors[lane] *= ldexp(1, largest[lane] - 127);
    }
    for (int64_t i = 0; i < s->units; i++)
        for (int lane = 0; lane < LANES; lane++)
            s->codes[i * LANES + lane] = (uint8_t)(largest[lane] - s->codes[i * LANES + lane]);
    return true;
}

/* Negative scales and NaN are left to the packer. */
static bool prepare_products(const bsmm_decode_scales *s) {
    uint8_t largest = 0;
    for (int64_t i = 0; i < s->units * LANES; i++)
        largest = s->codes[i] > largest ? s->codes[i] : largest;
    return largest < 0x7f;
}

/* Each row's largest power of two leaves its scales, as in the packer. */
static bool prepare_floats(const bsmm_decode_scales *s) {
    float largest[LANES] = {0}, inverse[LANES];
    for (int64_t i = 0; i < s->units; i++)
        for (int lane = 0; lane < LANES; lane++) {
            float magnitude = fabsf(s->scales[i * LANES + lane]);
            largest[lane] = magnitude <= largest[lane] ? largest[lane] : magnitude;
        }
    for (int lane = 0; lane < LANES; lane++) {
        /* NaN too; and powers of two whose inverse is subnormal. */
        if (!(largest[lane] >= 0x1p-100f && largest[lane] <= 0x1p100f)) return false;
        int exponent = ilogbf(largest[lane]);
        inverse[lane] = ldexpf(1, -exponent);
        s->factors[lane] *= ldexp(1, exponent);
    }
    bool usual = true;
    for (int64_t i = 0; i < s->units; i++)
        for (int lane = 0; lane < LANES; lane++) {
            float scale = s->scales[i * LANES + lane] * inverse[lane];
            usual &= scale == 0 || fabsf(scale) >= 0x1p-30f;
            s->scales[i * LANES + lane] = scale;
        }
    return usual;
}

static bool prepare(const bsmm_decode_scales *s) {
    switch (s->p->b.m.format.scale) {
    case BSMM_SCALE_F32:
        return prepare_floats(s);
    case BSMM_SCALE_E4M3:
        return prepare_products(s);
    case BSMM_SCALE_E8M0:
        return prepare_shifts(s);
    default:
        memset(s->codes, 0, (size_t)(s->units * LANES));
        return true;
    }
}

/* ---- packed operands ---- */

static void pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                   bsmm_panel *to) {
    bsmm_bf16_pack(p, BSMM_BF16_A, width, row, rows, to);
}

static void pack_b(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_bf16_pack(p, BSMM_BF16_B, LANES, row, rows, to);
}

INLINE __m512 add_packed_pairs(__m512 acc, const uint8_t *a, const uint8_t *b, int64_t width,
                               int64_t r, int64_t unit) {
    for (int64_t i = 0; i < unit / 2; i++)
        acc = add_pair(acc, ((const int32_t *)(const void *)a)[i * width + r],
                       _mm512_loadu_si512(b + i * LANES * 4));
    return acc;
}

TARGET static void multiply_packed_folded(const uint8_t *a, const uint8_t *b, int64_t width,
                                          int64_t units, float *acc) {
    const int64_t unit = BSMM_BF16_FOLDED_UNIT;
    for (int64_t r = 0; r < width; r++, acc += BSMM_DECODE_COLUMNS) {
        __m512 sum = _mm512_loadu_ps(acc);
        for (int64_t u = 0; u < units; u++)
            sum = add_packed_pairs(sum, a + u * BSMM_BF16_UNIT_BYTES(width, unit),
                                   b + u * BSMM_BF16_UNIT_BYTES(LANES, unit), width, r, unit);
        _mm512_storeu_ps(acc, sum);
    }
}

TARGET static void multiply_packed_segments(const uint8_t *a, const uint8_t *b, int64_t width,
                                            int64_t units, float *acc) {
    const int64_t unit = BSMM_BF16_SEGMENT_UNIT;
    for (int64_t u = 0; u < units; u++) {
        const float *a_scales = (const float *)(const void *)(a + width * unit * 2);
        __m512 column = _mm512_loadu_ps(b + LANES * unit * 2);
        for (int64_t r = 0; r < width; r++) {
            float *at = acc + r * BSMM_DECODE_COLUMNS;
            __m512 sum = add_packed_pairs(_mm512_setzero_ps(), a, b, width, r, unit);
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            _mm512_storeu_ps(at, _mm512_fmadd_ps(sum, scale, _mm512_loadu_ps(at)));
        }
        a += BSMM_BF16_UNIT_BYTES(width, unit);
        b += BSMM_BF16_UNIT_BYTES(LANES, unit);
    }
}

static int64_t scale_unit_of(uint32_t scale) {
    if (scale == BSMM_SCALE_F32) return BSMM_BF16_SEGMENT_UNIT;
    return scale == BSMM_SCALE_E4M3 ? BSMM_DECODE_STEP / 2 : BSMM_DECODE_STEP;
}

static bsmm_decoder decoder_of(const bsmm_product *p) {
    int tile = bsmm_decode_choose_width(p, widths, BSMM_COUNT(widths));
    bool by_segment = bsmm_bf16_by_segment(p);
    int64_t width = widths[tile];
    int64_t unit = by_segment ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    return (bsmm_decoder){
        .width = width,
        .panels = width >= PANELS ? 1 : PANELS / width,
        .unit = unit,
        .a_unit_bytes = (uint64_t)BSMM_BF16_UNIT_BYTES(width, unit),
        .b_unit_bytes = (uint64_t)BSMM_BF16_UNIT_BYTES(LANES, unit),
        .scale_unit = scale_unit_of(p->b.m.format.scale),
        .context_bytes = sizeof(tables),
        .make_context = make_tables,
        .pack_a = pack_a,
        .pack_b = pack_b,
        .prepare = prepare,
        .multiply = multiplies[kind_of(&p->b.m.format)][by_segment][tile],
        .multiply_packed = by_segment ? multiply_packed_segments : multiply_packed_folded,
    };
}

static bool is_supported(void) {
    uint32_t needed = BSMM_CPU_AVX512_BF16 | BSMM_CPU_AVX512_VBMI;
    return (bsmm_cpu_features() & needed) == needed;
}

#else

static int64_t scale_unit_of(uint32_t scale) {
    (void)scale;
    return BSMM_DECODE_STEP;
}

static bsmm_decoder decoder_of(const bsmm_product *p) {
    (void)p;
    return (bsmm_decoder){0};
}

static bool is_supported(void) {
    return false;
}

#endif

/* Elements whose sign is their top bit, and nothing else in it. */
static bool takes_element(uint32_t elem) {
    static const uint32_t taken[] = {BSMM_ELEM_E2M1, BSMM_ELEM_E2M3, BSMM_ELEM_E3M2, BSMM_ELEM_E4M3,
                                     BSMM_ELEM_E5M2};
    for (size_t i = 0; i < BSMM_COUNT(taken); i++)
        if (taken[i] == elem) return true;
    return false;
}

static const char *refuse_weights(const bsmm_format *f, char *why, size_t size) {
    const char *elem = bsmm_elem_row(f->elem)->name;
    if (!takes_element(f->elem)) {
        snprintf(why, size, "B has %s elements; it takes e2m1, e2m3, e3m2, e4m3 and e5m2", elem);
        return why;
    }
    if (f->scale == BSMM_SCALE_E4M3 && f->elem != BSMM_ELEM_E2M1) {
        snprintf(why, size, "B has e4m3 scales over %s elements; it takes them over e2m1", elem);
        return why;
    }
    int64_t multiple = scale_unit_of(f->scale);
    if (f->block_cols % multiple != 0) {
        snprintf(why, size,
                 "B has blocks of %u along K; with these scales it takes multiples of %lld",
                 f->block_cols, (long long)multiple);
        return why;
    }
    return NULL;
}

static const char *refuse(const bsmm_product *p, char *why, size_t size) {
    if (!is_supported()) return "the processor has no AVX-512 BF16 and VBMI";
    const char *reason = bsmm_bf16_refuse(p, why, size);
    if (!reason) reason = refuse_weights(&p->b.m.format, why, size);
    return reason ? reason : bsmm_decode_refuse(p, most_rows, why, size);
}

static uint64_t workspace_bytes(const bsmm_product *p) {
    bsmm_decoder d = decoder_of(p);
    return bsmm_decode_workspace_bytes(&d, p);
}

static bsmm_status run(const bsmm_product *p, void *workspace) {
    bsmm_decoder d = decoder_of(p);
    return bsmm_decode_run(&d, p, workspace);
}

const bsmm_kernel bsmm_kernel_cpu_avx512_bf16_decode = {
    .name = "cpu_avx512_bf16_decode",
    .device = "cpu",
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bsmm_bf16_bound,
    .run = run,
};
