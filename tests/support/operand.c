#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t rng_next(rng *r) {
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t rng_below(rng *r, uint32_t bound) {
    return (uint32_t)((rng_next(r) >> 32) * bound >> 32);
}

static uint64_t mapped_bytes(uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

void *guarded_alloc(uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), mapped = mapped_bytes(bytes);
    uint8_t *base =
        mmap(NULL, mapped + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_int_equal(mprotect(base + mapped, page, PROT_NONE), 0);
    memset(base, 0xa5, mapped);
    return base + (mapped - bytes);
}

void guarded_free(void *memory, uint64_t bytes) {
    if (!memory) return;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), mapped = mapped_bytes(bytes);
    munmap((uint8_t *)memory - (mapped - bytes), mapped + page);
}

bsmm_matrix describe(bsmm_format format, int64_t rows, int64_t cols) {
    return (bsmm_matrix){
        .struct_size = sizeof(bsmm_matrix), .format = format, .rows = rows, .cols = cols};
}

uint32_t next_elem(uint32_t elem) {
    do
        elem++;
    while (elem < BSMM_ELEM_COUNT && !bsmm_elem_traits_of[elem].in_matrices);
    return elem < BSMM_ELEM_COUNT ? elem : BSMM_ELEM_NONE;
}

format_list all_formats(void) {
    format_list list = {.count = 0};
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t elem = next_elem(BSMM_ELEM_NONE); elem; elem = next_elem(elem))
        list.names[list.count++] = bsmm_elem_row(elem)->name;
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        assert_true(list.count < BSMM_COUNT(list.names));
        list.names[list.count++] = preset.name;
    }
    return list;
}

bsmm_format format_named(const char *name) {
    bsmm_format format;
    assert_int_equal(bsmm_format_from_name(name, &format), BSMM_OK);
    return format;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns what bsmm_elem_decode returns, but in less time, because most tests decode far more
 * elements than a format has codes. Codes of at most 8 bits are looked up in a table, and bf16 and
 * f32 are (parts of) floats of the host. */
static double decode_element(uint32_t elem, uint32_t code) {
    static double tables[BSMM_ELEM_COUNT][256];
    static bool made[BSMM_ELEM_COUNT];
    const uint32_t bits = bsmm_elem_row(elem)->bits;
    if (bits > 8) {
        if (elem == BSMM_ELEM_F16) return bsmm_elem_decode(elem, code);
        const float value = float_of(elem == BSMM_ELEM_BF16 ? code << 16 : code);
        return isnan(value) ? (double)NAN : (double)value;
    }
    for (uint32_t c = 0; !made[elem] && c < 1u << bits; c++)
        tables[elem][c] = bsmm_elem_decode(elem, c);
    made[elem] = true;
    return tables[elem][code];
}

/* Returns a random code of an element. With FILL_SPECIAL in `how`, it may be NaN or Inf. */
static uint32_t element_code(uint32_t elem, uint32_t bits, fill how, rng *r) {
    for (;;) {
        uint32_t code = (uint32_t)rng_next(r);
        if (bits < 32) code &= (1u << bits) - 1;
        if (how == FILL_ORDINARY && bits >= 16) {
            /* This value is finite in every format of 16 bits or more. */
            double value = (double)(int64_t)rng_next(r) * 0x1p-61;
            return bsmm_elem_encode(elem, value, true);
        }
        if (how == FILL_SPECIAL) return code;
        double value = decode_element(elem, code);
        if (value - value == 0) return code;
    }
}

static uint32_t scale_code(uint32_t scale, fill how, rng *r) {
    static const uint32_t e8m0_ends[] = {0, 254, 1, 253};
    if (how == FILL_SPECIAL && rng_below(r, 8) == 0)
        return scale == BSMM_SCALE_F32 ? 0x7fc00000 : scale == BSMM_SCALE_E8M0 ? 0xff : 0x7f;
    if (scale == BSMM_SCALE_E8M0) {
        if (how == FILL_ORDINARY) return 120 + rng_below(r, 14);
        return rng_below(r, 3) == 0 ? e8m0_ends[rng_below(r, 4)] : rng_below(r, 255);
    }
    if (scale == BSMM_SCALE_E4M3)
        return how == FILL_ORDINARY ? 0x30 + rng_below(r, 16) : rng_below(r, 127);
    if (how == FILL_ORDINARY)
        return bsmm_elem_encode(BSMM_ELEM_F32, 0.5 + (double)rng_below(r, 1000) / 999, true);
    /* The result is the bits of a random fp32 number. With bits 30 and 23 cleared, its exponent
     * field is at most 126, so its magnitude is below 1. */
    return (uint32_t)rng_next(r) & 0xbf7fffff;
}

static void fill_data(test_matrix *t, fill how, rng *r) {
    uint32_t elem = t->m.format.elem;
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    uint64_t count = t->data_bytes * 8 / info->bits;
    for (uint64_t i = 0; i < count; i++)
        bsmm_elem_store(elem, t->m.data, i, element_code(elem, info->bits, how, r));
}

static void fill_scales(test_matrix *t, fill how, rng *r) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&t->m, "test", &o), BSMM_OK);
    for (int64_t i = 0; i < o.map.rows; i++)
        for (int64_t j = 0; j < o.map.cols; j++)
            bsmm_scale_store_code(t->m.format.scale, t->m.scales, bsmm_scale_map_at(&o.map, i, j),
                                  scale_code(t->m.format.scale, how, r));
}

