/* Makes grouped products and the matrices of their groups. */
#include "grouped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    G = GROUPED_COUNT,
    N = GROUPED_N,
    K = GROUPED_K,
    M = GROUPED_M,
    TOKENS = GROUPED_TOKENS,
    MOST_ROWS = GROUPED_MOST_ROWS
};

static float small(rng *r) {
    return 0.25f + (float)rng_below(r, 1000) / 400;
}

static int64_t rows_of_group(const grouped_case *c, int g) {
    return c->group.kind == BSMM_GROUP_K || c->group.kind == BSMM_GROUP_BATCH ? M : c->extents[g];
}

/* If all groups share one matrix, copies the first group's matrix to the other groups. */
static void share(grouped_part *parts, size_t member, int64_t step) {
    const test_matrix *from = (const test_matrix *)(const void *)((char *)&parts[0] + member);
    for (int g = 1; g < G && step == BSMM_GROUP_SHARED; g++) {
        test_matrix *to = (test_matrix *)(void *)((char *)&parts[g] + member);
        memcpy(to->m.data, from->m.data, from->data_bytes);
        if (from->scale_bytes) memcpy(to->m.scales, from->m.scales, from->scale_bytes);
    }
}

static void to_all(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at) {
    bsmm_elem_store(elem, all, all_at, bsmm_elem_load(elem, part, part_at));
}

static bsmm_matrix shape(const char *format, int64_t rows, int64_t cols, uint32_t layout,
                         bool by_cols) {
    bsmm_matrix m = describe(format_named(format), rows, cols);
    if (m.format.scale) m.scale_layout = layout;
    m.order = by_cols;
    return m;
}

static void make_part(const grouped_case *c, grouped_part *p, int g, rng *r) {
    int64_t rows = rows_of_group(c, g), k = c->group.kind == BSMM_GROUP_K ? c->extents[g] : K;
    test_matrix_make(&p->a, shape(c->a, rows, k, c->a_layout, c->orders & 1), FILL_ORDINARY, r);
    test_matrix_make(&p->b, shape(c->b, N, k, c->b_layout, c->orders >> 1 & 1), FILL_ORDINARY, r);
    test_matrix_make(&p->c, shape("f32", rows, N, 0, false), FILL_ORDINARY, r);
    test_matrix_make(&p->d, shape(c->d, rows, grouped_d_cols(c), c->d_layout, c->orders >> 2 & 1),
                     FILL_ORDINARY, r);
    test_matrix_make(&p->residual, shape("bf16", rows, grouped_d_cols(c), 0, false), FILL_ORDINARY,
                     r);
}

/* Makes a matrix of the grouped call and fills it with 0xa5. An unreadable page follows the matrix,
 * so an access past its end crashes the test. */
static void make_all(const grouped_case *c, const grouped_whole *w, char matrix, bsmm_matrix m,
                     int64_t step, int64_t scale_step, test_matrix *all) {
    bool stack = grouped_is_stack(c, matrix) && step != BSMM_GROUP_SHARED;
    bsmm_operand o;
    uint64_t more, codes;
    *all = (test_matrix){.m = m, .global = 1};
    assert_int_equal(bsmm_operand_take(&m, "all", &o), BSMM_OK);
    int64_t lines = o.m.order == BSMM_ORDER_ROW ? o.m.rows : o.m.cols;
    more = stack ? (G - 1) * (step ? (uint64_t)step : (uint64_t)(lines * o.m.ld)) : 0;
    codes = stack ? (G - 1) * grouped_scale_step(&o, scale_step) : 0;
    all->data_bytes = o.data_bytes + more * bsmm_elem_row(m.format.elem)->bits / 8;
    all->m.data = guarded_alloc(all->data_bytes);
    if (!m.format.scale) return;
    all->m.scale_bytes = o.scale_bytes;
    all->scale_bytes = o.scale_bytes + codes * bsmm_scale_row_of(m.format.scale)->bytes;
    bool gathered = matrix == 'a' && grouped_has(c, BSMM_GROUP_GATHER_A);
    if (grouped_has(c, BSMM_GROUP_SCALES_APART) && !grouped_is_stack(c, matrix) && !gathered) {
        assert_int_equal(bsmm_group_scale_bytes(&w->group, &m, &all->scale_bytes), BSMM_OK);
        all->m.scale_bytes = all->scale_bytes;
    }
    all->m.scales = guarded_alloc(all->scale_bytes);
}

