/* Tests grouped products. Each kernel that takes groups must be bitwise identical to a loop that
 * calls bsmm_matmul for each group with separate matrices, and close to dot products in double. The
 * grouped matrices are assembled from those of the groups, element by element. Memory that belongs
 * to no group must not be written, whatever sizes are found on the device. */
#include "core/describe.h"
#include "operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { G = 6, N = 38, K = 160, M = 70, TOKENS = 50, MOST_ROWS = G * M };

/* The running case and its kernel, for messages of helper functions. */
static const char *current, *current_kernel;

/* ---- a case ---- */

typedef struct group_case {
    const char *name, *a, *b, *d;
    bsmm_group group; /* the group's kind, flags, alignment and steps */
    uint32_t a_layout, b_layout, d_layout;
    uint32_t orders; /* bit 0: A is in column order; bit 1: B; bit 2: D */
    int64_t d_ld;
    bool plain; /* true if there is no C, bias, factor or epilogue */
    bool gated;
    int32_t given[G]; /* sizes on the device; if all are 0, those of `extents` */
    int64_t extents[G];
} group_case;

/* One group with matrices of its own. */
typedef struct group_part {
    test_matrix a, b, c, d, residual;
    bsmm_epilogue epilogue;
} group_part;

/* The grouped GEMM with all its operands. */
typedef struct whole {
    test_matrix a, b, c, d, residual;
    int32_t sizes[G], gather[MOST_ROWS];
    float alphas[G], a_globals[G], b_globals[G], d_globals[G];
    float bias[G * N], col_scale[G * N], row_scale[MOST_ROWS];
    float alpha, beta;
    bsmm_epilogue epilogue;
    bsmm_group group;
    bsmm_matmul_desc desc;
} whole;

static bool has(const group_case *c, uint32_t flag) {
    return c->group.flags & flag;
}

static float small(rng *r) {
    return 0.25f + (float)rng_below(r, 1000) / 400;
}

/* ---- positions of the groups ---- */

static bool is_stack(const group_case *c, char matrix) {
    switch (c->group.kind) {
    case BSMM_GROUP_ROWS:
        return matrix == 'b';
    case BSMM_GROUP_K:
        return matrix != 'a' && matrix != 'b';
    default:
        return matrix != 'a' || !has(c, BSMM_GROUP_GATHER_A);
    }
}

static int64_t align_of(const group_case *c) {
    return c->group.align ? c->group.align : 1;
}

/* Returns the first row or column of each group, and the total extent. */
static int64_t starts_of(const group_case *c, int64_t starts[G]) {
    int64_t end = 0;
    for (int g = 0; g < G; g++) {
        starts[g] = (end + align_of(c) - 1) / align_of(c) * align_of(c);
        end = starts[g] + c->extents[g];
    }
    return end;
}

static int64_t rows_of_group(const group_case *c, int g) {
    return c->group.kind == BSMM_GROUP_K || c->group.kind == BSMM_GROUP_BATCH ? M : c->extents[g];
}

static int64_t d_cols(const group_case *c) {
    return c->gated ? N / 2 : N;
}

/* ---- copying between small matrices and the grouped ones ---- */

static bsmm_operand operand_of(const bsmm_matrix *m) {
    bsmm_matrix plain = *m;
    bsmm_operand o;
    /* scales that are stored separately for each group have a different size */
    plain.scale_bytes = 0;
    assert_int_equal(bsmm_operand_take(&plain, "m", &o), BSMM_OK);
    return o;
}

static uint64_t at_element(const bsmm_matrix *m, int64_t r, int64_t c) {
    bsmm_operand o = operand_of(m);
    return bsmm_operand_index(&o, r, c);
}

static uint64_t at_scale(const bsmm_matrix *m, int64_t i, int64_t j) {
    bsmm_operand o = operand_of(m);
    return bsmm_scale_map_at(&o.map, i, j);
}

/* The position of a group's matrix in the grouped matrix: at (row, col), and its scales likewise.
 * With own_scales the scales are a separate matrix that begins scale_base scales after the buffer's
 * start. */
typedef struct placement {
    int64_t row, col;
    uint64_t element_base, scale_base;
    bool own_scales;
} placement;

typedef void visit(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at);