void test_matrix_make(test_matrix *t, bsmm_matrix shape, fill how, rng *r) {
    *t = (test_matrix){.m = shape, .global = 1};
    assert_int_equal(bsmm_data_bytes(&t->m, &t->data_bytes), BSMM_OK);
    assert_int_equal(bsmm_scale_bytes(&t->m, &t->scale_bytes), BSMM_OK);
    t->m.data = guarded_alloc(t->data_bytes);
    t->m.data_bytes = t->data_bytes;
    fill_data(t, how, r);
    if (shape.format.scale == BSMM_SCALE_NONE) return;
    t->m.scales = guarded_alloc(t->scale_bytes);
    t->m.scale_bytes = t->scale_bytes;
    fill_scales(t, how, r);
}

void test_matrix_free(test_matrix *t) {
    guarded_free(t->m.data, t->data_bytes);
    guarded_free(t->m.scales, t->scale_bytes);
    *t = (test_matrix){0};
}

bsmm_matrix rows_of(const bsmm_matrix *m, int64_t first, int64_t count) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(m, "m", &o), BSMM_OK);
    assert_int_equal(m->order, BSMM_ORDER_ROW);
    bsmm_matrix some = *m;
    some.rows = count;
    some.data_bytes = some.scale_bytes = 0;
    some.data = (uint8_t *)m->data + first * o.m.ld * bsmm_elem_row(m->format.elem)->bits / 8;
    if (!m->scales) return some;
    assert_int_equal(m->scale_layout, BSMM_LAYOUT_ROW_MAJOR);
    assert_int_equal(first % o.m.format.block_rows, 0);
    some.scales = (uint8_t *)m->scales + first / o.m.format.block_rows * o.map.cols *
                                             bsmm_scale_row_of(m->format.scale)->bytes;
    return some;
}

/* Returns the scale of the block that contains element (r, c), or 1 if the matrix has no scales. */
static double scale_at(const bsmm_operand *o, int64_t r, int64_t c) {
    const bsmm_format *f = &o->m.format;
    if (f->scale == BSMM_SCALE_NONE) return 1;
    uint64_t offset = bsmm_scale_map_at(&o->map, r / f->block_rows, c / f->block_cols);
    return bsmm_scale_load(f->scale, o->m.scales, offset);
}

static double value_at(const bsmm_operand *o, int64_t r, int64_t c, double scale) {
    const bsmm_format *f = &o->m.format;
    uint64_t index = (uint64_t)(o->m.order == BSMM_ORDER_ROW ? r * o->m.ld + c : c * o->m.ld + r);
    double value = scale * decode_element(f->elem, bsmm_elem_load(f->elem, o->m.data, index));
    if (!o->m.global_scale) return value;
    return o->m.global_kind == BSMM_GLOBAL_DIVISOR ? value / (double)*o->m.global_scale
                                                   : value * (double)*o->m.global_scale;
}

double test_matrix_value(const test_matrix *t, int64_t r, int64_t c) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&t->m, "test", &o), BSMM_OK);
    return value_at(&o, r, c, scale_at(&o, r, c));
}

double *test_matrix_values(const test_matrix *t) {
    bsmm_operand o;
    assert_int_equal(bsmm_operand_take(&t->m, "test", &o), BSMM_OK);
    double *values = malloc(sizeof *values * (size_t)(o.m.rows * o.m.cols + 1));
    assert_non_null(values);
    const int64_t block = o.m.format.scale == BSMM_SCALE_NONE ? o.m.cols : o.m.format.block_cols;
    for (int64_t r = 0; r < o.m.rows; r++)
        for (int64_t first = 0; first < o.m.cols; first += block) {
            const double scale = scale_at(&o, r, first);
            for (int64_t c = first; c < o.m.cols && c < first + block; c++)
                values[r * o.m.cols + c] = value_at(&o, r, c, scale);
        }
    return values;
}
