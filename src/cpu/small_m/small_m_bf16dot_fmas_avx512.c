/* Multiplies few rows of A by weights B with fp32 FMAs. B is read as it is stored. The elements of
 * K are multiplied in pairs, first the odd and then the even element, so that results are bitwise
 * identical to those of the loops with vdpbf16ps, which adds in this order.
 *
 * Vector operations limit the loop: the processor executes two per cycle. The 16 rows of a panel
 * must be transposed, so that a lane of a vector holds one row. This is done mostly through memory,
 * with loads and stores, which need no vector operation. While one batch (64 bytes of each row) is
 * multiplied, the next batch is copied to a buffer in pieces of 16 bytes. There the pieces of
 * different rows lie side by side. Each cache line of B is read once. Eight shuffles then turn 16
 * pieces into vectors.
 *
 * 4-bit codes need a shift and a permute for each 16 elements. For longer codes, tables give the
 * low and the high byte of the bf16 values, and both bytes are interleaved to pairs of bf16 in
 * 32-bit lanes. The odd element of a pair is the upper half of its lane and needs no shift to
 * become an fp32 number; the even one is shifted.
 *
 * Elements are not multiplied by their e8m0 scales. Instead, an accumulator holds its sum divided
 * by the scale of the current block (32 elements of K). When the next block has another scale, the
 * accumulator is multiplied by the old scale divided by the new one. This needs fewer operations.
 */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_avx512.h"

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES, PANELS = BSMM_SMALL_M_PANELS, WORDS = 16 };

/* A batch is 16 words of 32 bits of each row of B: 128 elements of K for 4-bit codes, else 64. */
#    define IS_NARROW(kind) ((kind) <= BSMM_PRODUCTS4)
/* CODES is the number of codes in a 32-bit word. */
#    define CODES(kind)     (IS_NARROW(kind) ? 8 : 4)
#    define BATCH(kind)     (WORDS * CODES(kind))
#    define ROW_BYTES(kind) ((kind) == BSMM_SHIFTED6 ? 48 : 64)
/* SCALED is the number of elements of K that share a scale. */
#    define SCALED(kind) ((kind) == BSMM_PRODUCTS4 ? 16 : 32)

typedef struct decoder {
    __m512 table; /* `table` holds the values of the 4-bit codes. */
    /* `low` and `high` are lookup tables for codes of 6 and 8 bits. For each code they give the
     * value of the element as bf16: `low` its low byte, and `high` its high byte. */
    __m512i low[2], high[2];
} decoder;

INLINE void set_up(const bsmm_decode_tables *from, decoder *d) {
    d->table = _mm512_load_ps(from->bytes[0]);
    for (int i = 0; i < 2; i++) {
        d->low[i] = _mm512_load_si512(from->bytes[i]);
        d->high[i] = _mm512_load_si512(from->bytes[2 + i]);
    }
}

enum { QUARTERS = 4, QUARTER_WORDS = WORDS / QUARTERS, QUARTER_BYTES = 16 * LANES };

/* This type holds a batch (16 words) of each of the 16 rows of a panel, divided into four quarters.
 * A quarter is four vectors; the 128-bit parts of vector i hold rows i, i + 4, i + 8 and i + 12. */
typedef uint8_t panel_rows[QUARTERS][QUARTER_BYTES];

/* Copies one row of a batch from B to a buffer. The row has 64 bytes, or 48 bytes if codes have 6
 * bits. It is copied in four quarters of 16 or 12 bytes, and each copy moves 16 bytes. A copy of 12
 * bytes therefore moves 4 bytes too many. In the first and third quarter these are bytes of the
 * next quarter. In the second and fourth quarter the copy begins 4 bytes earlier instead, so that
 * it does not read past the end of B's row; take_quarter skips these 4 bytes. */
INLINE void copy_row(const uint8_t *from, bsmm_weights kind, int row, panel_rows to) {
#    pragma GCC unroll 4
    for (int q = 0; q < QUARTERS; q++) {
        const uint8_t *at = from + (kind == BSMM_SHIFTED6 ? 12 * q - 4 * (q & 1) : 16 * q);
        _mm_store_si128((__m128i *)(void *)(to[q] + row % 4 * 64 + row / 4 * 16),
                        _mm_loadu_si128((const __m128i *)(const void *)at));
    }
}

/* Moves 6-bit codes to bytes. The upper two bits of each byte are arbitrary; the table lookup
 * ignores them. */
