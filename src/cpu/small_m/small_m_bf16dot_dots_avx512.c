/* Multiplies few rows of A by weights B that are read as they are stored, with the instruction
 * vdpbf16ps (the dot product of pairs of bf16).
 *
 * Tables decode elements of B to bf16. A row of B may have one e8m0 scale for each block of 32
 * elements of K. Usually, the kernel then scales the sums and not the elements. It keeps each sum
 * divided by the scale of the current block of the row of B. When the next block begins, it
 * multiplies the sum by (old scale / new scale).
 *
 * With 6-bit elements and 16 rows of A, it is faster to scale the elements. L is the largest scale
 * of a row of B. The kernel multiplies each element of the row by (scale of its block / L): it
 * lowers the exponent of the element by log2(L / scale of its block). It uses a saturating
 * subtraction, so that zeros stay zero. Scaling the elements and scaling the sums give bitwise
 * identical results (change_unit has the reason).
 *
 * An e4m3 scale is a power of two times one of eight mantissas. A table with 64 entries gives the
 * product of the mantissa and an e2m1 element without its sign. The power of two scales the sums
 * or, with 16 rows of A, these products. L is then 2^8 for all rows.
 *
 * A dot product has a latency of six cycles. A dot product must wait for the previous one that adds
 * to the same accumulator. With up to four rows of A (two with e4m3 scales), the kernel therefore
 * multiplies several panels of B (16 rows each) side by side. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_avx512.h"
#    include "cpu/small_m/small_m_bf16dot_avx512.h"

#    define TARGET                                                                                 \
        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES, PANELS = BSMM_SMALL_M_PANELS };

/* WORDS is the number of 32-bit words of codes that a row of B has in a group of 4 steps of 32
 * elements. PAIRS is the number of pairs of codes in such a word. */
#    define WORDS(kind) ((kind) <= BSMM_PRODUCTS4 ? 16 : 32)
#    define PAIRS(kind) ((kind) <= BSMM_PRODUCTS4 ? 4 : 2)

/* PANELS_OF is the number of panels of B that are multiplied side by side: 4, 2 or 1. Each panel
 * has one register of sums for each of the `width` rows of A. About eight such registers at once
 * hide the latency of dot products. SUMS is the largest number of such registers if several panels
 * are multiplied side by side. With e4m3 scales, six registers are faster than eight. */
#    define SUMS(kind) ((kind) == BSMM_PRODUCTS4 ? 6 : 8)
#    define PANELS_OF(kind, width)                                                                 \
        (4 * (width) <= SUMS(kind) ? 4 : 2 * (width) <= SUMS(kind) ? 2 : 1)

/* The power of two in a scale can multiply the sum of a block's products, or it can multiply the
 * block's elements when they are decoded. SCALES_SUMS is true if it multiplies the sums. */
#    define SCALES_SUMS(kind, width)                                                               \
        (((kind) != BSMM_SHIFTED6 && (kind) != BSMM_PRODUCTS4) || (width) < 16)

typedef struct decoder {
    __m512i table[4];
    /* select[i] is for the pair of adjacent codes number i in a 32-bit word. It is the control
     * operand with which vpmultishiftqb takes the two codes out of the word (select_pair). */
    __m512i select[4];
    /* The function codes_of_pair takes pairs 0 and 1 of 4-bit codes (SHIFTED4) out of a word by a
     * shuffle and a shift. halves[i] is for pair i: it has the numbers of bits by which the low and
     * the high 16-bit half of each word are shifted right. */
    __m512i halves[2];
    /* For PRODUCTS4, `lanes` has the number of the row of each byte, for a permutation that moves
     * the scale codes of 16 rows to their lanes. */
    __m512i lanes;
    /* `largest` is the largest magnitude of the 8-bit codes decoded so far, to find Inf and NaN. */
    __m512i largest;
} decoder;

/* Returns the control operand of a multishift (vpmultishiftqb) that takes two adjacent codes out of
 * each 32-bit word. The first code begins at bit `first` of the word, and each code has `bits`
 * bits. The first code goes to the low 16 bits of the result and the second code to the high 16
 * bits.
 *
 * If `products` is false, the lowest bit of a code goes to bit 0 of its 16 bits. If `products` is
 * true, the codes have 4 bits. A code then goes to bits 3 to 6, and its sign bit also to bit 15. */