static void to_all(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at) {
    bsmm_elem_store(elem, all, all_at, bsmm_elem_load(elem, part, part_at));
}

static void same(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at) {
    uint32_t want = bsmm_elem_load(elem, part, part_at), got = bsmm_elem_load(elem, all, all_at);
    if (want != got)
        fail_msg("%s, %s: element %llu: got code %x, want %x", current, current_kernel,
                 (unsigned long long)all_at, got, want);
}

/* Poisons the elements that `same` has compared. Everything that is left must then be poison. */
static void wipe(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at) {
    static uint8_t poison[16];
    memset(poison, 0xa5, sizeof poison);
    (void)part, (void)part_at;
    bsmm_elem_store(elem, all, all_at, bsmm_elem_load(elem, poison, all_at % 4));
}

static void visit_part(const test_matrix *part, const test_matrix *all, const placement *p,
                       visit *f) {
    const bsmm_format *format = &part->m.format;
    const bsmm_operand from = operand_of(&part->m), to = operand_of(&all->m);
    for (int64_t r = 0; r < part->m.rows; r++)
        for (int64_t c = 0; c < part->m.cols; c++)
            f(format->elem, part->m.data, bsmm_operand_index(&from, r, c), all->m.data,
              p->element_base + bsmm_operand_index(&to, p->row + r, p->col + c));
    if (!part->m.scales || part->m.rows == 0 || part->m.cols == 0) return;
    uint32_t scale_elem = bsmm_scale_row_of(format->scale)->elem;
    int64_t row = p->row / format->block_rows, col = p->col / format->block_cols;
    for (int64_t i = 0; i < from.map.rows; i++)
        for (int64_t j = 0; j < from.map.cols; j++) {
            uint64_t at = bsmm_scale_map_at(&from.map, i, j), there = at;
            if (!p->own_scales) there = bsmm_scale_map_at(&to.map, row + i, col + j);
            f(scale_elem, part->m.scales, at, all->m.scales, p->scale_base + there);
        }
}

/* Returns the position of group g's part of a matrix. `scales` counts the scales of the previous
 * parts, if they are stored separately. */
static placement place_of(const group_case *c, char matrix, int g, const test_matrix *part,
                          const test_matrix *all, int64_t step, int64_t scale_step,
                          uint64_t *scales) {
    int64_t starts[G];
    starts_of(c, starts);
    if (is_stack(c, matrix)) {
        bsmm_operand o;
        assert_int_equal(bsmm_operand_take(&all->m, "all", &o), BSMM_OK);
        int64_t lines = o.m.order == BSMM_ORDER_ROW ? o.m.rows : o.m.cols;
        uint64_t elements = step ? (uint64_t)step : (uint64_t)(lines * o.m.ld);
        uint64_t codes = scale_step ? (uint64_t)scale_step : o.map.count;
        if (step == BSMM_GROUP_SHARED) elements = codes = 0;
        return (placement){.element_base = (uint64_t)g * elements,
                           .scale_base = (uint64_t)g * codes};
    }
    placement p = {.row = c->group.kind == BSMM_GROUP_K ? 0 : starts[g],
                   .col = c->group.kind == BSMM_GROUP_K ? starts[g] : 0};
    if (!has(c, BSMM_GROUP_SCALES_APART) || !all->m.scales) return p;
    p.own_scales = true;
    p.scale_base = *scales;
    *scales += part->scale_bytes / bsmm_scale_row_of(part->m.format.scale)->bytes;
    return p;
}

/* Copies the first group's matrix to the groups that share it. */
static void share(group_part *parts, size_t member, int64_t step) {
    const test_matrix *from = (const test_matrix *)(const void *)((char *)&parts[0] + member);
    for (int g = 1; g < G && step == BSMM_GROUP_SHARED; g++) {
        test_matrix *to = (test_matrix *)(void *)((char *)&parts[g] + member);
        memcpy(to->m.data, from->m.data, from->data_bytes);
        if (from->scale_bytes) memcpy(to->m.scales, from->m.scales, from->scale_bytes);
    }
}

