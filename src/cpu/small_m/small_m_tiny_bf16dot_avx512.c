/* Computes tiny products with the instruction vdpbf16ps (small_m_tiny.h). A is bf16 or has 8-bit
 * elements; B is bf16 or has 8-bit or e2m1 elements.
 *
 * The results are bitwise identical to those of cpu_avx512_bf16dot_small_m, which packs A. Both
 * kernels add pair by pair along K. Packing divides each row by a power of two, which these
 * functions do not do. A power of two changes only exponents, provided that all values and sums
 * stay in the range of normal fp32 numbers. The functions therefore accept only elements and scales
 * for which this is certain, and for which packing would not mark a row as wide (to be summed in
 * double). e8m0 scales of B multiply the sums, which is exact. e4m3 scales of B multiply the
 * elements, and these products are exact in bf16. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"
#include "cpu/small_m/small_m_tiny.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_bf16dot_avx512.h"
#    include "cpu/small_m/small_m_tiny_avx512.h"

#    define TARGET                                                                                 \
        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { ROWS = BSMM_TINY_ROWS, STEPS = BSMM_TINY_STEPS, LANES = BSMM_SMALL_M_LANES };
enum { STEP_PAIRS = BSMM_SMALL_M_STEP / 2 };

/* The functions for tiny products accept only operands within these limits:
 * - the magnitude of a bf16 element is 0, or at least 2^-30 and below 2^20;
 * - an e8m0 scale lies between 2^-20 and 2^20;
 * - an e4m3 scale is neither negative nor NaN;
 * - an fp32 scale is at least 2^-15 and below 2^15. */
enum { LEAST_BF16 = (127 - 30) << 7, PAST_BF16 = (127 + 20) << 7 };
enum { LEAST_E8M0 = 127 - 20, MOST_E8M0 = 127 + 20 };
enum { MOST_E4M3 = 0x7e };
enum { LEAST_F32 = (127 - 15) << 23, PAST_F32 = (127 + 15) << 23 };

/* This struct holds A. `pairs` has A's elements as pairs of bf16, which were multiplied by e8m0
 * scales. `scales` has A's fp32 scales. */
typedef struct tile {
    _Alignas(64) int32_t pairs[ROWS][STEPS * STEP_PAIRS];
    _Alignas(64) float scales[ROWS];
} tile;

INLINE bool is_usual(const bsmm_bf16_extent *e) {
    return !(_mm512_cmpge_epu16_mask(e->largest, _mm512_set1_epi16((short)PAST_BF16)) |
             _mm512_cmplt_epu16_mask(e->smallest, _mm512_set1_epi16(LEAST_BF16 - 1)));
}

/* Returns the smallest code without sign that is Inf or NaN. */
INLINE uint8_t special_of(uint32_t elem) {
    return elem == BSMM_ELEM_E4M3 ? 0x7f : 0x7c;
}

INLINE bool load_bf16(const bsmm_operand *o, int64_t steps, tile *to) {
    bsmm_bf16_extent e = bsmm_bf16_no_extent();
    for (int64_t r = 0; r < o->m.rows; r++) {
        const uint16_t *row = (const uint16_t *)o->m.data + r * o->m.ld;
        for (int64_t i = 0; i < steps; i++) {
            __m512i v = _mm512_loadu_si512(row + i * BSMM_SMALL_M_STEP);
            bsmm_bf16_include(&e, v);
            _mm512_store_si512(to->pairs[r] + i * STEP_PAIRS, v);
        }
    }
    return is_usual(&e);
}

/* Multiplies 32 elements by an e8m0 scale. Zeros stay zero. */
INLINE __m512i scale_row(__m512i bf16, uint8_t code) {
    __mmask32 there = _mm512_test_epi16_mask(bf16, _mm512_set1_epi16(0x7fff));
    return _mm512_mask_add_epi16(bf16, there, bf16, _mm512_set1_epi16((short)((code - 127) * 128)));
}

/* This struct points to an item, i.e. to the codes of the 32 elements of a step in a row of A. It
 * also points to the memory for the pairs of bf16 numbers into which the codes are decoded. */
typedef struct item {
    const uint8_t *codes;
    int32_t *pairs;
    int64_t step;
} item;

/* Returns the item (32 elements of a row of A) after `i`: the next 32 elements of the same row or,
 * at the end of the row, the first 32 elements of the next row. */