static void make_values(grouped_whole *w, rng *r) {
    w->alpha = 0.03125f; /* alpha is a power of two, so multiplying by it is exact. */
    w->beta = 0.75f;
    for (int g = 0; g < G; g++) {
        w->alphas[g] = small(r);
        w->a_globals[g] = small(r);
        w->b_globals[g] = small(r);
        w->d_globals[g] = small(r);
    }
    for (int i = 0; i < G * N; i++) {
        w->bias[i] = small(r);
        w->col_scale[i] = small(r);
    }
    for (int i = 0; i < MOST_ROWS; i++)
        w->row_scale[i] = small(r);
}

static void describe_product(const grouped_case *c, grouped_whole *w) {
    w->desc = (bsmm_matmul_desc){.struct_size = sizeof w->desc,
                                 .a = &w->a.m,
                                 .b = &w->b.m,
                                 .d = &w->d.m,
                                 .group = &w->group,
                                 .alpha = &w->alpha};
    if (grouped_has(c, BSMM_GROUP_EACH_A_GLOBAL)) w->a.m.global_scale = w->a_globals;
    if (grouped_has(c, BSMM_GROUP_EACH_B_GLOBAL)) w->b.m.global_scale = w->b_globals;
    if (grouped_has(c, BSMM_GROUP_EACH_D_GLOBAL)) w->d.m.global_scale = w->d_globals;
    if (grouped_has(c, BSMM_GROUP_EACH_ALPHA)) w->group.alpha = w->alphas;
    if (c->group.kind != BSMM_GROUP_BATCH) w->group.sizes = w->sizes;
    if (grouped_has(c, BSMM_GROUP_GATHER_A)) w->group.gather = w->gather;
    if (c->plain) return;
    w->desc.c = &w->c.m;
    w->desc.beta = &w->beta;
    w->desc.bias = w->bias;
    w->desc.bias_elem = BSMM_ELEM_F32;
    if (!c->gated) return;
    w->epilogue = (bsmm_epilogue){.struct_size = sizeof w->epilogue,
                                  .activation = BSMM_ACTIVATION_SWIGLU,
                                  .halves = BSMM_HALVES_INTERLEAVED,
                                  .limit = 7,
                                  .slope = 1.702f,
                                  .up_offset = 1,
                                  .scale_by = BSMM_SCALE_BY_ROW | BSMM_SCALE_BY_COL,
                                  .residual = &w->residual.m,
                                  .row_scale = w->row_scale,
                                  .col_scale = w->col_scale};
    w->desc.epilogue = &w->epilogue;
}

/* Chooses a row of A, or an invalid row index, for each row of D. The separate matrix A of a group
 * consists of the chosen rows. */
static void gather_rows(const grouped_case *c, grouped_whole *w, grouped_part *parts, rng *r) {
    static const int32_t none[] = {-1, TOKENS, INT32_MIN, INT32_MAX};
    int64_t starts[G];
    grouped_starts(c, starts);
    for (int i = 0; i < MOST_ROWS; i++)
        w->gather[i] = rng_below(r, 5) ? (int32_t)rng_below(r, TOKENS) : none[rng_below(r, 4)];
    for (int g = 0; g < G; g++) {
        test_matrix *a = &parts[g].a;
        int64_t first = c->group.kind == BSMM_GROUP_ROWS ? starts[g] : g * M;
        for (int64_t row = 0; row < a->m.rows; row++) {
            int32_t token = w->gather[first + row];
            for (int64_t k = 0; k < K; k++) {
                uint32_t elem = a->m.format.elem, code = 0;
                if (token >= 0 && token < TOKENS)
                    code = bsmm_elem_load(elem, w->a.m.data, grouped_element_at(&w->a.m, token, k));
                bsmm_elem_store(elem, a->m.data, grouped_element_at(&a->m, row, k), code);
            }
            uint32_t block = a->m.format.block_cols, scale = a->m.format.scale;
            for (int64_t j = 0; scale && j * block < K; j++)
                if (token >= 0 && token < TOKENS)
                    bsmm_scale_store_code(
                        scale, a->m.scales, grouped_scale_at(&a->m, row, j),
                        bsmm_scale_load_code(scale, w->a.m.scales,
                                             grouped_scale_at(&w->a.m, token, j)));
        }
    }
}

