/* Finds the largest magnitude (amax) of blocks. Each block has a register of running maxima. Blocks
 * of exactly PAIRED 16-bit values fill only half a register, so two of them share one register.
 * amax_avx2.c and amax_avx512.c include this file after they have defined:
 * - INLINE, the function attributes;
 * - the register type `vec` with LANES 32-bit or WORDS 16-bit lanes;
 * - the operations vec_zero, vec_load, load_first, with_f32 and with_words on one register;
 * - store_maxima, which reduces REGISTERS registers. */
#ifndef BSMM_QUANTIZE_AMAX_BODY_H
#define BSMM_QUANTIZE_AMAX_BODY_H

enum { REGISTER_BYTES = 4 * LANES };

INLINE int64_t lanes_of(uint32_t elem) {
    return elem == BSMM_ELEM_F32 ? LANES : WORDS;
}

INLINE vec with(vec max, vec values, uint32_t elem, bool skips_nan) {
    if (elem == BSMM_ELEM_F32) return with_f32(max, values, skips_nan);
    return with_words(max, values, elem == BSMM_ELEM_BF16 ? 0x7f80 : 0x7c00, skips_nan);
}

/* A row whose values fill at least LONG registers is divided into STREAMS ranges that are read in
 * parallel, because four streams keep more cache lines in flight than one. Each stream prefetches
 * the data AHEAD bytes after its current position. */
enum { AHEAD = 1024, STREAMS = 4, LONG = 64 };

INLINE vec long_max(vec max, const uint8_t *from, int64_t registers, uint32_t elem,
                    bool skips_nan) {
    vec maxima[STREAMS] = {max, max, max, max};
    int64_t part = registers / STREAMS;
    for (int64_t i = 0; i < part; i++)
#pragma GCC unroll 4
        for (int s = 0; s < STREAMS; s++) {
            const uint8_t *line = from + REGISTER_BYTES * (s * part + i);
            _mm_prefetch((const char *)line + AHEAD, _MM_HINT_T0);
            maxima[s] = with(maxima[s], vec_load(line), elem, skips_nan);
        }
    for (int s = 0; s < STREAMS; s++)
        max = with(max, maxima[s], elem, false);
    return max;
}

INLINE vec span_max(vec max, const uint8_t *from, int64_t n, uint32_t elem, bool skips_nan) {
    const int64_t lanes = lanes_of(elem);
    int64_t registers = n / lanes;
    if (registers >= LONG) {
        max = long_max(max, from, registers, elem, skips_nan);
        registers = registers / STREAMS * STREAMS;
    } else
        for (int64_t i = 0; i < registers; i++)
            max = with(max, vec_load(from + REGISTER_BYTES * i), elem, skips_nan);
    for (int64_t i = registers; i * lanes < n; i++) {
        int64_t left = bsmm_min_i64(lanes, n - i * lanes);
        vec values = left == lanes ? vec_load(from + REGISTER_BYTES * i)
                                   : load_first(from + REGISTER_BYTES * i, left, elem);
        max = with(max, values, elem, skips_nan);
    }
    return max;
}

/* Updates the running maxima of up to REGISTERS blocks with the values of one row. Block i covers
 * `span` columns, and the lanes of max[i] are its running maxima. `from` points to the first block,
 * and `cols` columns remain from there to the end of the row. */
INLINE void maxima(const uint8_t *from, int64_t cols, int64_t span, uint32_t elem, bool skips_nan,
                   vec max[REGISTERS]) {
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    for (int64_t i = 0; i * span < cols; i++)
        max[i] = span_max(max[i], from + i * span * bytes, bsmm_min_i64(span, cols - i * span),
                          elem, skips_nan);
}

INLINE void whole_maxima(const uint8_t *from, int64_t span, uint32_t elem, bool skips_nan,
                         vec max[REGISTERS]) {
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
#pragma GCC unroll 16
    for (int64_t i = 0; i < REGISTERS; i++)
        max[i] = span_max(vec_zero(), from + i * span * bytes, span, elem, skips_nan);
}

/* Computes the largest magnitude of each block, i.e. of `width` columns of all given rows. The
 * caller passes `width` and `elem` as constants, so that the compiler makes a separate loop for
 * each combination. If `simple` is set, the caller promises that there is one row, and that its
 * number of blocks is a multiple of REGISTERS. The loop then needs no code for a tail. */
INLINE void amax_of(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                    uint32_t elem, bool skips_nan, bool simple, uint32_t *amax) {
    const int64_t bytes = elem == BSMM_ELEM_F32 ? 4 : 2;
    const bool halves = width == PAIRED && elem != BSMM_ELEM_F32;
    const int64_t span = halves ? WORDS : width, blocks = halves ? 2 * REGISTERS : REGISTERS;
    for (int64_t c = 0; c < cols; c += REGISTERS * span, amax += blocks) {
        const uint8_t *from = (const uint8_t *)values->data + c * bytes;
        vec max[REGISTERS];
        if (simple)
            whole_maxima(from, span, elem, skips_nan, max);
        else {
            int64_t left = bsmm_min_i64(REGISTERS * span, cols - c);
            for (int i = 0; i < REGISTERS; i++)
                max[i] = vec_zero();
            for (int64_t r = 0; r < rows; r++)
                maxima(from + r * values->pitch * bytes, left, span, elem, skips_nan, max);
        }
        store_maxima(max, halves, elem, amax);
    }
}

/* Calls amax_of for a block width. The usual widths, 16 and 32, are passed as constants, so that
 * the compiler makes a separate loop for each. */
INLINE void amax_by_width(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                          uint32_t elem, uint32_t *amax) {
    bool whole = rows == 1 && cols % (32 * REGISTERS) == 0;
    if (whole && width == 16)
        amax_of(values, 1, cols, 16, elem, false, true, amax);
    else if (whole && width == 32)
        amax_of(values, 1, cols, 32, elem, false, true, amax);
    else
        amax_of(values, rows, cols, width, elem, false, false, amax);
}

INLINE void amax_any(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                     bool skips_nan, uint32_t *amax) {
    if (skips_nan)
        amax_of(values, rows, cols, width, values->elem, true, false, amax);
    else if (values->elem == BSMM_ELEM_F32)
        amax_by_width(values, rows, cols, width, BSMM_ELEM_F32, amax);
    else if (values->elem == BSMM_ELEM_BF16)
        amax_by_width(values, rows, cols, width, BSMM_ELEM_BF16, amax);
    else
        amax_by_width(values, rows, cols, width, BSMM_ELEM_F16, amax);
}

#endif
