#include "compare.h"
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VARIETY = 4096, TRIES = 1 << 13 };

const char *const fill_names[FILLS] = {"ordinary", "wide", "extreme", "special"};

uint32_t below(uint64_t *state, uint32_t bound) {
    return (uint32_t)((bench_next_bits(state) >> 32) * bound >> 32);
}

uint32_t layout_count(void) {
    bsmm_layout_info info = BSMM_INIT(bsmm_layout_info);
    uint32_t count = 0;
    while (!bsmm_layout_at(count, &info))
        count++;
    return count;
}

static bool is_finite(uint32_t elem, uint32_t code) {
    double value = 0;
    return !bsmm_decode_elem(elem, code, &value) && isfinite(value);
}

static uint32_t any_code(uint32_t elem, uint64_t *state) {
    return (uint32_t)(bench_next_bits(state) >> 32) >> (32 - bench_elem_bits(elem));
}

/* Returns a random finite code, or a random code that is not finite if `finite` is false. Returns 0
 * if the format has no such code. */
static uint32_t code_of_kind(uint32_t elem, bool finite, uint64_t *state) {
    for (int i = 0; i < TRIES; i++) {
        uint32_t code = any_code(elem, state);
        if (is_finite(elem, code) == finite) return code;
    }
    return 0;
}

static uint32_t code_near(uint32_t elem, int spread, uint64_t *state) {
    double value = (double)(int64_t)bench_next_bits(state) * 0x1p-61;
    uint32_t code = 0;
    value = ldexp(value, (int)below(state, (uint32_t)(2 * spread + 1)) - spread);
    bsmm_encode_elem(elem, (float)value, 1, &code);
    return code;
}

static uint32_t element_code(uint32_t elem, fill how, uint64_t *state) {
    if (how == FILL_EXTREME || (!bench_elem_is_wide(elem) && how != FILL_WIDE))
        return code_of_kind(elem, true, state);
    return code_near(elem, how == FILL_WIDE ? 10 : 0, state);
}

/* Stores an element's code. Elements of every format form a stream of codes, the least significant
 * bit first. */
static void store_code(uint8_t *data, uint32_t bits, uint64_t index, uint32_t code) {
    for (uint64_t i = index * bits, end = i + bits; i < end; code >>= 1, i++)
        data[i / 8] = (uint8_t)((data[i / 8] & ~(1u << i % 8)) | (code & 1) << i % 8);
}

static void fill_elements(bsmm_matrix *m, fill how, uint64_t *state) {
    static uint32_t codes[VARIETY];
    uint32_t elem = m->format.elem, bits = bench_elem_bits(elem), held = 0;
    uint64_t pending = 0;
    for (int i = 0; i < VARIETY; i++)
        codes[i] = element_code(elem, how, state);
    for (uint64_t i = 0; i < m->data_bytes; i++, held -= 8, pending >>= 8) {
        for (; held < 8; held += bits)
            pending |= (uint64_t)codes[below(state, VARIETY)] << held;
        ((uint8_t *)m->data)[i] = (uint8_t)pending;
    }
}

/* Replaces some codes by codes of NaN or Inf, if the format has them. */
static void spoil(void *codes, uint32_t elem, uint64_t count, int64_t rows, uint64_t *state) {
    uint32_t bits = bench_elem_bits(elem);
    for (int64_t i = 0; count && i < rows / 4 + 1; i++) {
        uint32_t code = code_of_kind(elem, false, state);
        if (code) store_code(codes, bits, bench_next_bits(state) % count, code);
        if (!code) return;
    }
}

static uint32_t e8m0_code(fill how, uint64_t *state) {
    static const uint32_t ends[] = {0, 254, 1, 253};
    if (how == FILL_WIDE) return 103 + below(state, 49);
    if (how != FILL_EXTREME) return 122 + below(state, 11);
    return below(state, 3) == 0 ? ends[below(state, 4)] : below(state, 255);
}

static uint32_t e4m3_code(fill how, uint64_t *state) {
    if (how == FILL_EXTREME) return below(state, 2) * 128 + below(state, 127);
    return how == FILL_WIDE ? below(state, 127) : 0x30 + below(state, 16);
}

static uint32_t f32_code(fill how, uint64_t *state) {
    if (how == FILL_EXTREME) return code_of_kind(BSMM_ELEM_F32, true, state);
    return code_near(BSMM_ELEM_F32, how == FILL_WIDE ? 20 : 0, state);
}

static const struct {
    uint32_t elem, bytes;
    uint32_t (*code)(fill how, uint64_t *state);
} scale_rows[] = {
    [BSMM_SCALE_E8M0] = {BSMM_ELEM_E8M0, 1, e8m0_code},
    [BSMM_SCALE_E4M3] = {BSMM_ELEM_E4M3, 1, e4m3_code},
    [BSMM_SCALE_F32] = {BSMM_ELEM_F32, 4, f32_code},
};

static void fill_scales(bsmm_matrix *m, fill how, uint64_t *state) {
    uint32_t scale = m->format.scale, bytes = scale_rows[scale].bytes;
    for (uint64_t i = 0; i < m->scale_bytes / bytes; i++) {
        uint32_t code = scale_rows[scale].code(how, state);
        memcpy((uint8_t *)m->scales + i * bytes, &code, bytes);
    }
    if (how == FILL_SPECIAL)
        spoil(m->scales, scale_rows[scale].elem, m->scale_bytes / bytes, m->rows / 4, state);
}

void fill_matrix(bsmm_matrix *m, fill how, uint64_t *state) {
    fill_elements(m, how, state);
    if (how == FILL_SPECIAL)
        spoil(m->data, m->format.elem, m->data_bytes * 8 / bench_elem_bits(m->format.elem), m->rows,
              state);
    if (m->format.scale) fill_scales(m, how, state);
}
