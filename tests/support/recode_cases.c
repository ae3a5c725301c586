#include "recode_cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ORDINARY, TIES, SPRINKLED, ANY_BITS, TINY };

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns a small multiple of 1/16. Many such numbers lie halfway between two numbers of the
 * destination format, so they test rounding. */
static double tie(rng *r) {
    return ((double)rng_below(r, 257) - 128) / 16;
}

static double ordinary(rng *r) {
    return ldexp((double)(int64_t)rng_next(r) * 0x1p-63, (int)rng_below(r, 8));
}

static double value_of(uint32_t mix, rng *r) {
    static const float rare[] = {0,   -0.0f, INFINITY,  -INFINITY,
                                 NAN, -NAN,  0x1p-149f, 0x1.fffffep127f};
    if (mix == TIES) return tie(r);
    if (mix == SPRINKLED && rng_below(r, 24) == 0) return (double)rare[rng_below(r, 8)];
    if (mix == ANY_BITS) return (double)float_of((uint32_t)rng_next(r));
    if (mix == TINY) return ldexp(tie(r), -126 - (int)rng_below(r, 20));
    return ordinary(r);
}

void recode_fill(const test_matrix *t, uint32_t mix, rng *r) {
    uint32_t elem = t->m.format.elem;
    uint64_t count = t->data_bytes * 8 / bsmm_elem_row(elem)->bits;
    for (uint64_t i = 0; i < count; i++) {
        int shift = mix == ORDINARY || mix == TIES ? (int)(i / 48 % 9) - 4 : 0;
        uint32_t code = bsmm_elem_encode(elem, ldexp(value_of(mix, r), shift), false);
        bsmm_elem_store(elem, t->m.data, i, code);
    }
}

typedef struct walk {
    void (*check)(const recode_case *c, void *context);
    void *context;
    rng r;
} walk;

/* Returns the matrix to quantize in case i. If i is odd, its sizes are multiples of 128, because
 * GPU kernels treat whole tiles specially. */
static bsmm_matrix source_of(uint32_t i, rng *r) {
    static const char *const types[] = {"f32", "bf16", "f16"};
    bool whole = i % 2;
    int64_t rows = whole ? 128 : 1 + (int64_t)rng_below(r, 140);
    int64_t cols = whole ? (int64_t)128 << rng_below(r, 3) : 1 + (int64_t)rng_below(r, 300);
    bsmm_matrix m = describe(format_named(types[i % 3]), rows, cols);
    m.order = i % 7 == 5;
    if (i % 5 == 2) m.ld = (m.order ? rows : cols) + rng_below(r, 9);
    return m;
}

static bsmm_matrix result_of(const bsmm_matrix *src, bsmm_format format, uint32_t i, rng *r) {
    bsmm_matrix m = describe(format, src->rows, src->cols);
    m.order = i % 7 == 6;
    int64_t line = m.order ? m.rows : m.cols;
    if (i % 5 == 3) m.ld = bsmm_round_up(line, 4) + 4 * rng_below(r, 5);
    if (!format.scale) return m;
    m.scale_layout = i % 9;
    if (m.scale_layout != BSMM_LAYOUT_TILE_CONTIGUOUS) return m;
    m.scale_tile_rows = 1 + rng_below(r, 9);
    m.scale_tile_cols = 1 + rng_below(r, 5);
    return m;
}

static void run_case(walk *w, const bsmm_recipe_info *info, bsmm_format format, uint32_t i) {
    recode_case c = {.recipe = info->name};
    bsmm_matrix src = source_of(i, &w->r), dst = result_of(&src, format, i, &w->r);
    c.flags = i % 4 == 3 ? info->flags : 0;
    bool choice = format.scale == BSMM_SCALE_E4M3 && strcmp(info->name, "ggml") != 0;
    c.two_level = choice && !(c.flags & BSMM_QUANTIZE_ONE_LEVEL);
    bool divides =
        strcmp(info->name, "compressed-tensors") == 0 || (strcmp(info->name, "te") == 0 && i % 2);
    dst.global_kind = c.two_level && divides ? BSMM_GLOBAL_DIVISOR : BSMM_GLOBAL_MULTIPLIER;
    test_matrix_make(&c.src, src, FILL_ORDINARY, &w->r);
    test_matrix_make(&c.dst, dst, FILL_ORDINARY, &w->r);
    c.src.m.global_scale = NULL;
    c.dst.m.global_scale = c.two_level ? &c.dst.global : NULL;
    recode_fill(&c.src, i % RECODE_MIXES, &w->r);
    memset(c.dst.m.data, 0xa5, c.dst.data_bytes);
    if (c.dst.m.scales) memset(c.dst.m.scales, 0xa5, c.dst.scale_bytes);
    w->check(&c, w->context);
    test_matrix_free(&c.src);
    test_matrix_free(&c.dst);
}

void recode_cases_each(uint32_t rounds, void (*check)(const recode_case *c, void *context),
                       void *context) {
    walk w = {check, context, {77}};
    bsmm_recipe_info info = {.struct_size = sizeof info};
    for (uint32_t index = 0; bsmm_recipe_at(index, &info) == BSMM_OK; index++) {
        char names[160], *rest = names;
        snprintf(names, sizeof names, "%s", info.formats);
        for (char *name = strtok_r(rest, " ", &rest); name; name = strtok_r(rest, " ", &rest))
            for (uint32_t i = 0; i < rounds; i++)
                run_case(&w, &info, format_named(name), i);
    }
}

void recode_expect(const recode_case *c, const char *what, const void *expected, const void *got,
                   uint64_t bytes) {
    const uint8_t *a = expected, *b = got;
    for (uint64_t i = 0; i < bytes; i++)
        if (a[i] != b[i])
            fail_msg("%s, recipe %s (flags %u), %s to %s, %lld x %lld, order %u to %u, layout %u: "
                     "byte %llu is %02x, must be %02x",
                     what, c->recipe, c->flags, bsmm_format_name(c->src.m.format),
                     bsmm_format_name(c->dst.m.format), (long long)c->src.m.rows,
                     (long long)c->src.m.cols, c->src.m.order, c->dst.m.order,
                     c->dst.m.scale_layout, (unsigned long long)i, b[i], a[i]);
}