INLINE __m512i select_pair(int first, int bits, bool products) {
    const int64_t mask = 0x3f, down = products ? 3 : 0, top_down = products ? 4 : 0;
    const int64_t low = first - down, high = low + bits;
    const int64_t low_top = first - top_down, high_top = low_top + bits;
    int64_t even =
        (low & mask) | (low_top & mask) << 8 | (high & mask) << 16 | (high_top & mask) << 24;
    int64_t odd = ((low + 32) & mask) | ((low_top + 32) & mask) << 8 | ((high + 32) & mask) << 16 |
                  ((high_top + 32) & mask) << 24;
    return _mm512_set1_epi64(even | odd << 32);
}

INLINE void set_up(const bsmm_decode_tables *from, bsmm_weights kind, decoder *d) {
    for (int i = 0; i < 4; i++)
        d->table[i] = _mm512_load_si512(from->bytes[i]);
    int bits = kind == BSMM_SHIFTED6 ? 6 : 4;
    for (int i = 0; i < 4; i++)
        d->select[i] = select_pair(2 * bits * i, bits, kind == BSMM_PRODUCTS4);
    d->halves[0] = _mm512_set1_epi32(4 << 16);
    d->halves[1] = _mm512_set1_epi32(8 | 12 << 16);
    const __m512i row = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    d->lanes = _mm512_or_si512(row, _mm512_slli_epi32(row, 16));
    d->largest = _mm512_setzero_si512();
}

/* `scaling` holds the factors by which the elements of a block of 16 rows of B are multiplied. Each
 * 32-bit lane belongs to one row, and both of its 16-bit halves have the same number. */
typedef struct scaling {
    /* If the elements are multiplied by powers of two, `shift` is subtracted from the bits of both
     * bf16 elements of a pair, which lowers their exponents. */
    __m512i shift;
    /* If scales are e4m3, `codes` holds the product codes of bsmm_small_m_bf16_prepare_dots: bits 0
     * to 2 are the mantissa of the scale, and bits 3 to 7 are d, where 2^(8 - d) is its power of
     * two. */
    __m512i codes;
    __mmask32 used; /* `used` selects the halves of rows whose scale is not zero. */
} scaling;

INLINE scaling no_scaling(void) {
    __m512i zero = _mm512_setzero_si512();
    return (scaling){zero, zero, 0};
}

INLINE scaling load_shifts(const uint8_t *codes) {
    __m512i wide = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)(const void *)codes));
    scaling s = no_scaling();
    s.shift = _mm512_or_si512(_mm512_slli_epi32(wide, 7), _mm512_slli_epi32(wide, 23));
    return s;
}

INLINE scaling load_product_codes(const decoder *d, const uint8_t *codes) {
    __m512i v = _mm512_castsi128_si512(_mm_load_si128((const __m128i *)(const void *)codes));
    scaling s = no_scaling();
    s.codes = _mm512_maskz_permutexvar_epi8(0x5555555555555555, d->lanes, v);
    /* Bits 3 to 7 of a product code are d, where 2^(8 - d) is the scale's power of two. The shift
     * by 4 moves d to the exponent field of bf16. */
    s.shift = _mm512_slli_epi16(_mm512_and_si512(s.codes, _mm512_set1_epi16(0xf8)), 4);
    s.used = _mm512_cmpneq_epi16_mask(s.codes, _mm512_set1_epi16(BSMM_PRODUCT_ZERO));
    return s;
}

/* Multiplies e2m1 elements by the mantissas of their scales, and returns the products as pairs of
 * bf16. `codes` has the magnitude of each element in bits 3 to 5 and its sign in the top bit of a
 * 16-bit lane. */
