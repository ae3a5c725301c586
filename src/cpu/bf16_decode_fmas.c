/* Few rows times weights as stored, by FMAs of fp32, the odd element of a pair first.
 *
 * The vector operations of 16 rows x 64 bytes and one row of A: 64 shuffles bring dwords of K into
 * lanes. Then 4-bit codes need a shift and a permute for 16 elements each. Codes of 6 and 8
 * bits become f16, which holds them all and their subnormals: a permute, a shift and a mask for 32
 * elements, and a conversion for 16, which is two operations. So 16 x 64 codes of 8 bits are 64
 * shuffles, 96 for f16, 32 to look for NaN, 128 for fp32 and 64 FMAs: 192 cycles of two ports.
 *
 * An e8m0 scale moves the sum, once in 32 of K, and not the elements. */
#include "cpu/bf16.h"
#include "cpu/bf16_decode.h"

#if defined(__x86_64__)

#    include "cpu/decode_avx512.h"

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_DECODE_LANES, PANELS = BSMM_DECODE_PANELS, WORDS = 16 };

/* A batch is 16 dwords of each row: 128 of K of 4 bits, else 64. */
#    define IS_NARROW(kind) ((kind) <= BSMM_PRODUCTS4)
#    define CODES(kind)     (IS_NARROW(kind) ? 8 : 4) /* in a dword */
#    define BATCH(kind)     (WORDS * CODES(kind))
#    define ROW_BYTES(kind) ((kind) == BSMM_SHIFTED6 ? 48 : 64)
#    define SCALED(kind)    ((kind) == BSMM_PRODUCTS4 ? 16 : 32) /* K of a scale */

typedef struct decoder {
    __m512 table;     /* of 4 bits */
    __m512i order[2]; /* of 6 and 8 bits: where the bytes of a pair's odd and even element are */
    __m512i down, mask;
    __m512i largest; /* magnitude met, of 8 bits */
} decoder;

INLINE void set_up(const bsmm_decode_tables *from, decoder *d) {
    d->table = _mm512_load_ps(from->bytes[0]);
    d->order[0] = _mm512_load_si512(from->bytes[0]);
    d->order[1] = _mm512_load_si512(from->bytes[1]);
    d->down = _mm512_set1_epi16((short)from->down);
    d->mask = _mm512_set1_epi16((short)from->mask);
    d->largest = _mm512_setzero_si512();
}

INLINE void load_batch(const uint8_t *b, int64_t pitch, bsmm_weights kind, __m512i word[WORDS]) {
    if (kind != BSMM_SHIFTED6) {
        bsmm_transpose_lines(b, pitch, word);
        return;
    }
    for (int i = 0; i < 2; i++) {
        bsmm_load_sixes(b + 24 * i, pitch, 0, word + 8 * i);
        bsmm_load_sixes(b + 24 * i + 8, pitch, 4, word + 8 * i + 4);
    }
}

/* Four codes to f16: of each pair the odd elements, and then the even ones. */
INLINE void make_halves(decoder *d, bsmm_weights kind, __m512i word, __m512i half[2]) {
    /* Codes of 6 bits to the top of bytes; what the window of 8 has beside them is masked. */
    const __m512i tops = _mm512_set1_epi64(0x302a241e100a043e);
    if (kind == BSMM_SHIFTED6) word = _mm512_multishift_epi64_epi8(tops, word);
    if (kind == BSMM_SHIFTED8)
        d->largest = _mm512_max_epu8(d->largest, _mm512_and_si512(word, _mm512_set1_epi8(0x7f)));
#    pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i top = _mm512_maskz_permutexvar_epi8(0xaaaaaaaaaaaaaaaa, d->order[i], word);
        half[i] = _mm512_and_si512(_mm512_srav_epi16(top, d->down), d->mask);
    }
}

/* ---- sums ---- */

/* Sums of all panels and rows, in units of what e8m0 scales of each column have become last. */
typedef struct sums {
    __m512 acc[BSMM_DECODE_WIDTH];
    __m512i unit[PANELS]; /* an exponent: how far the scale lies below the row's largest */
    __m512 scale[PANELS]; /* of e4m3, last taken */
} sums;