INLINE __m512i spread_sixes(__m512i row, int skip) {
    const __m512i sixes = _mm512_set1_epi64(0x322c2620120c0600);
    return _mm512_multishift_epi64_epi8(sixes, _mm512_shuffle_epi8(row, bsmm_sixes_order(skip)));
}

/* Loads a quarter of a batch, i.e. four 32-bit words of each of the 16 rows, and transposes it:
 * word[d] gets word d of all 16 rows. For 4-bit codes, lane i of word[d] is the word of row i. For
 * 6-bit and 8-bit codes, each word is split into its low and its high 16 bits. Each 128 bits of
 * word[d] then have the low 16 bits of four rows, followed by the high 16 bits of the same rows.
 * The unpack instructions of make_pairs need this order. */
INLINE void take_quarter(panel_rows from, bsmm_weights kind, int q, __m512i word[QUARTER_WORDS]) {
    __m512i row[4];
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        row[i] = _mm512_load_si512(from[q] + i * 64);
        if (kind == BSMM_SHIFTED6) row[i] = spread_sixes(row[i], 4 * (q & 1));
    }
    if (IS_NARROW(kind))
        bsmm_transpose(row, word);
    else
        bsmm_transpose_pairs(row, word);
}

/* Decodes 6-bit or 8-bit codes, one per byte, to pairs of bf16. Each 32-bit word of a row holds
 * four codes: pair[0] gets the first two, and pair[1] the last two. */
INLINE void make_pairs(const decoder *d, bsmm_weights kind, __m512i word, __m512i pair[2]) {
    __m512i low, high;
    if (kind == BSMM_SHIFTED6) {
        low = _mm512_permutexvar_epi8(word, d->low[0]);
        high = _mm512_permutexvar_epi8(word, d->high[0]);
    } else {
        low = _mm512_permutex2var_epi8(d->low[0], word, d->low[1]);
        high = _mm512_permutex2var_epi8(d->high[0], word, d->high[1]);
        /* The values in the tables have no sign. This instruction adds the sign bit of the code. */
        high = _mm512_ternarylogic_epi32(high, word, _mm512_set1_epi8((char)0x80), 0xf8);
    }
    pair[0] = _mm512_unpacklo_epi8(low, high);
    pair[1] = _mm512_unpackhi_epi8(low, high);
}

/* `sums` holds the accumulators of all panels of B (16 rows each) and rows of A. With e8m0 scales,
 * an accumulator is the sum divided by the scale of the current block of its row of B, which is
 * called its unit. The products of the block's elements can then be added without a multiplication
 * by the scale. */
typedef struct sums {
    __m512 acc[BSMM_SMALL_M_WIDTH];
    /* `unit` holds, for each panel and each of its rows, the scale by which the row's accumulators
     * are divided at present. The scale itself is divided by the row's largest scale. It is stored
     * as an exponent in the position of fp32's exponent bits. */
    __m512i unit[PANELS];
    __m512 scale[PANELS]; /* `scale` holds the current block's scales, if they are e4m3. */
} sums;

INLINE __m512 power_of_two(__m512i exponent) {
    return _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(127 << 23)));
}

/* An accumulator holds a sum divided by the scale of the current block of B's row, called its unit.
 * Converts the accumulators of a panel (16 rows of B) to a new scale, `unit`, if the scale changes
 * along K. The function multiplies them by the old scale divided by the new one, which is a power
 * of two. The multiplication is exact, because with any scale the accumulators and products are
 * multiples of 2^-149 and far below fp32's largest value (pack_bf16dot.c). */
INLINE void change_unit(sums *to, int panel, int width, __m512i unit) {
    __m512 factor = power_of_two(_mm512_sub_epi32(unit, to->unit[panel]));
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        to->acc[panel * width + r] = _mm512_mul_ps(to->acc[panel * width + r], factor);
    to->unit[panel] = unit;
}

INLINE __m512i unit_of_codes(const uint8_t *codes) {
    __m128i v = _mm_load_si128((const __m128i *)(const void *)codes);
    return _mm512_slli_epi32(_mm512_cvtepu8_epi32(v), 23);
}

/* Converts e4m3 scales to fp32 by reading their bits as f16. The result is 2^-8 times the scale.
 * The table of the elements' values is multiplied by 2^8 to compensate. */
INLINE __m512 scale_of_codes(const uint8_t *codes) {
    __m128i v = _mm_load_si128((const __m128i *)(const void *)codes);
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(v), 7));
}

INLINE void add_element(sums *to, int panel, int width, const float *a, __m512 b) {
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        to->acc[panel * width + r] =
            _mm512_fmadd_ps(_mm512_set1_ps(a[r]), b, to->acc[panel * width + r]);
}

