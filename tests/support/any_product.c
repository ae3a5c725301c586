#include "any_product.h"

#include <stdio.h>
#include <string.h>

typedef struct choice {
    rng r;
    bool is_small;
    /* `is_plain` is true for half of the products. A plain product has fewer unusual properties, so
     * that more kernels accept it. */
    bool is_plain;
} choice;

static bool one_in(choice *c, uint32_t n) {
    return rng_below(&c->r, n) == 0;
}

/* Decides at random whether the product gets an unusual property. One of n products gets it, or one
 * of 8 n plain products. */
static bool unusual(choice *c, uint32_t n) {
    return rng_below(&c->r, c->is_plain ? 8 * n : n) == 0;
}

#define PICK(c, table) ((table)[rng_below(&(c)->r, (uint32_t)BSMM_COUNT(table))])

/* These are pairs of formats of A and B that models use. */
static const char *const pairs[][2] = {
    {"bf16", "bf16"},   {"f16", "f16"},
    {"f32", "f32"},     {"bf16", "mxfp4"},
    {"bf16", "mxfp8"},  {"f16", "mxfp4"},
    {"bf16", "nvfp4"},  {"mxfp8", "mxfp8"},
    {"mxfp8", "mxfp4"}, {"mxfp4", "mxfp4"},
    {"nvfp4", "nvfp4"}, {"fp8_group128", "fp8_block128"},
    {"e4m3", "e4m3"},   {"bf16", "fp8_block128"},
    {"bf16", "e4m3"},   {"fp8_group128", "fp8_block128"},
    {"mxfp8", "mxfp8"}, {"nvfp4", "nvfp4"},
    {"e5m2", "e4m3"},   {"mxfp6_e2m3", "mxfp6_e2m3"},
};
static const char *const formats[] = {
    "f32",
    "f16",
    "bf16",
    "e4m3",
    "e4m3fnuz",
    "e5m2",
    "e5m2fnuz",
    "e3m2",
    "e2m3",
    "e2m1",
    "mxfp8",
    "mxfp8_e5m2",
    "mxfp6_e2m3",
    "mxfp6_e3m2",
    "mxfp4",
    "nvfp4",
    "fp8_group128",
    "fp8_block128",
    "fp8_group128_fnuz",
    "fp8_block128_fnuz",
};
static const char *const results[] = {"f32", "bf16", "bf16", "f32", "f16"};
static const char *const scaled_results[] = {"mxfp8", "mxfp4", "nvfp4", "fp8_group128", "e4m3"};

/* Most sizes are those of models. Some are odd, which tests the ends of rows. */
static const int64_t large_m[] = {1,   1,   2,   3,   4,    7,    8,    9,    15,   16,  17,  24,
                                  32,  33,  48,  64,  65,   96,   100,  128,  129,  192, 200, 256,
                                  384, 500, 512, 768, 1024, 1000, 2048, 4096, 6144, 8192};
static const int64_t large_n[] = {64,   96,   128,  192,   256,   320,   384,  512,  576,
                                  1024, 1536, 2048, 2112,  2880,  3072,  4096, 4608, 5120,
                                  5760, 7168, 8192, 11008, 14336, 24576, 28672};
static const int64_t large_k[] = {64,   128,  192,  256,  512,  768,  1024, 1536,  2048,
                                  2880, 2304, 3072, 4096, 5120, 7168, 8192, 14336, 16384};
static const int64_t small_m[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 23, 32, 33, 48, 64, 65, 80, 130};
static const int64_t small_n[] = {1, 3, 8, 16, 17, 32, 33, 48, 64, 65, 96, 100, 128, 130, 160, 256};
static const int64_t small_k[] = {2,   16,  32,  48,  64,  96,  128, 130,
                                  160, 192, 256, 288, 384, 512, 640};

static int64_t extent(choice *c, const int64_t *large, size_t large_count, const int64_t *small,
                      size_t small_count) {
    const int64_t *const from = c->is_small ? small : large;
    const int64_t value =
        from[rng_below(&c->r, (uint32_t)(c->is_small ? small_count : large_count))];
    if (c->is_small || !one_in(c, 10)) return value;
    return value + (int64_t)rng_below(&c->r, 40);
}