INLINE __m512i product_pair(const decoder *d, __m512i codes, const scaling *s, bool scales_sums) {
    /* The constant 0xca makes the instruction take the bits of `codes` where the first operand has
     * ones, and the bits of s->codes elsewhere. */
    __m512i index = _mm512_ternarylogic_epi32(_mm512_set1_epi16(0x38), codes, s->codes, 0xca);
    __m512i product = _mm512_maskz_permutex2var_epi16(s->used, d->table[0], index, d->table[1]);
    if (!scales_sums) product = _mm512_subs_epu16(product, s->shift);
    return _mm512_ternarylogic_epi32(product, codes, _mm512_set1_epi16((short)0x8000), 0xf8);
}

/* Each 32-bit word of `word` has several pairs of adjacent codes. Returns pair number i of each
 * word: the first code in the low bits of the word's lower half, and the second code in the low
 * bits of its upper half. One multishift instruction can do this for any pair. But on a Zen 4,
 * multishifts take the execution ports that dot products need. For pairs 0 and 1 of 4-bit codes,
 * the function therefore uses a byte shuffle and a 16-bit shift instead. */
INLINE __m512i codes_of_pair(const decoder *d, bsmm_weights kind, __m512i word, int i) {
    const __m512i low_halves =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13));
    if (kind == BSMM_SHIFTED4 && i < 2)
        return _mm512_srlv_epi16(_mm512_shuffle_epi8(word, low_halves), d->halves[i]);
    return _mm512_multishift_epi64_epi8(d->select[i], word);
}

INLINE void decode_word(decoder *d, bsmm_weights kind, __m512i word, const scaling *s,
                        bool scales_sums, __m512i *pair) {
    if (kind == BSMM_SHIFTED8) {
        bsmm_bf16_decode_bytes(d->table, &d->largest, word, pair);
        return;
    }
    const int pairs = PAIRS(kind);
#    pragma GCC unroll 4
    for (int i = 0; i < pairs; i++) {
        __m512i codes = codes_of_pair(d, kind, word, i);
        if (kind == BSMM_PRODUCTS4)
            pair[i] = product_pair(d, codes, s, scales_sums);
        else if (kind == BSMM_SHIFTED4)
            pair[i] = _mm512_permutexvar_epi16(codes, d->table[0]);
        else
            pair[i] = _mm512_permutex2var_epi16(d->table[0], codes, d->table[1]);
        if (kind != BSMM_PRODUCTS4 && !scales_sums) pair[i] = _mm512_subs_epu16(pair[i], s->shift);
    }
}

/* Loads the codes of one panel (16 rows of B) for 4 steps of 32 elements of K. Lane i of word[d] is
 * 32-bit word d of row i. */
INLINE void load_group(const uint8_t *b, int64_t pitch, bsmm_weights kind, __m512i *word) {
    if (kind == BSMM_SHIFTED6) {
        for (int j = 0; j < BSMM_SMALL_M_GROUP; j++) {
            bsmm_load_sixes(b + 24 * j, pitch, 0, word + 8 * j);
            bsmm_load_sixes(b + 24 * j + 8, pitch, 4, word + 8 * j + 4);
        }
        return;
    }
    for (int i = 0; i < WORDS(kind) / 16; i++)
        bsmm_transpose_lines(b + 64 * i, pitch, word + 16 * i);
}

INLINE __m512 add_pair(__m512 acc, int32_t a, __m512i b) {
    return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_set1_epi32(a), (__m512bh)b);
}

/* A group is 4 steps of 32 elements of K of each panel of B, or fewer steps at the end of K. This
 * struct describes the group that is being multiplied. Row-major weights are transposed to `word`
 * first. Compact weights are read in place: they already store the words (4 bytes, or 3 bytes for
 * 6-bit codes) of 16 rows side by side. When a word of this group is read, the same word of a later
 * group is prefetched. */
typedef struct group {
    int64_t step, steps;  /* `step` is the first step of K, and `steps` is the number of steps. */
    const uint8_t *b;     /* `b` points to the first word of the first panel. */
    const uint8_t *ahead; /* `ahead` points to the same word of a later group. */
    __m512i word[PANELS][32];
} group;

/* Returns word number i of each of the 16 rows of panel p, one row in each lane. Weights in row
 * order have been transposed to g->word before. Compact weights are loaded from memory. With 6-bit
 * codes, this load reads 16 bytes more than it needs, which may lie past the end of the matrix.
 * That is safe, because 64 more bytes follow each matrix in packed weights. */