INLINE item next_item(item i, int64_t steps, int64_t ld) {
    i.codes += BSMM_SMALL_M_STEP;
    i.pairs += STEP_PAIRS;
    if (++i.step < steps) return i;
    i.codes += ld - steps * BSMM_SMALL_M_STEP;
    i.pairs += (STEPS - steps) * STEP_PAIRS;
    i.step = 0;
    return i;
}

/* Decodes 8-bit elements of A to bf16. An item is 32 elements of a row. A vector register holds the
 * codes of two items, so two items are decoded at a time. If the number of items is odd, the last
 * item is decoded twice. If this function were inlined into its caller, the loops for a bf16 A in
 * the same caller would become slower. */
TARGET static __attribute__((noinline)) bool load_bytes(const bsmm_operand *o, int64_t steps,
                                                        tile *to) {
    const bsmm_pack_table *t = bsmm_pack_table_of(o->m.format.elem);
    const __m512i table[4] = {_mm512_load_si512(t->low), _mm512_load_si512(t->low + 64),
                              _mm512_load_si512(t->high), _mm512_load_si512(t->high + 64)};
    /* An item is 32 bytes, which are the codes of 32 elements. `order` permutes the 64-bit words of
     * two items. 128-bit lane j of the result has word j of the first item in its lower half and
     * word j of the second item in its upper half. */
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const bool is_scaled = o->m.format.scale == BSMM_SCALE_E8M0;
    const uint8_t *scales = o->m.scales;
    const int64_t count = o->m.rows * steps;
    __m512i largest = _mm512_setzero_si512();
    bsmm_tiny_codes unused;
    if (is_scaled && !bsmm_tiny_load_codes(o, 0, o->m.rows, LEAST_E8M0, MOST_E8M0, &unused))
        return false;
    item first = {o->m.data, to->pairs[0], 0};
    for (int64_t i = 0; i < count; i += 2) {
        const bool has_second = i + 1 < count;
        const item second = has_second ? next_item(first, steps, o->m.ld) : first;
        __m512i half[2], codes = _mm512_inserti64x4(
                             _mm512_castsi256_si512(_mm256_loadu_si256((const void *)first.codes)),
                             _mm256_loadu_si256((const void *)second.codes), 1);
        bsmm_bf16_decode_halves(table, &largest, _mm512_permutexvar_epi64(order, codes), half);
        if (is_scaled) {
            half[0] = scale_row(half[0], scales[i]);
            half[1] = scale_row(half[1], scales[i + has_second]);
        }
        _mm512_store_si512(first.pairs, half[0]);
        _mm512_store_si512(second.pairs, half[1]);
        first = next_item(second, steps, o->m.ld);
    }
    const __m512i most = _mm512_set1_epi8((char)(special_of(o->m.format.elem) - 1));
    return !_mm512_cmpgt_epu8_mask(largest, most);
}

/* Loads fp32 scales of up to 16 rows, of which each has one. Returns false if a scale is not at
 * least 2^-15 and below 2^15. */
INLINE bool load_floats(const bsmm_operand *o, int64_t row, int64_t rows, __m512 *to) {
    const float *scales = o->m.scales;
    const __mmask16 there = (__mmask16)bsmm_tiny_ones(rows);
    *to = o->m.format.block_rows == 1 ? _mm512_maskz_loadu_ps(there, scales + row)
                                      : _mm512_set1_ps(scales[row / o->m.format.block_rows]);
    __m512i above = _mm512_sub_epi32(_mm512_castps_si512(*to), _mm512_set1_epi32(LEAST_F32));
    return !(there & _mm512_cmpgt_epu32_mask(above, _mm512_set1_epi32(PAST_F32 - LEAST_F32 - 1)));
}

INLINE bool load_a(const bsmm_product *p, int64_t steps, int width, tile *to) {
    const bsmm_operand *a = &p->a;
    __m512 scales = _mm512_set1_ps(1);
    if (a->m.format.scale == BSMM_SCALE_F32 && !load_floats(a, 0, a->m.rows, &scales)) return false;
    _mm512_store_ps(to->scales, scales);
    for (int64_t r = a->m.rows; r < width; r++)
        memset(to->pairs[r], 0, sizeof to->pairs[r]);
    return a->m.format.elem == BSMM_ELEM_BF16 ? load_bf16(a, steps, to) : load_bytes(a, steps, to);
}

