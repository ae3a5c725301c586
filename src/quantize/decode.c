/* Values of a whole run at a time: a table of the codes' values, one scale for each block. */
#include "quantize/coder.h"

enum { RUN = 256 };

bsmm_decoder bsmm_decoder_make(const bsmm_operand *src) {
    bsmm_decoder decoder = {.src = src};
    uint32_t elem = src->m.format.elem, bits = bsmm_elem_row(elem)->bits;
    for (uint32_t code = 0; bits <= 8 && code < 1u << bits; code++)
        decoder.values[code] = bsmm_elem_decode(elem, code);
    return decoder;
}

static void plain_values(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to) {
    float values[RUN];
    bsmm_values_load(src, r, 1, c, n, values, n);
    for (int64_t i = 0; i < n; i++)
        to[i] = (double)values[i];
}

static void table_values(const bsmm_decoder *decoder, int64_t r, int64_t c, int64_t n, double *to) {
    uint16_t codes[RUN];
    bsmm_codes_load(decoder->src, r, c, n, codes);
    for (int64_t i = 0; i < n; i++)
        to[i] = decoder->values[codes[i]];
}

static void apply_scales(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to) {
    const bsmm_format *f = &src->m.format;
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t block = (c + i) / f->block_cols;
        end = bsmm_min_i64(n, (block + 1) * f->block_cols - c);
        double scale = bsmm_scale_load(f->scale, src->m.scales,
                                       bsmm_scale_map_at(&src->map, r / f->block_rows, block));
        for (int64_t j = i; j < end; j++)
            to[j] *= scale;
    }
}

/* A divisor divides, so that its quotient is rounded once. */
static void apply_global(const bsmm_matrix *m, int64_t n, double *to) {
    double global = (double)*m->global_scale;
    if (m->global_kind == BSMM_GLOBAL_DIVISOR)
        for (int64_t i = 0; i < n; i++)
            to[i] /= global;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] *= global;
}

static void decode_some(const bsmm_decoder *decoder, int64_t r, int64_t c, int64_t n, double *to) {
    const bsmm_operand *src = decoder->src;
    if (src->m.format.elem <= BSMM_ELEM_BF16)
        plain_values(src, r, c, n, to);
    else
        table_values(decoder, r, c, n, to);
    if (src->m.format.scale != BSMM_SCALE_NONE) apply_scales(src, r, c, n, to);
    if (src->m.global_scale) apply_global(&src->m, n, to);
}

void bsmm_decoder_run(const bsmm_decoder *decoder, int64_t r, int64_t c, int64_t n, double *to) {
    for (int64_t i = 0; i < n; i += RUN)
        decode_some(decoder, r, c + i, bsmm_min_i64(RUN, n - i), to + i);
}
