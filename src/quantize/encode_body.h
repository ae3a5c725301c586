/* Encodes rows of values, CHUNK values at a time. encode_avx2.c and encode_avx512.c include this
 * file after they have defined INLINE, TARGET, vector_coder, the type `vec` (CHUNK codes in bytes),
 * and:
 *
 *   vector_coder_of  loads a coder's constants into registers
 *   encode_chunk     encodes CHUNK values
 *   store_chunk      packs CHUNK codes to memory
 *   store_last       packs the first few codes; bits of their last byte that hold no code become 0
 *   encode_windows   encodes CHUNK bf16 values as e2m1 with factors that are powers of two
 *   has_windows      tells whether the processor supports encode_windows
 *   WINDOW_TARGET    the function attributes of encode_windows
 *   WINDOW_BASE      the window of a factor whose exponent field is 0 (window_avx2.h explains
 *                    windows)
 *
 * encode_windows is used if a block's columns are a multiple of WORDS, the number of bf16 values in
 * a vector register. */
#ifndef BSMM_QUANTIZE_ENCODE_BODY_H
#define BSMM_QUANTIZE_ENCODE_BODY_H

#include "quantize/encode_row.h"

#include <string.h>

/* Prefetches the CHUNK values that lie `ahead` bytes after `from`. The pipeline reads a strip of
 * adjacent blocks to find the largest magnitudes, then reads the same strip again to encode it, and
 * then goes on to the next strip. The hardware prefetcher loses the stream when the strip is read
 * again, so the encoding loop prefetches the next strip. */
INLINE void prefetch_chunk(const uint8_t *from, uint32_t elem, int64_t ahead) {
    for (int64_t i = 0; i < CHUNK * (elem == BSMM_ELEM_F32 ? 4 : 2) / 64; i++)
        _mm_prefetch((const char *)from + ahead + 64 * i, _MM_HINT_T0);
}

/* Encodes one row of values. The last values of the row are copied to a buffer first, so that no
 * vector load reads past the row. `bits` is the size of a code, `elem` is the type of the values,
 * and `way` tells how a factor is applied. *row has these three fields too. The caller also passes
 * them as constants, so that the compiler makes a separate loop for each combination. */
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

/* Computes the window of each of n factors, a 16-bit number, and stores it in both halves of
 * windows[i]. The window is computed from the value v that becomes 0.25 when it is multiplied by
 * the factor (window_avx2.h, window_avx512.h). Returns false if a factor is not a power of two, or
 * if v is not a normal number. The caller must then not use the windows. */
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

/* Encodes a row of bf16 values as e2m1 by integer arithmetic. The codes are the same as those of
 * encode_all. In place of the factors, row->factors holds their windows, i.e. the 16-bit constants
 * that find_windows computes from them. */
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

INLINE void encode_elem(const bsmm_coder *coder, const encode_row *row, uint32_t bits,
                        element_way way, encode_care care) {
    if (row->elem == BSMM_ELEM_F32)
        encode_all(coder, row, bits, BSMM_ELEM_F32, way, care);
    else if (row->elem == BSMM_ELEM_BF16)
        encode_all(coder, row, bits, BSMM_ELEM_BF16, way, care);
    else
        encode_all(coder, row, bits, BSMM_ELEM_F16, way, care);
}

/* Encodes a row in which no special case can arise (CARE_NONE): no result is NaN, and zeros keep
 * their signs. This usual case has a separate loop for each number of bits, element format and way
 * to apply the factor. */
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

/* Encodes a row in which -0 becomes +0. Nearly all recipes with this rule write e2m1, so that only
 * e2m1 has a loop of its own. */
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
