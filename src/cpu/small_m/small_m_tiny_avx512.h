/* Defines functions that the AVX-512 functions for tiny products share (small_m_tiny.h): they load
 * scale codes and elements of 16 rows, and store accumulators. */
#ifndef BSMM_CPU_SMALL_M_TINY_AVX512_H
#define BSMM_CPU_SMALL_M_TINY_AVX512_H

#include "cpu/small_m/small_m_avx512.h"
#include "cpu/small_m/small_m_tiny.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define BSMM_TINY_INLINE                                                                           \
    static inline                                                                                  \
        __attribute__((always_inline, target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

/* Returns a mask of the lowest n bits; n may be 0 to 64. */
BSMM_TINY_INLINE __mmask64 bsmm_tiny_ones(int64_t n) {
    return n > 0 ? ~(uint64_t)0 >> (64 - n) : 0;
}

/* Returns true if each of the selected codes is between `least` and `most`. */
BSMM_TINY_INLINE bool bsmm_tiny_are_between(__m512i codes, __mmask64 there, uint8_t least,
                                            uint8_t most) {
    __m512i above = _mm512_sub_epi8(codes, _mm512_set1_epi8((char)least));
    return !(there & _mm512_cmpgt_epu8_mask(above, _mm512_set1_epi8((char)(most - least))));
}

/* This struct holds the 1-byte scale codes of up to 16 rows, one code for each scale unit (16 or 32
 * elements of K) of a row. A row has at most 8 codes. */
typedef struct bsmm_tiny_codes {
    __m512i part[2]; /* `part` holds the scale codes row by row. */
    /* `at` holds the position of each row's first code in `part`. Lanes past the last row repeat
     * the position of the first row. */
    __m128i at;
    /* There are two layouts of the codes. A scale unit is 16 or 32 elements of K. In the first
     * layout, all rows' codes of one scale unit are adjacent in memory. `columns` then points to
     * the codes of unit 0, those of the next unit begin `step` bytes later, and `part` and `at` are
     * not used. In the second layout, the codes of each row are adjacent, and `columns` is NULL. */
    const uint8_t *columns;
    uint64_t step;
    __mmask16 rows; /* `rows` selects the rows that exist. */
} bsmm_tiny_codes;

/* Loads the scale codes of rows [row, row + rows). Returns false if a code is not between `least`
 * and `most`. */
BSMM_TINY_INLINE bool bsmm_tiny_load_codes(const bsmm_operand *o, int64_t row, int64_t rows,
                                           uint8_t least, uint8_t most, bsmm_tiny_codes *to) {
    const int64_t units = o->map.cols;
    const uint8_t *at = o->m.scales;
    to->rows = (__mmask16)bsmm_tiny_ones(rows);
    to->columns = NULL;
    to->part[0] = to->part[1] = _mm512_setzero_si512();
    to->at = _mm_setzero_si128();
    to->step = 0;
    if (o->map.digit_count == 0 && o->map.tile_row_step == (uint64_t)units) {
        const int64_t bytes = rows * units;
        const __mmask64 near = bsmm_tiny_ones(bytes < 64 ? bytes : 64);
        const __mmask64 far = bsmm_tiny_ones(bytes - 64);
        const __m256i places = _mm256_mullo_epi16(
            _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
            _mm256_set1_epi16((int16_t)units));
        at += row * units;
        to->part[0] = _mm512_maskz_loadu_epi8(near, at);
        to->part[1] = _mm512_maskz_loadu_epi8(far, at + 64);
        to->at = _mm512_castsi512_si128(_mm512_maskz_mov_epi8(
            to->rows, _mm512_castsi128_si512(_mm_packus_epi16(
                          _mm256_castsi256_si128(places), _mm256_extracti128_si256(places, 1)))));
        return bsmm_tiny_are_between(to->part[0], near, least, most) &&
               bsmm_tiny_are_between(to->part[1], far, least, most);
    }
    to->columns = at + (uint64_t)(row / BSMM_SMALL_M_LANES) * o->map.tile_row_step;
    to->step = o->map.tile_col_step;
    for (int64_t i = 0; i < units; i++) {
        __m512i codes = _mm512_maskz_loadu_epi8(to->rows, to->columns + (uint64_t)i * to->step);
        if (!bsmm_tiny_are_between(codes, to->rows, least, most)) return false;
    }
    return true;
}

/* Returns the scale codes of the 16 rows for the range number `unit` of K (16 or 32 elements with
 * one scale per row). */
BSMM_TINY_INLINE __m128i bsmm_tiny_codes_of(const bsmm_tiny_codes *c, int64_t unit) {
    if (c->columns)
        return _mm512_castsi512_si128(
            _mm512_maskz_loadu_epi8(c->rows, c->columns + (uint64_t)unit * c->step));
    __m128i at = _mm_add_epi8(c->at, _mm_set1_epi8((char)unit));
    return _mm512_castsi512_si128(
        _mm512_permutex2var_epi8(c->part[0], _mm512_castsi128_si512(at), c->part[1]));
}

/* This struct describes where the elements of up to 16 rows of B lie. */
typedef struct bsmm_tiny_rows {
    const uint8_t *first;
    /* offset[i] is the distance in bytes from the first row to row i. Rows past the last row of B
     * do not exist; for them the offset is 0, so that the code reads the first row instead. */
    int64_t offset[BSMM_SMALL_M_LANES];
    /* In compact weights, 16 rows are stored together in words of 4 bytes, and `word_bytes` is the
     * distance from one word of a row to its next word. It is 0 in row-major weights. */
    int64_t word_bytes;
    __mmask16 there; /* `there` selects the rows that exist. */
} bsmm_tiny_rows;

BSMM_TINY_INLINE void bsmm_tiny_find_rows(const bsmm_operand *o, int64_t row, int64_t rows,
                                          uint32_t bits, bsmm_tiny_rows *to) {
    const int64_t pitch = o->m.ld * bits / 8;
    to->first = (const uint8_t *)o->m.data + row * pitch;
    to->there = (__mmask16)bsmm_tiny_ones(rows);
    to->word_bytes = o->m.order == BSMM_ORDER_ROW ? 0 : 4 * rows;
    for (int64_t i = 0; i < BSMM_SMALL_M_LANES; i++)
        to->offset[i] = i < rows ? i * pitch : 0;
}

BSMM_TINY_INLINE __m128i bsmm_tiny_load_16(const bsmm_tiny_rows *rows, int row, int64_t at) {
    return _mm_loadu_si128((const __m128i *)(const void *)(rows->first + rows->offset[row] + at));
}

/* Loads words number 4 * i to 4 * i + 3 of 16 rows. A word is 4 bytes of a row. Lane r of word[d]
 * gets word number 4 * i + d of row r. */
BSMM_TINY_INLINE void bsmm_tiny_load_words(const bsmm_tiny_rows *rows, int64_t i, __m512i word[4]) {
    if (rows->word_bytes) {
        for (int64_t d = 0; d < 4; d++)
            word[d] =
                _mm512_maskz_loadu_epi32(rows->there, rows->first + (4 * i + d) * rows->word_bytes);
        return;
    }
    __m512i row[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        __m512i v = _mm512_castsi128_si512(bsmm_tiny_load_16(rows, r, 16 * i));
        v = _mm512_inserti32x4(v, bsmm_tiny_load_16(rows, r + 4, 16 * i), 1);
        v = _mm512_inserti32x4(v, bsmm_tiny_load_16(rows, r + 8, 16 * i), 2);
        row[r] = _mm512_inserti32x4(v, bsmm_tiny_load_16(rows, r + 12, 16 * i), 3);
    }
    bsmm_transpose(row, word);
}

/* Stores the sums of `width` rows and up to 16 columns to D. Sums of columns past the end of D are
 * not stored. The sums are neither NaN nor subnormal, so one rounding to bf16 gives the same bits
 * as the epilogue. */
BSMM_TINY_INLINE void bsmm_tiny_store(const bsmm_product *p, bool is_plain, int64_t col,
                                      int64_t cols, int width, const __m512 *acc) {
    const __mmask16 there = (__mmask16)bsmm_tiny_ones(cols);
    const int64_t rows = p->a.m.rows, ld = p->d.m.ld;
    if (!is_plain) {
        bsmm_tiny_panel panel;
        for (int r = 0; r < width; r++)
            _mm512_store_ps(panel.acc[r], acc[r]);
        panel.col = col;
        panel.cols = cols;
        bsmm_small_m_tiny_store(p, &panel);
        return;
    }
    const bool is_f32 = p->d.m.format.elem == BSMM_ELEM_F32;
    float *to = (float *)p->d.m.data + col;
    uint16_t *half = (uint16_t *)p->d.m.data + col;
#pragma GCC unroll 16
    for (int r = 0; r < width; r++) {
        if (r >= rows) return;
        if (is_f32) {
            _mm512_mask_storeu_ps(to + r * ld, there, acc[r]);
            continue;
        }
        __m512i bits = _mm512_castps_si512(acc[r]);
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        bits = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
        _mm256_mask_storeu_epi16(half + r * ld, there,
                                 _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
    }
}

/* Rounds the number of rows of A up to 4, 8, 12 or 16. The loops exist only for these numbers of
 * rows. */
static inline int bsmm_tiny_width(const bsmm_product *p) {
    return (int)bsmm_round_up(p->a.m.rows, 4);
}

/* Returns true if the second-level scales of A and B (one scale for each matrix) are finite.
 * Otherwise the results must be summed in double. */
static inline bool bsmm_tiny_has_usual_globals(const bsmm_product *p) {
    return (!p->a.m.global_scale || isfinite(bsmm_operand_global(&p->a))) &&
           (!p->b.m.global_scale || isfinite(bsmm_operand_global(&p->b)));
}

#endif