INLINE __m512 power_of_two(__m512i exponent) {
    return _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(127 << 23)));
}

/* Exact: sums and what is added to them are multiples of 2^-149 and far below fp32's largest in any
 * unit (bf16_pack.c). */
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

/* e4m3 read as f16, which the table makes up for. */
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

/* A dword of 4-bit codes of each lane. */
INLINE void add_nibbles(sums *to, const decoder *d, int panel, int width, const float *a,
                        __m512i word, bsmm_weights kind) {
#    pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        __m512 b =
            _mm512_permutexvar_ps(_mm512_srli_epi32(word, (unsigned)(4 * (i ^ 1))), d->table);
        if (kind == BSMM_PRODUCTS4) b = _mm512_mul_ps(b, to->scale[panel]);
        add_element(to, panel, width, a + i * width, b);
    }
}

INLINE void add_halves(sums *to, int panel, int width, const float *a, const __m512i half[2]) {
    const __m256i *from = (const __m256i *)(const void *)half;
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        add_element(to, panel, width, a + i * width, _mm512_cvtph_ps(_mm256_load_si256(from + i)));
}

/* Sums of a segment, times the product of its scales, into D's. */
INLINE void add_segment(const bsmm_decode_span *s, int64_t segment, const float *a_scales,
                        int width, int panels, sums *from) {
    for (int p = 0; p < panels; p++) {
        if (!s->scales) change_unit(from, p, width, _mm512_setzero_si512());
        __m512 column = _mm512_set1_ps(1);
        if (s->scales) column = _mm512_loadu_ps(s->scales + p * s->scale_pitch + segment * LANES);
        for (int r = 0; r < width; r++) {
            float *at = s->acc + r * BSMM_DECODE_COLUMNS + p * LANES;
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a_scales[r]), column);
            _mm512_storeu_ps(at,
                             _mm512_fmadd_ps(from->acc[p * width + r], scale, _mm512_loadu_ps(at)));
            from->acc[p * width + r] = _mm512_setzero_ps();
        }
    }
}

INLINE void take_scale(const bsmm_decode_span *s, const uint8_t *codes, int panel, int width,
                       bsmm_weights kind, sums *to) {
    codes += panel * s->scale_pitch;
    if (kind == BSMM_PRODUCTS4)
        to->scale[panel] = scale_of_codes(codes);
    else if (!s->scales)
        change_unit(to, panel, width, unit_of_codes(codes));
}

/* What is in flight of the panels' rows. */
typedef struct window {
    __m512i word[2][PANELS][WORDS]; /* of a batch and of the next */
    __m512i half[2][PANELS][2];     /* f16 of a word and of the next */
} window;

/* A batch that lies `at` bytes along the rows. */
typedef struct batch {
    const uint8_t *b;     /* of the next one, */
    const uint8_t *ahead; /* of a later one, to ask memory for */
    const float *a;
    const uint8_t *codes;
    int turn; /* which half of the window holds it */
} batch;

/* The next batch is brought into lanes a panel at a time, and the next word into halves, while
 * others wait in the multipliers: each keeps another port busy. */
INLINE void add_batch(const bsmm_decode_span *s, const batch *b, int width, int panels,
                      bsmm_weights kind, window *w, decoder *d, sums *to) {
    const int scaled = SCALED(kind) / CODES(kind), share = WORDS / panels;
    const float *a = b->a;
    const uint8_t *codes = b->codes;
    for (int i = 0; i < WORDS; i++, a += CODES(kind) * width) {
        if (i % share == 0)
            load_batch(b->b + i / share * LANES * s->pitch, s->pitch, kind,
                       w->word[!b->turn][i / share]);
        if (i % scaled == 0) {
            for (int p = 0; p < panels; p++)
                take_scale(s, codes, p, width, kind, to);
            codes += LANES;
        }
        const int next = (i + 1) % WORDS, turn = i + 1 < WORDS ? b->turn : !b->turn;
#    pragma GCC unroll 4
        for (int p = 0; p < panels; p++) {
            _mm_prefetch((const char *)b->ahead + (p * LANES + i) * s->pitch, _MM_HINT_T0);
            if (IS_NARROW(kind)) {
                add_nibbles(to, d, p, width, a, w->word[b->turn][p][i], kind);
                continue;
            }
            make_halves(d, kind, w->word[turn][p][next], w->half[next % 2][p]);
            add_halves(to, p, width, a, w->half[i % 2][p]);
        }
    }
}