/* `kind` is the kind of B's elements: 4-bit codes (FOURS), 4-bit codes with e4m3 scales (SCALED),
 * 8-bit codes (BYTES) or bf16 (PLAIN). */
typedef enum kind { FOURS, SCALED, BYTES, PLAIN } kind;

/* BITS is the number of bits of an element. WORDS is the number of 32-bit words of codes that a row
 * has in a step of 32 elements of K. PAIRS is the number of pairs of codes in such a word. */
#    define BITS(kind)  ((kind) <= SCALED ? 4 : (kind) == BYTES ? 8 : 16)
#    define WORDS(kind) (BITS(kind) * BSMM_SMALL_M_STEP / 32)
#    define PAIRS(kind) (STEP_PAIRS / WORDS(kind))

/* This struct holds the tables that decode B, and the largest and smallest magnitudes that were
 * decoded so far. */
typedef struct decoder {
    __m512i table[4], select[4];
    /* `extent` has the largest and the smallest magnitude of the bf16 elements that were decoded.
     */
    __m512i largest;
    bsmm_bf16_extent extent; /* `extent` is that of the decoded bf16 elements. */
} decoder;

/* Returns the bit positions of pair number i of 4-bit codes for a multishift, which works on two
 * words of 32 bits at once. */
INLINE __m512i select_pair(int i) {
    const int64_t first = 8 * i, second = first + 4, upper = 32;
    int64_t even = first | second << 16, odd = (first + upper) | (second + upper) << 16;
    return _mm512_set1_epi64((even | odd << 32) * 0x101);
}

/* Returns the bf16 codes of the e2m1 elements, for a permutation that reads the lowest 5 bits of an
 * index: 4 bits of an element's code and one bit of its neighbour's. */
INLINE __m512i load_fours(void) {
    const __m256i sixteen = _mm256_setr_epi16(
        0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, (short)0x8000, (short)0xbf00,
        (short)0xbf80, (short)0xbfc0, (short)0xc000, (short)0xc040, (short)0xc080, (short)0xc0c0);
    return _mm512_broadcast_i64x4(sixteen);
}

INLINE decoder decoder_of(const bsmm_decode_tables *from) {
    decoder d;
    for (int i = 0; i < 4; i++) {
        d.table[i] = _mm512_load_si512(from->bytes[i]);
        d.select[i] = select_pair(i);
    }
    d.largest = _mm512_setzero_si512();
    d.extent = bsmm_bf16_no_extent();
    return d;
}

/* Multiplies pairs of e2m1 elements, given as bf16, by their scales. A product has at most 6
 * significant bits, so it is exact in bf16, and the lower 16 bits of its fp32 number are 0. */
INLINE __m512i scale_pair(__m512i pair, __m512 scale) {
    __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
    __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32((int)0xffff0000)));
    __m512i low = _mm512_srli_epi32(_mm512_castps_si512(_mm512_mul_ps(even, scale)), 16);
    return _mm512_or_si512(_mm512_castps_si512(_mm512_mul_ps(odd, scale)), low);
}

/* Decodes one word of each of the 16 rows of a panel to pairs of bf16. `scale` has a scale for each
 * row, by which the function multiplies e2m1 elements with e4m3 scales. */
INLINE void decode_word(decoder *d, kind b, __m512i word, __m512 scale, __m512i *pair) {
    if (b == PLAIN) {
        bsmm_bf16_include(&d->extent, word);
        pair[0] = word;
    } else if (b == BYTES) {
        bsmm_bf16_decode_bytes(d->table, &d->largest, word, pair);
    } else {
#    pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            pair[i] = _mm512_permutexvar_epi16(_mm512_multishift_epi64_epi8(d->select[i], word),
                                               d->table[0]);
        for (int i = 0; i < 4 && b == SCALED; i++)
            pair[i] = scale_pair(pair[i], scale);
    }
}

/* Converts e4m3 scale codes without sign to fp32. Read as f16, their bits are 2^-8 of the scales.
 */
INLINE __m512 scales_of_e4m3(__m128i codes) {
    __m512 values = _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 7));
    return _mm512_mul_ps(values, _mm512_set1_ps(0x1p8f));
}