INLINE __m512i load_word(const bsmm_small_m_span *s, const group *g, int p, int64_t i,
                         bsmm_weights kind) {
    if (!s->compact) return g->word[p][i];
    const int64_t at = p * s->panel_pitch + i * (kind == BSMM_SHIFTED6 ? 48 : 64);
    _mm_prefetch((const char *)g->ahead + at, _MM_HINT_T1);
    return kind == BSMM_SHIFTED6 ? bsmm_load_threes(g->b + at) : _mm512_loadu_si512(g->b + at);
}

/* Transposes a group (4 steps of 32 elements of K of each panel) from row-major weights to g->word,
 * and prefetches a later group. */
INLINE void transpose_group(const bsmm_small_m_span *s, int panels, bsmm_weights kind, group *g) {
    const int64_t bytes = kind == BSMM_SHIFTED6 ? 96 : 4 * WORDS(kind);
    for (int p = 0; p < panels; p++) {
        for (int j = 0; j < 4; j++)
            bsmm_prefetch_rows(g->ahead + p * s->panel_pitch, s->pitch, j, bytes);
        load_group(g->b + p * s->panel_pitch, s->pitch, kind, g->word[p]);
    }
}

/* This struct holds the sums of all panels of B (16 rows each) and all rows of A. If the kernel
 * multiplies sums by scales and not elements, each sum is stored divided by the current scale of
 * its row of B, a power of two. Products of elements can then be added to the sum without scaling.
 */
typedef struct sums {
    __m512 acc[BSMM_SMALL_M_WIDTH];
    /* Each sum is kept divided by the scale of the current block of its row of B. unit[p] holds,
     * for each of the 16 rows of panel p, log2(largest scale / this scale), at the position of
     * fp32's exponent bits. The number is never negative. For e8m0, the largest scale is that of
     * the row. For e4m3, 2^8 takes its place, the largest power of two of e4m3. */
    __m512i unit[PANELS];
} sums;

/* The loop stores each sum divided by the scale of the current block of its row of B, a power of
 * two. This function is called before the next block. It multiplies the sums of one panel by (scale
 * of the current block / scale of the next block), and `unit` is the new value for to->unit[panel].
 * The multiplication is exact: the sums are far below the largest fp32 value, and they stay
 * multiples of 2^-120, because all packed values are multiples of 2^-60 (pack_bf16dot.c). A block
 * of zeros may have the scale code BSMM_PRODUCT_ZERO, which stands for 2^-23. The multiplications
 * before and after such a block are exact too, because the sums do not change between them. */
INLINE void change_unit(sums *to, int panel, int width, __m512i unit) {
    const __m512i one = _mm512_set1_epi32(127 << 23);
    __m512i bits = _mm512_add_epi32(_mm512_sub_epi32(one, to->unit[panel]), unit);
    for (int r = 0; r < width; r++)
        to->acc[panel * width + r] =
            _mm512_mul_ps(to->acc[panel * width + r], _mm512_castsi512_ps(bits));
    to->unit[panel] = unit;
}

/* The sums for a row of B are kept in registers divided by the scale of the current block. In
 * memory they must be divided by the row's largest scale. Converts all sums to this form before
 * they are stored. */
INLINE void restore_unit(const bsmm_small_m_span *s, int width, int panels, bsmm_weights kind,
                         sums *to) {
    if (!SCALES_SUMS(kind, width) || s->scales) return;
    for (int p = 0; p < panels; p++)
        change_unit(to, p, width, _mm512_setzero_si512());
}

/* Reads the scales of the next scale block of a panel (16 rows of B), one for each row. SCALES_SUMS
 * tells whether scales are applied to elements or to sums. If to elements, the function returns the
 * factors by which the caller must multiply the block's elements. If to sums, each sum in `to` is
 * stored divided by its current scale. The function then multiplies the sums, so that they are
 * divided by the scales of the next block instead (change_unit). */