#define EXTENT(c, of)                                                                              \
    extent(c, large_##of, BSMM_COUNT(large_##of), small_##of, BSMM_COUNT(small_##of))

/* Sometimes stores a matrix in column order, with gaps, or with its scales in another layout. */
static bsmm_matrix vary(choice *c, bsmm_matrix m) {
    static const uint32_t layouts[] = {
        BSMM_LAYOUT_COL_MAJOR,     BSMM_LAYOUT_NV_128X4,     BSMM_LAYOUT_NV_8X4,
        BSMM_LAYOUT_CDNA4_MFMA16,  BSMM_LAYOUT_CDNA4_MFMA32, BSMM_LAYOUT_CUBLAS_VEC128,
        BSMM_LAYOUT_CUBLAS_BLK128, BSMM_LAYOUT_NV_128X4,     BSMM_LAYOUT_TILE_CONTIGUOUS};
    if (unusual(c, 12)) m.order = BSMM_ORDER_COL;
    if (unusual(c, 10)) {
        const int64_t line = m.order == BSMM_ORDER_COL ? m.rows : m.cols;
        m.ld = (line + 3) / 4 * 4 + 4 * (int64_t)rng_below(&c->r, 17);
    }
    if (m.format.scale == BSMM_SCALE_NONE) return m;
    if (unusual(c, 4)) m.scale_layout = PICK(c, layouts);
    if (m.scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS)
        m.scale_tile_rows = 1 + rng_below(&c->r, 32), m.scale_tile_cols = 1 + rng_below(&c->r, 8);
    bsmm_matrix with_gaps = m;
    const uint32_t block_rows = m.format.block_rows, block_cols = m.format.block_cols;
    const int64_t lines = m.scale_layout == BSMM_LAYOUT_ROW_MAJOR
                              ? bsmm_ceil_div(m.cols, block_cols)
                              : bsmm_ceil_div(m.rows, block_rows);
    with_gaps.scale_ld = lines + (int64_t)rng_below(&c->r, 9);
    const bool can = m.scale_layout <= BSMM_LAYOUT_COL_MAJOR;
    return can && unusual(c, 8) ? with_gaps : m;
}

static void choose_formats(choice *c, const char **a, const char **b, const char **d) {
    const char *const *const pair = PICK(c, pairs);
    *a = pair[0], *b = pair[1];
    if (unusual(c, 4)) *a = PICK(c, formats);
    if (unusual(c, 4)) *b = PICK(c, formats);
    *d = unusual(c, 6) ? PICK(c, scaled_results) : PICK(c, results);
}

static void add_epilogue(choice *c, any_product *p) {
    bsmm_epilogue *const e = &p->epilogue;
    *e = (bsmm_epilogue){.struct_size = sizeof *e};
    e->activation = rng_below(&c->r, BSMM_ACTIVATION_GEGLU_TANH + 1);
    const bool gated = e->activation >= BSMM_ACTIVATION_SWIGLU;
    if (gated) {
        p->matrices[ANY_B].rows += p->matrices[ANY_B].rows % 2;
        p->matrices[ANY_C].cols = p->matrices[ANY_B].rows;
        p->matrices[ANY_D].cols = p->matrices[ANY_RESIDUAL].cols = p->matrices[ANY_B].rows / 2;
        e->halves = rng_below(&c->r, 2);
        e->limit = one_in(c, 2) ? 7 : 0;
        e->up_offset = one_in(c, 2) ? 1 : 0;
    }
    e->scale_by = rng_below(&c->r, 4);
    e->slope = one_in(c, 3) && (e->activation == BSMM_ACTIVATION_SILU ||
                                e->activation == BSMM_ACTIVATION_SWIGLU)
                   ? 1.702f
                   : 0;
    e->residual = one_in(c, 3) ? &p->matrices[ANY_RESIDUAL] : NULL;
    p->desc.epilogue = e;
}

/* Makes the product a grouped product (several products in one plan) of a random kind
 * (BSMM_GROUP_...). The sizes of the matrices stay the same. The kind determines what a matrix
 * means: the matrix of one group, of which there is one for each group, or a matrix that all groups
 * share and of which each owns a part. */
static void add_groups(choice *c, any_product *p) {
    static const int64_t counts[] = {1, 2, 3, 8, 32, 128};
    bsmm_group *const g = &p->group;
    *g = (bsmm_group){.struct_size = sizeof *g};
    g->kind = 1 + rng_below(&c->r, 4);
    g->count = c->is_small ? 1 + (int64_t)rng_below(&c->r, 4) : PICK(c, counts);
    g->align = g->kind == BSMM_GROUP_ROWS || g->kind == BSMM_GROUP_K ? 128 : 0;
    g->expected_rows = one_in(c, 2) ? 1 + (int64_t)rng_below(&c->r, 300) : 0;
    for (uint32_t flag = 1; flag <= BSMM_GROUP_SCALES_APART; flag *= 2)
        if (unusual(c, 6)) g->flags |= flag;
    if (!p->desc.epilogue || !(p->desc.epilogue->scale_by & BSMM_SCALE_BY_COL))
        g->flags &= ~(uint32_t)BSMM_GROUP_EACH_COL_SCALE;
    if (!p->desc.bias_elem) g->flags &= ~(uint32_t)BSMM_GROUP_EACH_BIAS;
    p->desc.group = g;
}

static void add_options(choice *c, any_product *p) {
    bsmm_matmul_desc *const d = &p->desc;
    static const float factors[] = {0.5f, 2, -1.25f};
    static const uint32_t bias_elems[] = {BSMM_ELEM_F32, BSMM_ELEM_BF16, BSMM_ELEM_F16};
    p->alpha = PICK(c, factors);
    p->beta = PICK(c, factors);
    if (unusual(c, 5)) d->alpha = &p->alpha;
    if (unusual(c, 6)) d->beta = &p->beta, d->c = &p->matrices[ANY_C];
    if (unusual(c, 4)) d->bias_elem = PICK(c, bias_elems);
    if (one_in(c, 3)) d->compute = BSMM_COMPUTE_FAST;
    if (unusual(c, 8)) d->flags |= BSMM_MATMUL_BATCH_INVARIANT;
    if (unusual(c, 6)) d->b_packed = 1 + rng_below(&c->r, 2);
    if (unusual(c, 6)) add_epilogue(c, p);
    if (unusual(c, 7)) add_groups(c, p);
    if (!d->group && unusual(c, 7)) {
        d->flags |= BSMM_MATMUL_ANY_ROWS;
        p->rows = 1 + (int64_t)rng_below(&c->r, (uint32_t)p->matrices[ANY_A].rows);
        p->counts_on_device = one_in(c, 2);
    }
    p->has_globals = one_in(c, 2);
}

/* Sets the sizes of the buffers, unless the description breaks a rule. */
static void declare_sizes(bsmm_matrix *m) {
    uint64_t data, scales;
    if (bsmm_data_bytes(m, &data) != BSMM_OK || bsmm_scale_bytes(m, &scales) != BSMM_OK) return;
    m->data_bytes = data;
    m->scale_bytes = scales;
}

void any_product_make(any_product *p, uint64_t number, bool is_small) {
    choice chosen = {{number * 2 + is_small + 1000}, is_small, number % 2 == 0};
    choice *const c = &chosen;
    const char *a, *b, *d;
    static const char *const added[] = {"f32", "bf16", "f16"};
    choose_formats(c, &a, &b, &d);
    const int64_t m = EXTENT(c, m), n = EXTENT(c, n), k = EXTENT(c, k);
    *p = (any_product){.rows = 0};
    p->matrices[ANY_A] = vary(c, describe(format_named(a), m, k));
    p->matrices[ANY_B] = vary(c, describe(format_named(b), n, k));
    p->matrices[ANY_C] = describe(format_named(PICK(c, added)), m, n);
    p->matrices[ANY_D] = describe(format_named(d), m, n);
    p->matrices[ANY_RESIDUAL] = describe(format_named(PICK(c, added)), m, n);
    p->desc = (bsmm_matmul_desc){.struct_size = sizeof p->desc,
                                 .a = &p->matrices[ANY_A],
                                 .b = &p->matrices[ANY_B],
                                 .d = &p->matrices[ANY_D],
                                 .threads = 4};
    add_options(c, p);
    p->matrices[ANY_D] = vary(c, p->matrices[ANY_D]);
    for (int i = 0; i < ANY_MATRICES; i++)
        declare_sizes(&p->matrices[i]);
}

void any_product_name(const any_product *p, char *text, size_t size) {
    const bsmm_matrix *const m = p->matrices;
    snprintf(text, size, "%s x %s to %s, M = %lld, N = %lld, K = %lld",
             bsmm_format_name(m[ANY_A].format), bsmm_format_name(m[ANY_B].format),
             bsmm_format_name(m[ANY_D].format), (long long)m[ANY_A].rows, (long long)m[ANY_B].rows,
             (long long)m[ANY_A].cols);
}