static void visit_groups(const group_case *c, char matrix, size_t member, group_part *parts,
                         const test_matrix *all, int64_t step, int64_t scale_step, visit *f) {
    uint64_t scales = 0;
    for (int g = 0; g < G; g++) {
        const test_matrix *part = (const test_matrix *)(const void *)((char *)&parts[g] + member);
        placement p = place_of(c, matrix, g, part, all, step, scale_step, &scales);
        visit_part(part, all, &p, f);
    }
}

/* ---- making products ---- */

static bsmm_matrix shape(const char *format, int64_t rows, int64_t cols, uint32_t layout,
                         bool by_cols) {
    bsmm_matrix m = describe(format_named(format), rows, cols);
    if (m.format.scale) m.scale_layout = layout;
    m.order = by_cols;
    return m;
}

static void make_part(const group_case *c, group_part *p, int g, rng *r) {
    int64_t rows = rows_of_group(c, g), k = c->group.kind == BSMM_GROUP_K ? c->extents[g] : K;
    test_matrix_make(&p->a, shape(c->a, rows, k, c->a_layout, c->orders & 1), FILL_ORDINARY, r);
    test_matrix_make(&p->b, shape(c->b, N, k, c->b_layout, c->orders >> 1 & 1), FILL_ORDINARY, r);
    test_matrix_make(&p->c, shape("f32", rows, N, 0, false), FILL_ORDINARY, r);
    test_matrix_make(&p->d, shape(c->d, rows, d_cols(c), c->d_layout, c->orders >> 2 & 1),
                     FILL_ORDINARY, r);
    test_matrix_make(&p->residual, shape("bf16", rows, d_cols(c), 0, false), FILL_ORDINARY, r);
}

/* Makes a poisoned grouped matrix in memory that ends where the matrix ends. */
static void make_all(const group_case *c, const whole *w, char matrix, bsmm_matrix m, int64_t step,
                     int64_t scale_step, test_matrix *all) {
    bool stack = is_stack(c, matrix) && step != BSMM_GROUP_SHARED;
    bsmm_operand o;
    uint64_t more, codes;
    *all = (test_matrix){.m = m, .global = 1};
    assert_int_equal(bsmm_operand_take(&m, "all", &o), BSMM_OK);
    int64_t lines = o.m.order == BSMM_ORDER_ROW ? o.m.rows : o.m.cols;
    more = stack ? (G - 1) * (step ? (uint64_t)step : (uint64_t)(lines * o.m.ld)) : 0;
    codes = stack ? (G - 1) * (scale_step ? (uint64_t)scale_step : o.map.count) : 0;
    all->data_bytes = o.data_bytes + more * bsmm_elem_row(m.format.elem)->bits / 8;
    all->m.data = guarded_alloc(all->data_bytes);
    if (!m.format.scale) return;
    all->m.scale_bytes = o.scale_bytes;
    all->scale_bytes = o.scale_bytes + codes * bsmm_scale_row_of(m.format.scale)->bytes;
    bool gathered = matrix == 'a' && has(c, BSMM_GROUP_GATHER_A);
    if (has(c, BSMM_GROUP_SCALES_APART) && !is_stack(c, matrix) && !gathered) {
        assert_int_equal(bsmm_group_scale_bytes(&w->group, &m, &all->scale_bytes), BSMM_OK);
        all->m.scale_bytes = all->scale_bytes;
    }
    all->m.scales = guarded_alloc(all->scale_bytes);
}