/* Decodes code number i ^ 1 of each lane's 32-bit word of 4-bit codes. If `kind` is BSMM_PRODUCTS4,
 * also multiplies the elements by their e4m3 scales. The caller adds the products for i = 0, 1, 2
 * and so on. Because of i ^ 1, it adds the odd code of each pair before the even one. vdpbf16ps
 * adds in the same order, so both give the same bits. */
INLINE __m512 take_nibble(const sums *from, const decoder *d, int panel, int i, __m512i word,
                          bsmm_weights kind) {
    __m512 b = _mm512_permutexvar_ps(_mm512_srli_epi32(word, (unsigned)(4 * (i ^ 1))), d->table);
    return kind == BSMM_PRODUCTS4 ? _mm512_mul_ps(b, from->scale[panel]) : b;
}

INLINE __m512 take_half(const __m512i pair[2], int i) {
    __m512i b = i % 2 == 0 ? _mm512_and_si512(pair[i / 2], _mm512_set1_epi32((int)0xffff0000))
                           : _mm512_slli_epi32(pair[i / 2], 16);
    return _mm512_castsi512_ps(b);
}

/* Multiplies one 32-bit word of codes of each row of B by the rows of A. The loops alternate
 * between several panels (16 rows of B), because an FMA must wait for the previous FMA on the same
 * accumulator. */
INLINE void add_word(sums *to, const decoder *d, int panels, int width, const float *a,
                     const __m512i word[PANELS], bsmm_weights kind) {
    const int codes = CODES(kind);
    __m512i pair[PANELS][2];
#    pragma GCC unroll 4
    for (int p = 0; p < panels && !IS_NARROW(kind); p++)
        make_pairs(d, kind, word[p], pair[p]);
#    pragma GCC unroll 8
    for (int i = 0; i < codes; i++)
#    pragma GCC unroll 4
        for (int p = 0; p < panels; p++)
            add_element(to, p, width, a + i * width,
                        IS_NARROW(kind) ? take_nibble(to, d, p, i, word[p], kind)
                                        : take_half(pair[p], i));
}

/* Multiplies the sums of a segment (128 elements of K) by the scale of A's row times the scale of
 * B's row, and adds the products to D's accumulators in memory. */
INLINE void add_segment(const bsmm_small_m_span *s, int64_t segment, const float *a_scales,
                        int width, int panels, sums *from) {
    for (int p = 0; p < panels; p++) {
        if (!s->scales) change_unit(from, p, width, _mm512_setzero_si512());
        __m512 column = _mm512_set1_ps(1);
        if (s->scales) column = _mm512_loadu_ps(s->scales + p * s->scale_pitch + segment * LANES);
        for (int r = 0; r < width; r++) {
            float *at = s->acc + r * BSMM_SMALL_M_COLUMNS + p * LANES;
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            _mm512_storeu_ps(at,
                             _mm512_fmadd_ps(from->acc[p * width + r], scale, _mm512_loadu_ps(at)));
            from->acc[p * width + r] = _mm512_setzero_ps();
        }
    }
}

INLINE void take_scale(const bsmm_small_m_span *s, const uint8_t *codes, int panel, int width,
                       bsmm_weights kind, sums *to) {
    codes += panel * s->scale_pitch;
    if (kind == BSMM_PRODUCTS4)
        to->scale[panel] = scale_of_codes(codes);
    else if (!s->scales)
        change_unit(to, panel, width, unit_of_codes(codes));
}

/* A batch is 16 words (64 bytes) of each row of B, i.e. the range of K that is multiplied at a
 * time. This struct has pointers to the current batch and to later ones. */
typedef struct batch {
    /* A batch is 16 words of each row of B. `b` points to the batch after the current one. It is
     * copied to `next` while the current batch is multiplied. */
    const uint8_t *b;
    const uint8_t *ahead; /* `ahead` points to a later batch of B, which is prefetched. */
    const float *a;
    const uint8_t *codes;
    /* A batch is the range of K that is multiplied at a time. The rows of B in a batch are copied
     * to a buffer before they are multiplied. `rows` is the buffer for the current batch, and
     * `next` is the one into which the next batch is copied meanwhile. Both have one entry for each
     * panel (16 rows of B). */
    panel_rows *rows, *next;
} batch;

/* A batch is 64 bytes of each row of the panels (16 rows of B each). Copies row number `row` of
 * each panel from the next batch, and prefetches this row's cache line of a later batch. Cache
 * lines of 4-bit codes are prefetched only to L2. The reason is that 4-bit codes are read from more
 * rows side by side than other codes. If the stride of the rows is a power of two, these rows map
 * to the same sets of L1 and would evict each other. */
