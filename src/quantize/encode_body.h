/* Rows of values to codes, CHUNK at a time, included by an instruction set's file after it has
 * defined INLINE, TARGET, `vec`, CHUNK codes in bytes, vector_coder and
 *
 *     vector_coder_of  a coder's constants in registers
 *     encode_chunk     CHUNK values to codes
 *     store_chunk      codes packed to memory
 *     store_last       the first few, with 0 for what completes their group
 *     encode_windows   CHUNK values, bf16, to codes of e2m1 under powers of two, where has_windows
 *                      says so and blocks have whole WORDS; WINDOW_TARGET are its attributes,
 *                      WINDOW_BASE is what factor 0's window would be */
#ifndef BSMM_QUANTIZE_ENCODE_BODY_H
#define BSMM_QUANTIZE_ENCODE_BODY_H

#include "quantize/encode_row.h"

#include <string.h>

/* The processor's own prefetching stops where strips are read twice. */
INLINE void prefetch_chunk(const uint8_t *from, uint32_t elem, int64_t ahead) {
    for (int64_t i = 0; i < CHUNK * (elem == BSMM_ELEM_F32 ? 4 : 2) / 64; i++)
        _mm_prefetch((const char *)from + ahead + 64 * i, _MM_HINT_T0);
}

/* The last values of a row come through a copy; nothing past them is touched. `bits`, `elem` and
 * `way` are the row's. */
INLINE void encode_all(const bsmm_coder *coder, const encode_row *row, uint32_t bits, uint32_t elem,
                       element_way way, encode_care care) {
    const vector_coder k = vector_coder_of(coder, bits);
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *from = row->from;
    uint8_t *to = row->to;
    meeting_cursor cursor = {factors_from(row->factors, row->cols, row->width),
                             factors_from(row->reciprocals, row->cols, row->width)};
    int64_t left = row->cols;
    for (; left >= CHUNK; left -= CHUNK, from += CHUNK * bytes, to += CHUNK / 8 * bits) {
        prefetch_chunk(from, elem, row->ahead * bytes);
        vec codes = encode_chunk(&k, from, elem, &cursor, way, care);
        store_chunk(to, codes, bits);
    }
    if (left == 0) return;
    float last[CHUNK] = {0};
    memcpy(last, from, (size_t)(left * bytes));
    store_last(to, encode_chunk(&k, last, elem, &cursor, way, care), left, bits);
}

/* ---- bf16 to e2m1 under powers of two ---- */

/* Windows, twice in a dword, of factors; false unless those are powers of two and what becomes 0.25
 * is normal. */
TARGET static bool find_windows(const float *factors, int64_t n, float *windows) {
    uint32_t unusual = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t factor = bsmm_float_bits(factors[i]);
        uint32_t window = WINDOW_BASE - (factor >> 15);
        unusual |= (factor & 0x807fffff) | (uint32_t)(factor - 1 >= 251u << 23);
        windows[i] = bsmm_bits_float(window << 16 | window);
    }
    return !unusual;
}

/* As encode_all; the row's factors are windows. */
WINDOW_TARGET static void encode_by_windows(const encode_row *row) {
    const uint16_t *from = row->from;
    uint8_t *to = row->to;
    factor_cursor cursor = factors_from(row->factors, row->cols, row->width);
    int64_t left = row->cols;
    for (; left >= CHUNK; left -= CHUNK, from += CHUNK, to += CHUNK / 2) {
        prefetch_chunk((const uint8_t *)from, BSMM_ELEM_BF16, row->ahead * 2);
        store_chunk(to, encode_windows(from, &cursor), 4);
    }
    if (left == 0) return;
    uint16_t last[CHUNK] = {0};
    memcpy(last, from, (size_t)(left * 2));
    store_last(to, encode_windows(last, &cursor), left, 4);
}

static bool takes_windows(const encode_row *row) {
    return row->elem == BSMM_ELEM_BF16 && row->bits == 4 && row->way == WAY_MULTIPLY &&
           (row->width % WORDS == 0 || row->cols <= row->width) && has_windows();
}

/* ---- which loop ---- */

INLINE void encode_elem(const bsmm_coder *coder, const encode_row *row, uint32_t bits,
                        element_way way, encode_care care) {
    if (row->elem == BSMM_ELEM_F32)
        encode_all(coder, row, bits, BSMM_ELEM_F32, way, care);
    else if (row->elem == BSMM_ELEM_BF16)
        encode_all(coder, row, bits, BSMM_ELEM_BF16, way, care);
    else
        encode_all(coder, row, bits, BSMM_ELEM_F16, way, care);
}

/* The usual case has a loop for each width, element and way. */
TARGET static void encode_care_none(const bsmm_coder *coder, const encode_row *row) {
    if (row->way == WAY_DIVIDE_TAME)
        encode_elem(coder, row, row->bits, WAY_DIVIDE_TAME, CARE_NONE);
    else if (row->bits == 4)
        encode_elem(coder, row, 4, WAY_MULTIPLY, CARE_NONE);
    else if (row->bits == 6)
        encode_elem(coder, row, 6, WAY_MULTIPLY, CARE_NONE);
    else
        encode_elem(coder, row, 8, WAY_MULTIPLY, CARE_NONE);
}

/* Nearly all recipes that ask for it are e2m1's. */
TARGET static void encode_care_plus(const bsmm_coder *coder, const encode_row *row) {
    if (row->way == WAY_MULTIPLY && row->bits == 4)
        encode_elem(coder, row, 4, WAY_MULTIPLY, CARE_PLUS);
    else if (row->way == WAY_MULTIPLY)
        encode_all(coder, row, row->bits, row->elem, WAY_MULTIPLY, CARE_PLUS);
    else
        encode_all(coder, row, row->bits, row->elem, WAY_DIVIDE, CARE_PLUS);
}

TARGET static void encode_care_all(const bsmm_coder *coder, const encode_row *row) {
    encode_all(coder, row, row->bits, row->elem, row->way, CARE_ALL);
}

static void encode(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame) {
    bool across = factors && job->width < cols && job->width % FACTOR_RUN;
    if (across) {
        bsmm_strip_portable.encode(job, row, r, c, cols, factors, tame);
        return;
    }
    static const float one = 1;
    float reciprocals[BSMM_STRIP_BLOCKS], windows[BSMM_STRIP_BLOCKS];
    const encode_care care = care_of(job->coder, tame);
    uint32_t bits = bsmm_elem_row(job->dst->m.format.elem)->bits;
    encode_row all = {.from = row->data,
                      .elem = row->elem,
                      .bits = bits,
                      .cols = cols,
                      .width = job->width,
                      .ahead = job->ahead,
                      .factors = factors ? factors : &one,
                      .reciprocals = reciprocals,
                      .way = way_of(job, care),
                      .to = (uint8_t *)job->dst->m.data +
                            bsmm_operand_index(job->dst, r, c) * bits / 8};
    if (all.way == WAY_DIVIDE_TAME)
        reciprocals_of(factors, bsmm_ceil_div(cols, job->width), reciprocals);
    if (care == CARE_NONE && factors && takes_windows(&all) &&
        find_windows(factors, bsmm_ceil_div(cols, job->width), windows)) {
        all.factors = windows;
        encode_by_windows(&all);
        return;
    }
    static void (*const encoders[])(const bsmm_coder *,
                                    const encode_row *) = {[CARE_NONE] = encode_care_none,
                                                           [CARE_PLUS] = encode_care_plus,
                                                           [CARE_ALL] = encode_care_all};
    encoders[care](job->coder, &all);
}

#endif