static void make_values(whole *w, rng *r) {
    w->alpha = 0.03125f; /* the product of 0.03125 and a float is exact */
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

static void describe_product(const group_case *c, whole *w) {
    w->desc = (bsmm_matmul_desc){.struct_size = sizeof w->desc,
                                 .a = &w->a.m,
                                 .b = &w->b.m,
                                 .d = &w->d.m,
                                 .group = &w->group,
                                 .alpha = &w->alpha};
    if (has(c, BSMM_GROUP_EACH_A_GLOBAL)) w->a.m.global_scale = w->a_globals;
    if (has(c, BSMM_GROUP_EACH_B_GLOBAL)) w->b.m.global_scale = w->b_globals;
    if (has(c, BSMM_GROUP_EACH_D_GLOBAL)) w->d.m.global_scale = w->d_globals;
    if (has(c, BSMM_GROUP_EACH_ALPHA)) w->group.alpha = w->alphas;
    if (c->group.kind != BSMM_GROUP_BATCH) w->group.sizes = w->sizes;
    if (has(c, BSMM_GROUP_GATHER_A)) w->group.gather = w->gather;
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

/* Chooses token t, or none, for each row of D. The group's own A consists of these rows. */
static void gather_rows(const group_case *c, whole *w, group_part *parts, rng *r) {
    static const int32_t none[] = {-1, TOKENS, INT32_MIN, INT32_MAX};
    int64_t starts[G];
    starts_of(c, starts);
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
                    code = bsmm_elem_load(elem, w->a.m.data, at_element(&w->a.m, token, k));
                bsmm_elem_store(elem, a->m.data, at_element(&a->m, row, k), code);
            }
            uint32_t block = a->m.format.block_cols, scale = a->m.format.scale;
            for (int64_t j = 0; scale && j * block < K; j++)
                if (token >= 0 && token < TOKENS)
                    bsmm_scale_store_code(
                        scale, a->m.scales, at_scale(&a->m, row, j),
                        bsmm_scale_load_code(scale, w->a.m.scales, at_scale(&w->a.m, token, j)));
        }
    }
}

static void make_a(const group_case *c, whole *w, group_part *parts, bsmm_matrix m, rng *r) {
    const bsmm_group *g = &c->group;
    if (has(c, BSMM_GROUP_GATHER_A)) {
        m.rows = TOKENS;
        test_matrix_make(&w->a, m, FILL_ORDINARY, r);
        gather_rows(c, w, parts, r);
        return;
    }
    make_all(c, w, 'a', m, g->a_step, g->a_scale_step, &w->a);
    visit_groups(c, 'a', offsetof(group_part, a), parts, &w->a, g->a_step, g->a_scale_step, to_all);
}

static void make_whole(const group_case *c, whole *w, group_part *parts, rng *r) {
    const bsmm_group *g = &w->group;
    /* Some rows follow the last group, except if a size is meant to exceed the last row. */
    int64_t starts[G], total = starts_of(c, starts) + (c->given[0] ? 0 : 3);
    bool by_rows = c->group.kind == BSMM_GROUP_ROWS, by_cols = c->group.kind == BSMM_GROUP_K;
    int64_t m = by_rows ? total : M, k = by_cols ? total : K, n = d_cols(c);
    memset(w, 0, sizeof *w);
    w->group = c->group;
    w->group.struct_size = sizeof w->group;
    w->group.count = G;
    make_values(w, r);
    share(parts, offsetof(group_part, a), g->a_step);
    share(parts, offsetof(group_part, b), g->b_step);
    share(parts, offsetof(group_part, c), g->c_step);
    for (int i = 0; i < G; i++)
        w->sizes[i] = (int32_t)(c->extents[i] + (by_rows || by_cols ? starts[i] : 0));
    for (int i = 0; i < G; i++)
        if (c->given[i]) memcpy(w->sizes, c->given, sizeof w->sizes);
    make_a(c, w, parts, shape(c->a, m, k, c->a_layout, c->orders & 1), r);
    make_all(c, w, 'b', shape(c->b, N, k, c->b_layout, c->orders >> 1 & 1), g->b_step,
             g->b_scale_step, &w->b);
    make_all(c, w, 'c', shape("f32", m, N, 0, false), g->c_step, 0, &w->c);
    bsmm_matrix d = shape(c->d, m, n, c->d_layout, c->orders >> 2 & 1);
    d.ld = c->d_ld;
    make_all(c, w, 'd', d, g->d_step, g->d_scale_step, &w->d);
    make_all(c, w, 'r', shape("bf16", m, n, 0, false), g->residual_step, 0, &w->residual);
    visit_groups(c, 'b', offsetof(group_part, b), parts, &w->b, g->b_step, g->b_scale_step, to_all);
    visit_groups(c, 'c', offsetof(group_part, c), parts, &w->c, g->c_step, 0, to_all);
    visit_groups(c, 'r', offsetof(group_part, residual), parts, &w->residual, g->residual_step, 0,
                 to_all);
    describe_product(c, w);
}