/* Returns 2^exponent in each lane. */
INLINE __m512 power_of(__m512i exponent) {
    exponent = _mm512_add_epi32(exponent, _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
}

INLINE void multiply_sums(__m512 *acc, int width, __m512 factor) {
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        acc[r] = _mm512_mul_ps(acc[r], factor);
}

/* Multiplies A by a panel (16 rows) of B. e4m3 scales multiply B's elements. With e8m0 scales, an
 * accumulator holds the sum divided by the scale of the current block of B. Where the scale changes
 * along K, the accumulators are multiplied by the old scale divided by the new one, and after the
 * last block by the last scale.
 */
INLINE void multiply_panel(const tile *a, const bsmm_tiny_rows *rows, const bsmm_tiny_codes *codes,
                           int64_t steps, int width, kind b, decoder *d, __m512 *acc) {
    const __m512i zero = _mm512_set1_epi32(127);
    const int pairs = PAIRS(b);
    __m512i unit = zero;
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        acc[r] = _mm512_setzero_ps();
    for (int64_t step = 0; step < steps; step++) {
        if (codes && b != SCALED) {
            __m512i next = _mm512_cvtepu8_epi32(bsmm_tiny_codes_of(codes, step));
            if (step > 0) multiply_sums(acc, width, power_of(_mm512_sub_epi32(unit, next)));
            unit = next;
        }
        for (int w = 0; w < WORDS(b); w += 4) {
            __m512i word[4];
            __m512 scale = _mm512_set1_ps(1);
            bsmm_tiny_load_words(rows, step * WORDS(b) / 4 + w / 4, word);
#    pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                __m512i pair[4];
                if (b == SCALED && i % 2 == 0)
                    scale = scales_of_e4m3(bsmm_tiny_codes_of(codes, 2 * step + i / 2));
                decode_word(d, b, word[i], scale, pair);
                const int32_t *at = &a->pairs[0][step * STEP_PAIRS + (w + i) * pairs];
#    pragma GCC unroll 4
                for (int q = 0; q < pairs; q++)
#    pragma GCC unroll 16
                    for (int r = 0; r < width; r++)
                        acc[r] = _mm512_dpbf16_ps(
                            acc[r], (__m512bh)_mm512_set1_epi32(at[r * STEPS * STEP_PAIRS + q]),
                            (__m512bh)pair[q]);
            }
        }
    }
    if (codes && b != SCALED) multiply_sums(acc, width, power_of(_mm512_sub_epi32(unit, zero)));
}

/* Multiplies the sums by the product of both operands' fp32 scales. A tiny product has at most 128
 * elements of K, which share these scales. */
INLINE void multiply_scales(const tile *a, int width, __m512 columns, __m512 *acc) {
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++) {
        __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a->scales[r]), columns);
        acc[r] = _mm512_fmadd_ps(acc[r], scale, _mm512_setzero_ps());
    }
}

/* This struct holds the scales of a panel of B. */
typedef struct panel_scales {
    bsmm_tiny_codes codes;
    __m512 floats;
} panel_scales;

INLINE bool load_scales(const bsmm_operand *o, int64_t row, int64_t rows, kind b,
                        panel_scales *to) {
    to->floats = _mm512_set1_ps(1);
    if (b == SCALED) return bsmm_tiny_load_codes(o, row, rows, 0, MOST_E4M3, &to->codes);
    if (o->m.format.scale == BSMM_SCALE_F32) return load_floats(o, row, rows, &to->floats);
    return o->m.format.scale == BSMM_SCALE_NONE ||
           bsmm_tiny_load_codes(o, row, rows, LEAST_E8M0, MOST_E8M0, &to->codes);
}

/* Multiplies the panels of B (16 rows each) one after another. If a panel has an element that this
 * function cannot multiply, it returns false, and another function computes all of D. This other
 * function needs C, which may lie in the memory of D. No result may therefore be stored to D before
 * all panels have been computed. */