static void make_a(const grouped_case *c, grouped_whole *w, grouped_part *parts, bsmm_matrix m,
                   rng *r) {
    const bsmm_group *g = &c->group;
    if (grouped_has(c, BSMM_GROUP_GATHER_A)) {
        m.rows = TOKENS;
        test_matrix_make(&w->a, m, FILL_ORDINARY, r);
        gather_rows(c, w, parts, r);
        return;
    }
    make_all(c, w, 'a', m, g->a_step, g->a_scale_step, &w->a);
    grouped_visit(c, 'a', offsetof(grouped_part, a), parts, &w->a, g->a_step, g->a_scale_step,
                  to_all);
}

void grouped_make(const grouped_case *c, grouped_whole *w, grouped_part *parts, rng *r) {
    const bsmm_group *g = &w->group;
    for (int i = 0; i < G; i++)
        make_part(c, &parts[i], i, r);
    /* D has three rows after the last group. If the case tests a wrong group size, D has no such
     * rows. */
    int64_t starts[G], total = grouped_starts(c, starts) + (c->given[0] ? 0 : 3);
    bool by_rows = c->group.kind == BSMM_GROUP_ROWS, by_cols = c->group.kind == BSMM_GROUP_K;
    int64_t m = by_rows ? total : M, k = by_cols ? total : K, n = grouped_d_cols(c);
    memset(w, 0, sizeof *w);
    w->group = c->group;
    w->group.struct_size = sizeof w->group;
    w->group.count = G;
    make_values(w, r);
    share(parts, offsetof(grouped_part, a), g->a_step);
    share(parts, offsetof(grouped_part, b), g->b_step);
    share(parts, offsetof(grouped_part, c), g->c_step);
    for (int i = 0; i < G; i++)
        w->sizes[i] = (int32_t)(c->extents[i] + (by_rows || by_cols ? starts[i] : 0));
    for (int i = 0; i < G; i++)
        if (c->given[i]) memcpy(w->sizes, c->given, sizeof w->sizes);
    bsmm_matrix a = shape(c->a, m, k, c->a_layout, c->orders & 1);
    bsmm_matrix b = shape(c->b, N, k, c->b_layout, c->orders >> 1 & 1);
    a.scale_ld = c->a_scale_ld;
    b.scale_ld = c->b_scale_ld;
    make_a(c, w, parts, a, r);
    make_all(c, w, 'b', b, g->b_step, g->b_scale_step, &w->b);
    make_all(c, w, 'c', shape("f32", m, N, 0, false), g->c_step, 0, &w->c);
    bsmm_matrix d = shape(c->d, m, n, c->d_layout, c->orders >> 2 & 1);
    d.ld = c->d_ld;
    d.scale_ld = c->d_scale_ld;
    make_all(c, w, 'd', d, g->d_step, g->d_scale_step, &w->d);
    make_all(c, w, 'r', shape("bf16", m, n, 0, false), g->residual_step, 0, &w->residual);
    grouped_visit(c, 'b', offsetof(grouped_part, b), parts, &w->b, g->b_step, g->b_scale_step,
                  to_all);
    grouped_visit(c, 'c', offsetof(grouped_part, c), parts, &w->c, g->c_step, 0, to_all);
    grouped_visit(c, 'r', offsetof(grouped_part, residual), parts, &w->residual, g->residual_step,
                  0, to_all);
    describe_product(c, w);
}

void grouped_free(grouped_part *parts, grouped_whole *w) {
    for (int g = 0; g < G; g++) {
        test_matrix *of[] = {&parts[g].a, &parts[g].b, &parts[g].c, &parts[g].d,
                             &parts[g].residual};
        for (size_t i = 0; i < BSMM_COUNT(of); i++)
            test_matrix_free(of[i]);
    }
    test_matrix *all[] = {&w->a, &w->b, &w->c, &w->d, &w->residual};
    for (size_t i = 0; i < BSMM_COUNT(all); i++)
        test_matrix_free(all[i]);
}
