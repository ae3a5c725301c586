/* Lists the GEMMs that the program compares. A fixed list comes first, and random GEMMs follow. */
#include "compare.h"
#include "data.h"

#include <string.h>

typedef struct size {
    int64_t m, n, k;
} size;

static const size sizes[] = {
    {8, 8, 32},     {16, 64, 64},   {128, 128, 128}, {37, 53, 97},   {1, 136, 288},   {3, 136, 288},
    {16, 136, 288}, {17, 200, 512}, {33, 136, 1056}, {64, 256, 256}, {200, 136, 160},
};

typedef struct pair {
    bsmm_format a, b;
} pair;

enum { MOST_PAIRS = 128 };
typedef struct pairs {
    pair list[MOST_PAIRS];
    size_t count;
} pairs;

static bsmm_format named(const char *name) {
    bsmm_format format = {0};
    bsmm_format_from_name(name, &format);
    return format;
}

static void add(pairs *all, bsmm_format a, bsmm_format b) {
    if (all->count < MOST_PAIRS) all->list[all->count++] = (pair){a, b};
}

static const char *const wide_names[] = {"bf16", "f16", "f32"};
static const char *const other_pairs[][2] = {
    {"mxfp8", "mxfp4"},
    {"mxfp8", "mxfp6_e2m3"},
    {"mxfp8_e5m2", "mxfp8"},
    {"fp8_group128", "fp8_block128"},
    {"fp8_group128_fnuz", "fp8_block128_fnuz"},
    {"e4m3", "e4m3"},
    {"e5m2", "e5m2"},
    {"e4m3", "e5m2"},
    {"e4m3fnuz", "e4m3fnuz"},
    {"e2m1", "e2m1"},
    {"nvfp4", "mxfp4"},
    {"bf16", "bf16"},
    {"f16", "f16"},
    {"f32", "f32"},
    {"bf16", "e4m3"},
    {"mxfp4", "bf16"},
};

static pairs make_pairs(void) {
    pairs all = {.count = 0};
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    for (uint32_t i = 0; !bsmm_preset_at(i, &preset); i++) {
        add(&all, preset.format, preset.format);
        for (size_t j = 0; j < sizeof wide_names / sizeof wide_names[0]; j++)
            add(&all, named(wide_names[j]), preset.format);
    }
    for (size_t i = 0; i < sizeof other_pairs / sizeof other_pairs[0]; i++)
        add(&all, named(other_pairs[i][0]), named(other_pairs[i][1]));
    return all;
}

static uint32_t one_in(uint64_t *state, uint32_t n, uint32_t value) {
    return below(state, n) == 0 ? value : 0;
}

static void draw_operand(operand_shape *o, uint64_t *state) {
    static const float globals[] = {0.75f, 2, 0x1p-20f, -1.5f};
    o->order = one_in(state, 4, BSMM_ORDER_COL);
    o->extra_ld = one_in(state, 4, 4 + 4 * below(state, 8));
    if (!o->format.scale) return;
    if (below(state, 2)) o->layout = below(state, layout_count());
    if (o->layout == BSMM_LAYOUT_ROW_MAJOR || o->layout == BSMM_LAYOUT_COL_MAJOR)
        o->extra_scale_ld = one_in(state, 4, 3);
    if (o->format.scale != BSMM_SCALE_E4M3 || below(state, 2)) return;
    o->global = globals[below(state, 4)];
    o->global_kind = below(state, 2);
}

static bsmm_format draw_output(uint64_t *state) {
    static const char *const plain[] = {"f32", "bf16", "f16", "bf16", "e4m3", "e5m2"};
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    if (below(state, 4) == 0 && !bsmm_preset_at(below(state, 10), &preset)) return preset.format;
    return named(plain[below(state, 6)]);
}

static size draw_size(uint64_t *state) {
    static const int64_t rows[] = {1, 2, 3, 4, 8, 16, 17, 31, 33, 64, 65, 128, 200};
    static const int64_t inner[] = {32, 64, 96, 128, 160, 256, 288, 384, 512, 1024, 1056};
    size drawn = sizes[below(state, sizeof sizes / sizeof sizes[0])];
    if (below(state, 4) == 0) return drawn;
    drawn.m = rows[below(state, sizeof rows / sizeof rows[0])];
    drawn.n = below(state, 2) ? 1 + below(state, 300) : 8 * (1 + below(state, 40));
    drawn.k = below(state, 8) ? inner[below(state, sizeof inner / sizeof inner[0])]
                              : 1 + below(state, 400);
    return drawn;
}

static product_shape draw(const pairs *all, uint64_t seed) {
    static const uint32_t wide[] = {BSMM_ELEM_F32, BSMM_ELEM_F16, BSMM_ELEM_BF16};
    uint64_t state = seed;
    const pair *formats = &all->list[below(&state, (uint32_t)all->count)];
    size drawn = draw_size(&state);
    product_shape s = {.m = drawn.m, .n = drawn.n, .k = drawn.k, .seed = bench_next_bits(&state)};
    s.a.format = formats->a, s.b.format = formats->b, s.d.format = draw_output(&state);
    draw_operand(&s.a, &state);
    draw_operand(&s.b, &state);
    draw_operand(&s.d, &state);
    s.alpha = below(&state, 3) ? 0 : -0.3f;
    if (below(&state, 3) == 0) s.c_elem = wide[below(&state, 3)], s.beta = 1.25f;
    s.bias_elem = one_in(&state, 3, wide[below(&state, 3)]);
    s.compute = one_in(&state, 4, BSMM_COMPUTE_FAST);
    s.b_packed = one_in(&state, 3, 1);
    s.threads = 1 + below(&state, 3);
    s.how = (fill)below(&state, FILLS);
    return s;
}

static void visit_listed(session *s, const pairs *all,
                         void (*visit)(session *, const product_shape *)) {
    /* The format of D depends on the kind of values that fill the operands (enum fill). */
    static const char *const outputs[] = {"f32", "bf16", "bf16", "f16"};
    for (size_t i = 0; i < all->count; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++)
            for (fill how = 0; how < FILLS; how++) {
                product_shape p = {.m = sizes[j].m, .n = sizes[j].n, .k = sizes[j].k, .how = how};
                p.a.format = all->list[i].a, p.b.format = all->list[i].b;
                p.d.format = named(outputs[how]);
                p.threads = 1 + (uint32_t)(i + j) % 2;
                p.seed = s->options->seed + i * 1000 + j * 10 + how;
                if (p.m * p.n * p.k <= s->options->largest) visit(s, &p);
            }
}

void products_each(session *s, void (*visit)(session *s, const product_shape *shape)) {
    pairs all = make_pairs();
    visit_listed(s, &all, visit);
    for (uint64_t i = 0; i < s->options->random; i++) {
        product_shape p = draw(&all, s->options->seed + i);
        if (p.m * p.n * p.k <= s->options->largest) visit(s, &p);
    }
}