INLINE bool multiply(const bsmm_product *p, const void *context, int width, kind b) {
    const bsmm_decode_tables *tables = context;
    const int64_t steps = p->a.m.cols / BSMM_SMALL_M_STEP,
                  count = bsmm_ceil_div(p->b.m.rows, LANES);
    const bool has_codes = b == SCALED || p->b.m.format.scale == BSMM_SCALE_E8M0;
    const bool has_floats = bsmm_bf16_by_segment(p), is_plain = bsmm_small_m_tiny_is_plain(p);
    tile a;
    decoder d = decoder_of(tables);
    if (b == SCALED) d.table[0] = load_fours();
    __m512 acc[BSMM_TINY_COLS / LANES][ROWS];
    if (!load_a(p, steps, width, &a)) return false;
    for (int64_t i = 0; i < count; i++) {
        const int64_t col = i * LANES, cols = bsmm_min_i64(LANES, p->b.m.rows - col);
        panel_scales scales;
        bsmm_tiny_rows rows;
        __m512 sums[ROWS];
        if (!load_scales(&p->b, col, cols, b, &scales)) return false;
        bsmm_tiny_find_rows(&p->b, col, cols, BITS(b), &rows);
        multiply_panel(&a, &rows, has_codes ? &scales.codes : NULL, steps, width, b, &d, sums);
        if (has_floats) multiply_scales(&a, width, scales.floats, sums);
        memcpy(acc[i], sums, (size_t)width * sizeof *sums);
    }
    if (b == PLAIN && !is_usual(&d.extent)) return false;
    if (b == BYTES && _mm512_cmpge_epu8_mask(d.largest, _mm512_set1_epi8((char)tables->special)))
        return false;
    for (int64_t i = 0; i < count; i++)
        bsmm_tiny_store(p, is_plain, i * LANES, bsmm_min_i64(LANES, p->b.m.rows - i * LANES), width,
                        acc[i]);
    return true;
}

#    define VARIANT(width, kind)                                                                   \
        TARGET static bool multiply_##kind##_##width(const bsmm_product *p, const void *context) { \
            return multiply(p, context, width, kind);                                              \
        }
#    define VARIANTS(kind) VARIANT(4, kind) VARIANT(8, kind) VARIANT(12, kind) VARIANT(16, kind)
VARIANTS(FOURS)
VARIANTS(SCALED)
VARIANTS(BYTES)
VARIANTS(PLAIN)

static kind kind_of(const bsmm_product *p) {
    switch (bsmm_elem_row(p->b.m.format.elem)->bits) {
    case 4:
        return p->b.m.format.scale == BSMM_SCALE_E4M3 ? SCALED : FOURS;
    case 8:
        return BYTES;
    default:
        return PLAIN;
    }
}

bool bsmm_small_m_tiny_bf16dot(const bsmm_product *p, const void *context) {
    static bool (*const multiplies[4][4])(const bsmm_product *, const void *) = {
        [FOURS] = {multiply_FOURS_4, multiply_FOURS_8, multiply_FOURS_12, multiply_FOURS_16},
        [SCALED] = {multiply_SCALED_4, multiply_SCALED_8, multiply_SCALED_12, multiply_SCALED_16},
        [BYTES] = {multiply_BYTES_4, multiply_BYTES_8, multiply_BYTES_12, multiply_BYTES_16},
        [PLAIN] = {multiply_PLAIN_4, multiply_PLAIN_8, multiply_PLAIN_12, multiply_PLAIN_16},
    };
    if (!bsmm_tiny_has_usual_globals(p)) return false;
    return multiplies[kind_of(p)][bsmm_tiny_width(p) / 4 - 1](p, context);
}

#else

bool bsmm_small_m_tiny_bf16dot(const bsmm_product *p, const void *context) {
    (void)p, (void)context;
    return false;
}

#endif

static bool is_byte(uint32_t elem) {
    return elem == BSMM_ELEM_E4M3 || elem == BSMM_ELEM_E5M2;
}

/* Returns true if the operand has no scales, e8m0 scales of 32 elements, or fp32 scales. */
static bool has_known_scales(const bsmm_format *f) {
    return f->scale == BSMM_SCALE_NONE || f->scale == BSMM_SCALE_F32 ||
           (f->scale == BSMM_SCALE_E8M0 && f->block_cols == BSMM_SMALL_M_STEP);
}

static bool is_nvfp4(const bsmm_format *f) {
    return f->elem == BSMM_ELEM_E2M1 && f->scale == BSMM_SCALE_E4M3 &&
           f->block_cols == BSMM_SMALL_M_STEP / 2;
}

bool bsmm_small_m_tiny_bf16dot_takes(const bsmm_product *p) {
    const bsmm_format *a = &p->a.m.format, *b = &p->b.m.format;
    return (a->elem == BSMM_ELEM_BF16 || is_byte(a->elem)) &&
           (b->elem == BSMM_ELEM_BF16 || b->elem == BSMM_ELEM_E2M1 || is_byte(b->elem)) &&
           has_known_scales(a) && (has_known_scales(b) || is_nvfp4(b));
}
