#include "data.h"

#include <math.h>
#include <stdlib.h>

/* VARIETY is the number of random codes in a table, and each element is one of them. PICKS is the
 * number of elements for which one 64-bit random number suffices. */
enum { VARIETY = 4096, PICKS = 5 };

uint64_t bench_next_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double next_uniform(uint64_t *state) {
    return (double)((bench_next_bits(state) >> 11) + 1) * 0x1p-53;
}

static double next_normal(uint64_t *state) {
    double radius = sqrt(-2 * log(next_uniform(state)));
    return radius * cos(6.283185307179586 * next_uniform(state));
}

static void *allocate(uint64_t bytes) {
    return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

bsmm_status bench_matrix_create(bsmm_matrix *m, bsmm_format format, int64_t rows, int64_t cols) {
    return bench_matrix_create_in(m, format, BSMM_ORDER_ROW, BSMM_LAYOUT_ROW_MAJOR, rows, cols);
}

bsmm_status bench_matrix_create_in(bsmm_matrix *m, bsmm_format format, uint32_t order,
                                   uint32_t layout, int64_t rows, int64_t cols) {
    *m = BSMM_INIT(bsmm_matrix);
    m->format = format;
    m->order = order;
    m->scale_layout = layout;
    m->rows = rows;
    m->cols = cols;
    uint64_t data_bytes, scale_bytes;
    bsmm_status status = bsmm_data_bytes(m, &data_bytes);
    if (!status) status = bsmm_scale_bytes(m, &scale_bytes);
    if (status) return status;
    m->data_bytes = data_bytes;
    m->scale_bytes = scale_bytes;
    m->data = allocate(data_bytes);
    if (format.scale) m->scales = allocate(scale_bytes);
    return m->data && (!format.scale || m->scales) ? BSMM_OK : BSMM_E_MEMORY;
}

void bench_matrix_destroy(bsmm_matrix *m) {
    free(m->data);
    free(m->scales);
    m->data = m->scales = NULL;
}

uint32_t bench_elem_bits(uint32_t elem) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++)
        if (info.elem == elem) return info.bits;
    return 0;
}

bool bench_elem_is_wide(uint32_t elem) {
    return bench_elem_bits(elem) > 8;
}

/* Makes the table of codes from which elements are chosen. The values are normally distributed if
 * `normal` is true. Otherwise they are the values of e2m1, each with the same probability. */
static bsmm_status make_codes(uint32_t elem, bool normal, uint64_t *state, uint32_t *codes) {
    bsmm_status status = BSMM_OK;
    for (uint32_t i = 0; i < VARIETY && !status; i++) {
        double value = next_normal(state);
        if (!normal) status = bsmm_decode_elem(BSMM_ELEM_E2M1, i % 16, &value);
        if (!status) status = bsmm_encode_elem(elem, (float)value, 1, &codes[i]);
    }
    return status;
}

/* Fills a matrix with codes that it chooses at random from the table `codes`. The codes are packed
 * without gaps, the least significant bit first. The function requires a little-endian machine. */
static void fill_elements(bsmm_matrix *m, const uint32_t *codes, uint64_t *state) {
    uint32_t bits = bench_elem_bits(m->format.elem), held = 0;
    uint64_t pending = 0, random = 0, picks = 0;
    for (uint64_t i = 0; i < m->data_bytes; i++, held -= 8, pending >>= 8) {
        for (; held < 8; held += bits, picks--, random /= VARIETY) {
            if (picks == 0) random = bench_next_bits(state), picks = PICKS;
            pending |= (uint64_t)codes[random % VARIETY] << held;
        }
        ((uint8_t *)m->data)[i] = (uint8_t)pending;
    }
}

static void store_f32(void *scales, uint64_t index, double value) {
    ((float *)scales)[index] = (float)value;
}

static void store_e8m0(void *scales, uint64_t index, double value) {
    int exponent;
    frexp(value, &exponent);
    ((uint8_t *)scales)[index] = (uint8_t)(exponent - 1 + 127);
}

static void store_e4m3(void *scales, uint64_t index, double value) {
    uint32_t code = 0;
    bsmm_encode_elem(BSMM_ELEM_E4M3, (float)value, 1, &code);
    ((uint8_t *)scales)[index] = (uint8_t)code;
}

static const struct {
    uint32_t bytes;
    bool normal_elements;
    void (*store)(void *scales, uint64_t index, double value);
} scale_rows[] = {
    [BSMM_SCALE_NONE] = {1, true, NULL},
    [BSMM_SCALE_E8M0] = {1, false, store_e8m0},
    [BSMM_SCALE_E4M3] = {1, false, store_e4m3},
    [BSMM_SCALE_F32] = {4, true, store_f32},
};

bsmm_status bench_matrix_fill(bsmm_matrix *m, uint64_t seed) {
    uint64_t state = seed;
    uint32_t codes[VARIETY], scale = m->format.scale;
    bsmm_status status =
        make_codes(m->format.elem, scale_rows[scale].normal_elements, &state, codes);
    if (status) return status;
    fill_elements(m, codes, &state);
    for (uint64_t i = 0; i < m->scale_bytes / scale_rows[scale].bytes; i++)
        scale_rows[scale].store(m->scales, i, next_uniform(&state));
    return BSMM_OK;
}

static bsmm_status fill_quantized(bsmm_matrix *m, bsmm_matrix *wide, uint64_t seed) {
    bsmm_status status = bench_matrix_fill(wide, seed);
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.src = wide;
    desc.dst = m;
    desc.flags = m->format.scale == BSMM_SCALE_E4M3 ? BSMM_QUANTIZE_ONE_LEVEL : 0;
    return status ? status : bsmm_quantize(&desc, NULL);
}

static void fill_normal_scales(bsmm_matrix *m, uint64_t seed) {
    uint64_t state = seed;
    for (uint64_t i = 0; i < m->scale_bytes / 4; i++)
        store_f32(m->scales, i, next_normal(&state));
}

bsmm_status bench_operand_create(bsmm_matrix *m, bsmm_matrix *wide, bsmm_format format,
                                 int64_t rows, int64_t cols, const bench_operand_kind *kind) {
    static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};
    bsmm_status status = bench_matrix_create_in(m, format, kind->order, kind->layout, rows, cols);
    if (!status) status = bench_matrix_create(wide, f32, rows, cols);
    if (!status && kind->quantized && format.scale)
        status = fill_quantized(m, wide, kind->seed);
    else if (!status)
        status = bench_matrix_fill(m, kind->seed);
    if (!status && kind->normal_scales && format.scale == BSMM_SCALE_F32)
        fill_normal_scales(m, kind->seed);
    return status ? status : bsmm_dequantize(m, wide);
}