INLINE scaling take_scales(const bsmm_small_m_span *s, const decoder *d, const uint8_t *codes,
                           int panel, int width, bsmm_weights kind, sums *to) {
    if (s->scales) return no_scaling();
    codes += panel * s->scale_pitch;
    if (kind == BSMM_PRODUCTS4) {
        scaling scale = load_product_codes(d, codes);
        if (!SCALES_SUMS(kind, width)) return scale;
        /* A product code stands for an e4m3 scale. Its bits 3 to 7 are d, where 2^(8 - d) is the
         * power of two in the scale. The shift by 20 moves d to the exponent bits of fp32. */
        change_unit(to, panel, width,
                    _mm512_and_si512(_mm512_slli_epi32(scale.codes, 20),
                                     _mm512_set1_epi32((int)0xff800000)));
        return scale;
    }
    if (!SCALES_SUMS(kind, width)) return load_shifts(codes);
    __m128i v = _mm_load_si128((const __m128i *)(const void *)codes);
    change_unit(to, panel, width, _mm512_slli_epi32(_mm512_cvtepu8_epi32(v), 23));
    return no_scaling();
}

INLINE void add_group(const bsmm_small_m_span *s, const group *g, const int32_t *a, int width,
                      int panels, bsmm_weights kind, decoder *d, sums *to) {
    const int words = WORDS(kind) / BSMM_SMALL_M_GROUP, pairs = PAIRS(kind);
    /* `scaled` is the number of 32-bit words of a row of B that share a scale. */
    const int scaled = kind == BSMM_PRODUCTS4 ? words / 2 : words;
    const uint8_t *codes = s->codes + g->step * BSMM_STEP_CODES(kind);
    /* `count` is the number of scales of a row of B in the g->steps steps of K that are multiplied
     * here. */
    const int64_t count = g->steps * words / scaled;
    for (int64_t i = 0; i < count; i++, codes += LANES) {
        scaling scale[PANELS];
        for (int p = 0; p < panels; p++)
            scale[p] = take_scales(s, d, codes, p, width, kind, to);
        for (int w = 0; w < scaled; w++) {
            /* For one row of A, the loops alternate between the panels (16 rows of B each), so that
             * two dot products that add to the same accumulator are far apart. With more rows of A,
             * the dot products of the other rows lie between them anyway. */
            const int interleaved = width == 1 ? panels : 1;
#    pragma GCC unroll 4
            for (int first = 0; first < panels; first += interleaved) {
                __m512i pair[PANELS][4];
#    pragma GCC unroll 4
                for (int p = 0; p < interleaved; p++)
                    decode_word(d, kind, load_word(s, g, first + p, i * scaled + w, kind),
                                &scale[first + p], SCALES_SUMS(kind, width), pair[p]);
#    pragma GCC unroll 4
                for (int q = 0; q < pairs; q++)
#    pragma GCC unroll 4
                    for (int p = 0; p < interleaved; p++)
#    pragma GCC unroll 16
                        for (int r = 0; r < width; r++)
                            to->acc[(first + p) * width + r] = add_pair(
                                to->acc[(first + p) * width + r], a[q * width + r], pair[p][q]);
            }
            a += pairs * width;
        }
    }
}

/* Multiplies the sums of a segment (128 elements of K) by the product of both operands' scales, and
 * adds the results to D's accumulators. */
INLINE void add_segment(const bsmm_small_m_span *s, int64_t segment, const float *a_scales,
                        int width, int panels, const __m512 *acc) {
    for (int p = 0; p < panels; p++) {
        __m512 column = _mm512_set1_ps(1);
        if (s->scales) column = _mm512_loadu_ps(s->scales + p * s->scale_pitch + segment * LANES);
        for (int r = 0; r < width; r++) {
            float *at = s->acc + r * BSMM_SMALL_M_COLUMNS + p * LANES;
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            _mm512_storeu_ps(at, _mm512_fmadd_ps(acc[p * width + r], scale, _mm512_loadu_ps(at)));
        }
    }
}

/* Adds the sums of a chunk (a range of K that is summed by itself) to D's accumulators. */
INLINE void add_chunk(const bsmm_small_m_span *s, int width, int panels, __m512 *acc) {
    for (int i = 0; i < panels * width; i++) {
        float *at = s->acc + i % width * BSMM_SMALL_M_COLUMNS + i / width * LANES;
        _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), acc[i]));
        acc[i] = _mm512_setzero_ps();
    }
}