static void free_matrices(group_part *parts, whole *w) {
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

/* ---- the loop over groups ---- */

static void multiply_part(const group_case *c, const whole *w, group_part *p, int g,
                          const char *kernel) {
    int64_t starts[G];
    starts_of(c, starts);
    int64_t first = c->group.kind == BSMM_GROUP_ROWS ? starts[g] : g * M;
    float alpha = w->alpha * (has(c, BSMM_GROUP_EACH_ALPHA) ? w->alphas[g] : 1);
    bsmm_matmul_desc desc = w->desc;
    desc.group = NULL;
    desc.kernel = kernel;
    desc.alpha = &alpha;
    desc.a = &p->a.m;
    desc.b = &p->b.m;
    desc.d = &p->d.m;
    float globals[] = {w->a_globals[g], w->b_globals[g], w->d_globals[g]};
    p->a.m.global_scale = has(c, BSMM_GROUP_EACH_A_GLOBAL) ? &globals[0] : NULL;
    p->b.m.global_scale = has(c, BSMM_GROUP_EACH_B_GLOBAL) ? &globals[1] : NULL;
    p->d.m.global_scale = has(c, BSMM_GROUP_EACH_D_GLOBAL) ? &globals[2] : NULL;
    if (desc.c) desc.c = &p->c.m;
    if (has(c, BSMM_GROUP_EACH_BIAS)) desc.bias = w->bias + g * N;
    if (desc.epilogue) {
        p->epilogue = w->epilogue;
        p->epilogue.residual = &p->residual.m;
        p->epilogue.row_scale = w->row_scale + first;
        if (has(c, BSMM_GROUP_EACH_COL_SCALE)) p->epilogue.col_scale = w->col_scale + g * d_cols(c);
        desc.epilogue = &p->epilogue;
    }
    if (bsmm_matmul(&desc) != BSMM_OK)
        fail_msg("%s: group %d: %s", c->name, g, bsmm_error_message());
}

static bool is_poison(const void *memory, uint64_t bytes, uint64_t *at) {
    for (*at = 0; *at < bytes; ++*at)
        if (((const uint8_t *)memory)[*at] != 0xa5) return false;
    return true;
}

/* Checks that D equals the result of the loop. Elements that belong to no group must be untouched.
 * Scales after a group's rows are padding, which is written. */
static void check_d(const group_case *c, const whole *w, group_part *parts, const char *kernel) {
    const bsmm_group *g = &c->group;
    uint64_t at;
    for (int i = 0; i < G; i++)
        multiply_part(c, w, &parts[i], i, kernel);
    visit_groups(c, 'd', offsetof(group_part, d), parts, &w->d, g->d_step, g->d_scale_step, same);
    visit_groups(c, 'd', offsetof(group_part, d), parts, &w->d, g->d_step, g->d_scale_step, wipe);
    if (!is_poison(w->d.m.data, w->d.data_bytes, &at))
        fail_msg("%s: byte %llu of D, which is no group's, was written", c->name,
                 (unsigned long long)at);
}

/* Compares groups of fp32 results without an epilogue with dot products computed here. */
static void check_sums(const group_case *c, const whole *w, const group_part *p, double bound) {
    for (int64_t i = 0; i < p->d.m.rows; i++)
        for (int64_t j = 0; j < p->d.m.cols; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < p->a.m.cols; k++) {
                double term = test_matrix_value(&p->a, i, k) * test_matrix_value(&p->b, j, k);
                sum += term;
                magnitude += fabs(term);
            }
            double alpha = (double)w->alpha, got = test_matrix_value(&p->d, i, j);
            double slack = (bound + (double)p->a.m.cols * 0x1p-53) * alpha * magnitude;
            if (!(fabs(got - alpha * sum) <= slack + fabs(got) * 0x1p-24))
                fail_msg("%s, %s: got %a, want %a", c->name, current_kernel, got, alpha * sum);
        }
}