INLINE void bring_row(const bsmm_small_m_span *s, const batch *b, int panels, bsmm_weights kind,
                      int row) {
#    pragma GCC unroll 4
    for (int p = 0; p < panels; p++) {
        int64_t at = (p * LANES + row) * s->pitch;
        copy_row(b->b + at, kind, row, b->next[p]);
        if (IS_NARROW(kind))
            _mm_prefetch((const char *)b->ahead + at, _MM_HINT_T1);
        else
            _mm_prefetch((const char *)b->ahead + at, _MM_HINT_T0);
    }
}

INLINE void add_batch(const bsmm_small_m_span *s, const batch *b, int width, int panels,
                      bsmm_weights kind, const decoder *d, sums *to) {
    const int scaled = SCALED(kind) / CODES(kind);
    const float *a = b->a;
    const uint8_t *codes = b->codes;
    for (int q = 0; q < QUARTERS; q++) {
        __m512i word[PANELS][QUARTER_WORDS];
#    pragma GCC unroll 4
        for (int p = 0; p < panels; p++)
            take_quarter(b->rows[p], kind, q, word[p]);
#    pragma GCC unroll 4
        for (int i = 0; i < QUARTER_WORDS; i++, a += CODES(kind) * width) {
            bring_row(s, b, panels, kind, QUARTERS * i + q);
            if ((QUARTER_WORDS * q + i) % scaled == 0) {
                for (int p = 0; p < panels; p++)
                    take_scale(s, codes, p, width, kind, to);
                codes += LANES;
            }
            __m512i of_each[PANELS];
#    pragma GCC unroll 4
            for (int p = 0; p < panels; p++)
                of_each[p] = word[p][i];
            add_word(to, d, panels, width, a, of_each, kind);
        }
    }
}

/* A chunk is a range of K that is summed by itself. A call of `multiply` may cover only a part of a
 * chunk. load_sums sets the sums to 0 at the beginning of a chunk, and otherwise loads the sums of
 * the chunk's first part from s->part. At the end of the call, add_sums adds the sums to D's
 * accumulators if the chunk is complete. Otherwise store_sums stores them to s->part. With e8m0
 * scales, a sum in a register is divided by the scale of the current block; a sum in memory is not.
 */
INLINE void load_sums(const bsmm_small_m_span *s, int width, int panels, sums *to) {
    for (int p = 0; p < panels; p++) {
        to->unit[p] = _mm512_setzero_si512();
        to->scale[p] = _mm512_setzero_ps();
        for (int r = 0; r < width; r++)
            to->acc[p * width + r] =
                s->first ? _mm512_loadu_ps(s->part + r * BSMM_SMALL_M_COLUMNS + p * LANES)
                         : _mm512_setzero_ps();
    }
}

INLINE void store_sums(const bsmm_small_m_span *s, int width, int panels, sums *from) {
    for (int p = 0; p < panels; p++) {
        if (!s->scales) change_unit(from, p, width, _mm512_setzero_si512());
        for (int r = 0; r < width; r++)
            _mm512_storeu_ps(s->part + r * BSMM_SMALL_M_COLUMNS + p * LANES,
                             from->acc[p * width + r]);
    }
}

INLINE void add_sums(const bsmm_small_m_span *s, int width, int panels, sums *from) {
    for (int p = 0; p < panels; p++) {
        if (!s->scales) change_unit(from, p, width, _mm512_setzero_si512());
        for (int r = 0; r < width; r++) {
            float *at = s->acc + r * BSMM_SMALL_M_COLUMNS + p * LANES;
            _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), from->acc[p * width + r]));
            from->acc[p * width + r] = _mm512_setzero_ps();
        }
    }
}

TARGET static bool has_special(const uint8_t *b, int64_t pitch, int64_t bytes, uint8_t special) {
    __m512i largest = _mm512_setzero_si512();
    for (int row = 0; row < LANES; row++)
        for (int64_t i = 0; i < bytes; i += 64)
            largest =
                _mm512_max_epu8(largest, _mm512_and_si512(_mm512_loadu_si512(b + row * pitch + i),
                                                          _mm512_set1_epi8(0x7f)));
    return _mm512_cmpge_epu8_mask(largest, _mm512_set1_epi8((char)special)) != 0;
}

/* Finds the panels of B (16 rows each) that must be packed because they contain Inf or NaN. An
 * element that is Inf or NaN makes a result Inf or NaN. The codes are therefore read again only if
 * a result is not finite. */