INLINE void load_part(const bsmm_small_m_span *s, int width, int panels, __m512 *acc) {
    for (int i = 0; i < panels * width; i++)
        acc[i] =
            s->first
                ? _mm512_loadu_ps(s->part + i % width * BSMM_SMALL_M_COLUMNS + i / width * LANES)
                : _mm512_setzero_ps();
}

INLINE void store_part(const bsmm_small_m_span *s, int width, int panels, const __m512 *acc) {
    for (int i = 0; i < panels * width; i++)
        _mm512_storeu_ps(s->part + i % width * BSMM_SMALL_M_COLUMNS + i / width * LANES, acc[i]);
}

INLINE uint32_t find_special(const decoder *d, uint8_t special, int panels) {
    bool found = _mm512_cmpge_epu8_mask(d->largest, _mm512_set1_epi8((char)special)) != 0;
    return found ? (1u << panels) - 1 : 0;
}

INLINE uint32_t multiply(const bsmm_small_m_span *s, int width, bsmm_weights kind,
                         bool by_segment) {
    const bsmm_decode_tables *from = s->context;
    const int panels = PANELS_OF(kind, width), step_bytes = WORDS(kind);
    const int64_t unit = by_segment ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    const int64_t a_unit = BSMM_BF16_UNIT_BYTES(width, unit);
    const int64_t row_bytes = kind == BSMM_SHIFTED6 ? 24 : step_bytes;
    decoder d;
    set_up(from, kind, &d);
    sums to;
    for (int p = 0; p < PANELS; p++)
        to.unit[p] = _mm512_setzero_si512();
    load_part(s, width, panels, to.acc);
    /* `left` is the number of steps (32 elements of K) to the end of the chunk, i.e. of the range
     * of K that is summed by itself. */
    int64_t left = s->chunk_steps - s->first;
    /* `stride` is the distance in bytes from one step (32 elements of K) to the next. */
    const int64_t stride = s->compact ? LANES * row_bytes : row_bytes;
    for (int64_t i = 0; i < s->steps; i += BSMM_SMALL_M_GROUP) {
        group g;
        g.step = i;
        g.steps = s->steps - i;
        g.b = s->b + i * stride;
        if (g.steps > BSMM_SMALL_M_GROUP) g.steps = BSMM_SMALL_M_GROUP;
        g.ahead = bsmm_small_m_ahead(s, i * stride, s->row_steps * stride);
        if (!s->compact) transpose_group(s, panels, kind, &g);
        const uint8_t *a = s->a + i * BSMM_SMALL_M_STEP / unit * a_unit;
        add_group(s, &g, (const int32_t *)(const void *)a, width, panels, kind, &d, &to);
        left -= g.steps;
        if (by_segment || left == 0) restore_unit(s, width, panels, kind, &to);
        if (!by_segment && left == 0) {
            add_chunk(s, width, panels, to.acc);
            left = s->chunk_steps;
        }
        if (!by_segment) continue;
        add_segment(s, i / BSMM_SMALL_M_GROUP, (const float *)(const void *)(a + width * unit * 2),
                    width, panels, to.acc);
        for (int q = 0; q < panels * width; q++)
            to.acc[q] = _mm512_setzero_ps();
    }
    restore_unit(s, width, panels, kind, &to);
    if (!by_segment && s->ends)
        add_chunk(s, width, panels, to.acc);
    else if (!by_segment)
        store_part(s, width, panels, to.acc);
    return kind == BSMM_SHIFTED8 ? find_special(&d, from->special, panels) : 0;
}

#    include "cpu/small_m/small_m_bf16dot_variants.h"

const bsmm_small_m_bf16_form bsmm_small_m_bf16_dots = {
    .panels = BSMM_SMALL_M_VARIANT_PANELS,
    .multiply = BSMM_SMALL_M_VARIANTS,
};

#else

typedef int bsmm_small_m_bf16_dots_needs_x86_64;

#endif