/* Runs the product through a plan with B packed, if the kernel packs, else through bsmm_matmul. */
static void run(const whole *w, bool packed) {
    bsmm_matmul_desc desc = w->desc;
    bsmm_plan *plan;
    desc.b_packed = packed;
    if (!packed) {
        if (bsmm_matmul(&desc) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        return;
    }
    assert_int_equal(bsmm_plan_create(&desc, &plan), BSMM_OK);
    uint64_t bytes = bsmm_plan_workspace_bytes(plan), of_b = bsmm_plan_packed_b_bytes(plan);
    bsmm_buffers buffers = {.struct_size = sizeof buffers,
                            .a = w->a.m.data,
                            .a_scales = w->a.m.scales,
                            .a_global = w->a.m.global_scale,
                            .b = w->b.m.data,
                            .b_scales = w->b.m.scales,
                            .b_global = w->b.m.global_scale,
                            .c = w->desc.c ? w->c.m.data : NULL,
                            .d = w->d.m.data,
                            .d_scales = w->d.m.scales,
                            .d_global = w->d.m.global_scale,
                            .bias = w->desc.bias,
                            .residual = w->desc.epilogue ? w->residual.m.data : NULL,
                            .row_scale = w->epilogue.row_scale,
                            .col_scale = w->epilogue.col_scale,
                            .group_sizes = w->group.sizes,
                            .gather = w->group.gather,
                            .group_alpha = w->group.alpha,
                            .workspace = aligned_alloc(64, (bytes + 63) / 64 * 64),
                            .workspace_bytes = bytes,
                            .packed_b_bytes = of_b};
    void *memory = aligned_alloc(64, (of_b + 63) / 64 * 64);
    assert_int_equal(bsmm_pack_b(plan, &buffers, memory, of_b), BSMM_OK);
    buffers.packed_b = memory;
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    free(memory);
    free(buffers.workspace);
    bsmm_plan_destroy(plan);
}

static void check_kernel(const group_case *c, whole *w, group_part *parts, const char *kernel,
                         bool packed) {
    memset(w->d.m.data, 0xa5, w->d.data_bytes);
    w->desc.kernel = kernel;
    current_kernel = kernel ? kernel : "any kernel";
    run(w, packed);
    check_d(c, w, parts, kernel);
}

static void check_case(const group_case *c) {
    static group_part parts[G];
    current = c->name;
    if (getenv("BSMM_TEST_VERBOSE")) print_message("%s\n", c->name);
    static whole w;
    rng r = {101};
    for (int g = 0; g < G; g++)
        make_part(c, &parts[g], g, &r);
    make_whole(c, &w, parts, &r);
    bsmm_explanation e = {.struct_size = sizeof e};
    int ran = 0;
    for (uint32_t i = 0; bsmm_explain(&w.desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts) continue;
        check_kernel(c, &w, parts, e.kernel, false);
        for (int g = 0; c->plain && !c->group.flags && g < G; g++)
            if (w.d.m.format.elem == BSMM_ELEM_F32) check_sums(c, &w, &parts[g], e.bound);
        w.desc.b_packed = 1;
        bool packs =
            c->group.kind != BSMM_GROUP_K && bsmm_explain(&w.desc, i, &e) == BSMM_OK && e.accepts;
        w.desc.b_packed = 0;
        if (packs) check_kernel(c, &w, parts, e.kernel, true);
        ran++;
    }
    if (ran == 0) fail_msg("%s: no kernel: %s", c->name, bsmm_error_message());
    check_kernel(c, &w, parts, NULL, false);
    free_matrices(parts, &w);
}

/* ---- the cases ---- */

#define EXTENTS                                                                                    \
    { 5, 0, 33, 16, 1, 70 }
#define EVERY    (BSMM_GROUP_EACH_ALPHA | BSMM_GROUP_EACH_BIAS | BSMM_GROUP_EACH_COL_SCALE)
#define GLOBALS  (BSMM_GROUP_EACH_A_GLOBAL | BSMM_GROUP_EACH_B_GLOBAL)
#define MXFP8_4  .a = "mxfp8", .b = "mxfp4", .d = "f32"
#define NVFP4    .a = "nvfp4", .b = "nvfp4", .d = "bf16"
#define FP8      .a = "fp8_group128", .b = "fp8_block128", .d = "bf16"
#define SWIZZLED .a_layout = BSMM_LAYOUT_NV_128X4, .b_layout = BSMM_LAYOUT_NV_128X4

static const group_case cases[] = {
    {"batch", MXFP8_4, {.kind = BSMM_GROUP_BATCH}, .plain = true},
    {"batch of everything", MXFP8_4, {.kind = BSMM_GROUP_BATCH, .flags = EVERY}, .gated = true},
    {"batch with steps",
     NVFP4,
     {.kind = BSMM_GROUP_BATCH,
      .flags = GLOBALS,
      .a_step = 20000,
      .b_step = 7000,
      .c_step = 3000,
      .d_step = 4000,
      .a_scale_step = 1600,
      .b_scale_step = 2048},
     SWIZZLED},
    {"batch side by side",
     MXFP8_4,
     {.kind = BSMM_GROUP_BATCH, .flags = EVERY, .d_step = N / 2, .residual_step = 5000},
     .d_ld = G * N / 2,
     .gated = true},
    {"batch that shares A",
     MXFP8_4,
     {.kind = BSMM_GROUP_BATCH, .a_step = BSMM_GROUP_SHARED, .c_step = BSMM_GROUP_SHARED}},
    {"batch that shares B", MXFP8_4, {.kind = BSMM_GROUP_BATCH, .b_step = BSMM_GROUP_SHARED}},
    {"batch by columns", FP8, {.kind = BSMM_GROUP_BATCH}, .orders = 7},

    {"rows: torch's offs",
     .a = "bf16",
     .b = "bf16",
     .d = "bf16",
     {.kind = BSMM_GROUP_ROWS},
     .extents = EXTENTS,
     .plain = true},
    {"rows of everything",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS, .flags = EVERY},
     .extents = EXTENTS,
     .gated = true},
    {"rows aligned: DeepGEMM",
     FP8,
     {.kind = BSMM_GROUP_ROWS, .align = 128},
     .extents = EXTENTS,
     .a_layout = BSMM_LAYOUT_COL_MAJOR},
    {"rows by columns",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS, .align = 8},
     .extents = EXTENTS,
     .orders = 7},
    {"rows, swizzled",
     NVFP4,
     {.kind = BSMM_GROUP_ROWS, .align = 128, .flags = GLOBALS},
     SWIZZLED,
     .extents = EXTENTS},
    {"rows, scales apart",
     NVFP4,
     {.kind = BSMM_GROUP_ROWS, .flags = GLOBALS | BSMM_GROUP_SCALES_APART},
     SWIZZLED,
     .extents = EXTENTS},
    {"rows, quantized",
     .a = "mxfp8",
     .b = "mxfp4",
     .d = "mxfp8",
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_EACH_D_GLOBAL},
     .extents = EXTENTS},
    {"rows, quantized and apart",
     .a = "mxfp8",
     .b = "mxfp4",
     .d = "mxfp8",
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_SCALES_APART},
     .d_layout = BSMM_LAYOUT_CUBLAS_VEC128,
     .extents = EXTENTS},
    {"rows, blocks of rows",
     .a = "fp8_block128",
     .b = "mxfp8",
     .d = "fp8_block128",
     {.kind = BSMM_GROUP_ROWS, .align = 128},
     .extents = EXTENTS,
     .plain = true},
    {"rows gathered",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS, .flags = EVERY | BSMM_GROUP_GATHER_A},
     .extents = EXTENTS,
     .gated = true},
    {"rows gathered, swizzled",
     NVFP4,
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_GATHER_A | GLOBALS},
     SWIZZLED,
     .extents = EXTENTS},
    {"rows gathered by columns",
     FP8,
     {.kind = BSMM_GROUP_ROWS, .flags = BSMM_GROUP_GATHER_A},
     .orders = 1,
     .extents = EXTENTS,
     .plain = true},

    {"masked", FP8, {.kind = BSMM_GROUP_MASKED, .expected_rows = 30}, .extents = EXTENTS},
    {"masked of everything",
     MXFP8_4,
     {.kind = BSMM_GROUP_MASKED, .flags = EVERY | GLOBALS},
     .extents = EXTENTS,
     .gated = true},
    {"masked, gathered",
     NVFP4,
     {.kind = BSMM_GROUP_MASKED, .flags = BSMM_GROUP_GATHER_A},
     .extents = EXTENTS,
     .plain = true},

    {"k: torch's offs",
     .a = "bf16",
     .b = "bf16",
     .d = "f32",
     {.kind = BSMM_GROUP_K},
     .extents = EXTENTS,
     .plain = true},
    {"k of everything",
     MXFP8_4,
     {.kind = BSMM_GROUP_K, .align = 32, .flags = EVERY},
     .extents = {64, 0, 160, 33, 1, 128},
     .gated = true},
    {"k aligned: DeepGEMM",
     FP8,
     {.kind = BSMM_GROUP_K, .align = 128},
     .orders = 3,
     .extents = {128, 0, 384, 256, 100, 128},
     .plain = true},
    {"k, scales apart",
     .a = "mxfp8",
     .b = "mxfp8",
     .d = "f32",
     {.kind = BSMM_GROUP_K, .align = 16, .flags = BSMM_GROUP_SCALES_APART},
     SWIZZLED,
     .extents = {64, 0, 160, 40, 1, 128}},
    {"k, second level",
     NVFP4,
     {.kind = BSMM_GROUP_K, .align = 64, .flags = GLOBALS},
     SWIZZLED,
     .extents = {64, 0, 160, 40, 2, 128}},

    {"rows that run backwards",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS},
     .plain = true,
     .extents = {5, 0, 0, 40, 0, 0},
     .given = {5, -7, 3, 45, INT32_MIN, 44}},
    {"rows beyond the last",
     MXFP8_4,
     {.kind = BSMM_GROUP_ROWS},
     .plain = true,
     .extents = {5, 48, 0, 0, 0, 0},
     .given = {5, INT32_MAX, 7, INT32_MAX, 54, 1000}},
    {"masked beyond the last",
     MXFP8_4,
     {.kind = BSMM_GROUP_MASKED},
     .plain = true,
     .extents = {70, 0, 0, 3, 70, 0},
     .given = {71, -1, INT32_MIN, 3, INT32_MAX, 0}},
    {"k that runs backwards",
     MXFP8_4,
     {.kind = BSMM_GROUP_K, .align = 32},
     .plain = true,
     .extents = {40, 0, 0, 20, 0, 0},
     .given = {40, 1, -1, 84, 64, 60}},
};