TARGET static uint32_t find_special(const bsmm_small_m_span *s, int width, int panels,
                                    int64_t bytes, bool has_part) {
    const bsmm_decode_tables *from = s->context;
    uint32_t found = 0;
    for (int p = 0; p < panels; p++) {
        __mmask16 any = 0;
        for (int r = 0; r < width; r++) {
            const int64_t at = r * BSMM_SMALL_M_COLUMNS + p * LANES;
            /* 0x99 selects quiet NaN, signalling NaN, Inf and -Inf. */
            any |= _mm512_fpclass_ps_mask(_mm512_loadu_ps(s->acc + at), 0x99);
            if (has_part) any |= _mm512_fpclass_ps_mask(_mm512_loadu_ps(s->part + at), 0x99);
        }
        if (any && has_special(s->b + p * LANES * s->pitch, s->pitch, bytes, from->special))
            found |= 1u << p;
    }
    return found;
}

/* PANELS_OF is the number of panels (16 rows of B each) that are multiplied side by side. An FMA
 * must wait four cycles for the previous FMA on the same accumulator, so with few rows of A several
 * panels are needed to hide this latency. But reading many rows of B side by side makes memory
 * slower. Only the loop for one row of A and 4-bit codes with e8m0 scales, which is the fastest
 * one, gains from four panels. */
#    define PANELS_OF(kind, width)                                                                 \
        ((kind) == BSMM_SHIFTED4 && (width) == 1 ? 4 : (width) <= 4 ? 2 : 1)

INLINE uint32_t multiply(const bsmm_small_m_span *s, int width, bsmm_weights kind,
                         bool by_segment) {
    const int panels = PANELS_OF(kind, width);
    const int64_t unit = by_segment ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    const int64_t unit_bytes = BSMM_BF16_WIDE_UNIT_BYTES(width, unit);
    const int64_t k_end = s->steps * BSMM_SMALL_M_STEP;
    const int64_t row_bytes = k_end / BATCH(kind) * ROW_BYTES(kind);
    const int64_t ahead_bytes = s->row_steps * BSMM_SMALL_M_STEP / BATCH(kind) * ROW_BYTES(kind);
    const int64_t chunk = s->chunk_steps * BSMM_SMALL_M_STEP;
    /* `left` is the number of elements of K to the end of the chunk (a range of K that is summed by
     * itself). */
    int64_t left = chunk - s->first * BSMM_SMALL_M_STEP;
    decoder d;
    sums t;
    set_up(s->context, &d);
    load_sums(s, width, panels, &t);
    _Alignas(64) panel_rows rows[2][PANELS];
    for (int p = 0; p < panels; p++)
        for (int r = 0; r < LANES; r++)
            copy_row(s->b + (p * LANES + r) * s->pitch, kind, r, rows[0][p]);
    for (int64_t k = 0, at = 0; k < k_end; k += BATCH(kind), at += ROW_BYTES(kind)) {
        const uint8_t *a = s->a + k / unit * unit_bytes;
        const int64_t buffer = k / BATCH(kind) % 2;
        batch b = {.b = s->b + (k + BATCH(kind) < k_end ? at + ROW_BYTES(kind) : at),
                   .ahead = bsmm_small_m_ahead(s, at, ahead_bytes),
                   .a = (const float *)(const void *)a + k % unit * width,
                   .codes = s->codes + k / BSMM_SMALL_M_STEP * BSMM_STEP_CODES(kind),
                   .rows = rows[buffer],
                   .next = rows[!buffer]};
        add_batch(s, &b, width, panels, kind, &d, &t);
        if (by_segment && (k + BATCH(kind)) % unit == 0)
            add_segment(s, k / unit, (const float *)(const void *)a + unit * width, width, panels,
                        &t);
        left -= BATCH(kind);
        if (!by_segment && left == 0) {
            add_sums(s, width, panels, &t);
            left = chunk;
        }
    }
    if (!by_segment && s->ends)
        add_sums(s, width, panels, &t);
    else if (!by_segment)
        store_sums(s, width, panels, &t);
    const bool has_part = !by_segment && !s->ends;
    return kind == BSMM_SHIFTED8 ? find_special(s, width, panels, row_bytes, has_part) : 0;
}

#    include "cpu/small_m/small_m_bf16dot_variants.h"

const bsmm_small_m_bf16_form bsmm_small_m_bf16_fmas = {
    .panels = BSMM_SMALL_M_VARIANT_PANELS,
    .multiply = BSMM_SMALL_M_VARIANTS,
};

#else

typedef int bsmm_small_m_bf16_fmas_needs_x86_64;

#endif