/* From and to D's sums, which are in units of 1. */
INLINE void load_sums(const bsmm_decode_span *s, int width, int panels, bool begin_anew, sums *to) {
    for (int p = 0; p < panels; p++) {
        to->unit[p] = _mm512_setzero_si512();
        to->scale[p] = _mm512_setzero_ps();
        for (int r = 0; r < width; r++)
            to->acc[p * width + r] =
                begin_anew ? _mm512_setzero_ps()
                           : _mm512_loadu_ps(s->acc + r * BSMM_DECODE_COLUMNS + p * LANES);
    }
}

INLINE void store_sums(const bsmm_decode_span *s, int width, int panels, sums *from) {
    for (int p = 0; p < panels; p++) {
        if (!s->scales) change_unit(from, p, width, _mm512_setzero_si512());
        for (int r = 0; r < width; r++)
            _mm512_storeu_ps(s->acc + r * BSMM_DECODE_COLUMNS + p * LANES,
                             from->acc[p * width + r]);
    }
}

INLINE uint32_t find_special(const decoder *d, uint8_t special, int panels) {
    bool found = _mm512_cmpge_epu8_mask(d->largest, _mm512_set1_epi8((char)special)) != 0;
    return found ? (1u << panels) - 1 : 0;
}

INLINE uint32_t multiply(const bsmm_decode_span *s, int width, bsmm_weights kind, bool by_segment) {
    const bsmm_decode_tables *from = s->context;
    const int panels = width <= 4 ? 2 : 1;
    const int64_t unit = by_segment ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    const int64_t unit_bytes = BSMM_BF16_WIDE_UNIT_BYTES(width, unit);
    const int64_t k_end = s->steps * BSMM_DECODE_STEP;
    const int64_t row_bytes = k_end / BATCH(kind) * ROW_BYTES(kind);
    decoder d;
    sums t;
    set_up(from, &d);
    load_sums(s, width, panels, by_segment, &t);
    window w;
    for (int p = 0; p < panels; p++) {
        load_batch(s->b + p * LANES * s->pitch, s->pitch, kind, w.word[0][p]);
        if (!IS_NARROW(kind)) make_halves(&d, kind, w.word[0][p][0], w.half[0][p]);
    }
    for (int64_t k = 0, at = 0; k < k_end; k += BATCH(kind), at += ROW_BYTES(kind)) {
        const uint8_t *a = s->a + k / unit * unit_bytes;
        batch b = {.b = s->b + (k + BATCH(kind) < k_end ? at + ROW_BYTES(kind) : at),
                   .ahead = bsmm_decode_ahead(s, at, row_bytes),
                   .a = (const float *)(const void *)a + k % unit * width,
                   .codes = s->codes + k / BSMM_DECODE_STEP * BSMM_STEP_CODES(kind),
                   .turn = (int)(k / BATCH(kind) % 2)};
        add_batch(s, &b, width, panels, kind, &w, &d, &t);
        if (by_segment && (k + BATCH(kind)) % unit == 0)
            add_segment(s, k / unit, (const float *)(const void *)a + unit * width, width, panels,
                        &t);
    }
    if (!by_segment) store_sums(s, width, panels, &t);
    return kind == BSMM_SHIFTED8 ? find_special(&d, from->special, panels) : 0;
}

#    include "cpu/bf16_decode_variants.h"

const bsmm_bf16_decode_form bsmm_bf16_decode_fmas = {
    .panels = {2, 2, 2, 1, 1},
    .multiply = BSMM_DECODE_VARIANTS,
};

#else

typedef int bsmm_bf16_decode_fmas_needs_x86_64;

#endif