static void test_against_a_loop(void **state) {
    (void)state;
    for (size_t i = 0; i < BSMM_COUNT(cases); i++)
        check_case(&cases[i]);
}

/* ---- arbitrary sizes ---- */

static int32_t any_size(rng *r) {
    static const int32_t special[] = {INT32_MIN, INT32_MAX, -1, 0, 1};
    uint32_t kind = rng_below(r, 10);
    return kind < BSMM_COUNT(special) ? special[kind] : (int32_t)rng_below(r, 200) - 20;
}

/* Sets the extents that the header's rule derives from such sizes, for a total extent. */
static void apply_rule(group_case *c, int64_t total) {
    int64_t end = 0;
    for (int g = 0; g < G; g++) {
        int64_t start = c->group.kind == BSMM_GROUP_MASKED ? 0 : end, size = c->given[g];
        end = size < start ? start : size > total ? total : size;
        c->extents[g] = end - start;
    }
}

/* Tests random sizes. The last group ends where the extent does, because the test derives the
 * extent from it. */
static void test_random_sizes(void **state) {
    (void)state;
    static const uint32_t kinds[] = {BSMM_GROUP_ROWS, BSMM_GROUP_MASKED, BSMM_GROUP_K};
    rng r = {102};
    for (int i = 0; i < 15; i++) {
        uint32_t kind = kinds[i % 3];
        group_case c = {"random sizes", .a = "bf16", .b = "bf16", .d = "f32", .plain = true};
        c.group.kind = kind;
        for (int g = 0; g < G; g++)
            c.given[g] = any_size(&r);
        if (c.given[0] == 0) c.given[0] = 1;
        if (kind != BSMM_GROUP_MASKED) c.given[G - 1] = INT32_MAX;
        apply_rule(&c, M);
        check_case(&c);
    }
}

static void test_random_gathers(void **state) {
    (void)state;
    rng r = {103};
    for (int i = 0; i < 6; i++) {
        group_case c = {"random gathers", MXFP8_4, .plain = true};
        c.group.kind = i % 2 ? BSMM_GROUP_ROWS : BSMM_GROUP_MASKED;
        c.group.flags = BSMM_GROUP_GATHER_A;
        for (int g = 0; g < G; g++)
            c.extents[g] = rng_below(&r, M);
        check_case(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_loop),
        cmocka_unit_test(test_random_sizes),
        cmocka_unit_test(test_random_gathers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
