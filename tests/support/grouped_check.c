/* Runs grouped products and compares them with one bsmm_matmul call for each group. */
#include "grouped.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { G = GROUPED_COUNT, N = GROUPED_N, M = GROUPED_M };

/* `current` and `current_kernel` name the running test case and its kernel. Functions below print
 * them in messages. */
static const char *current, *current_kernel;

static void same(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at) {
    uint32_t want = bsmm_elem_load(elem, part, part_at), got = bsmm_elem_load(elem, all, all_at);
    if (want != got)
        fail_msg("%s, %s: element %llu: got code %x, want %x", current, current_kernel,
                 (unsigned long long)all_at, got, want);
}

/* Overwrites an element of D with 0xa5 after `same` has compared it. When this is done for all
 * groups, every byte of D must be 0xa5. Any other byte shows that the kernel has written outside
 * the groups. */
static void wipe(uint32_t elem, void *part, uint64_t part_at, void *all, uint64_t all_at) {
    static uint8_t poison[16];
    memset(poison, 0xa5, sizeof poison);
    (void)part, (void)part_at;
    bsmm_elem_store(elem, all, all_at, bsmm_elem_load(elem, poison, all_at % 4));
}

static void multiply_part(const grouped_case *c, const grouped_whole *w, grouped_part *p, int g,
                          const char *kernel) {
    int64_t starts[G];
    grouped_starts(c, starts);
    int64_t first = c->group.kind == BSMM_GROUP_ROWS ? starts[g] : g * M;
    float alpha = w->alpha * (grouped_has(c, BSMM_GROUP_EACH_ALPHA) ? w->alphas[g] : 1);
    bsmm_matmul_desc desc = w->desc;
    desc.group = NULL;
    desc.kernel = kernel;
    desc.alpha = &alpha;
    desc.a = &p->a.m;
    desc.b = &p->b.m;
    desc.d = &p->d.m;
    float globals[] = {w->a_globals[g], w->b_globals[g], w->d_globals[g]};
    p->a.m.global_scale = grouped_has(c, BSMM_GROUP_EACH_A_GLOBAL) ? &globals[0] : NULL;
    p->b.m.global_scale = grouped_has(c, BSMM_GROUP_EACH_B_GLOBAL) ? &globals[1] : NULL;
    p->d.m.global_scale = grouped_has(c, BSMM_GROUP_EACH_D_GLOBAL) ? &globals[2] : NULL;
    if (desc.c) desc.c = &p->c.m;
    if (grouped_has(c, BSMM_GROUP_EACH_BIAS)) desc.bias = w->bias + g * N;
    if (desc.epilogue) {
        p->epilogue = w->epilogue;
        p->epilogue.residual = &p->residual.m;
        p->epilogue.row_scale = w->row_scale + first;
        if (grouped_has(c, BSMM_GROUP_EACH_COL_SCALE))
            p->epilogue.col_scale = w->col_scale + g * grouped_d_cols(c);
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

/* Checks that the grouped call wrote the same D as the separate calls. Elements of D that belong to
 * no group must be unchanged. Scales after the last row of a group are padding and may have
 * changed. */
static void check_d(const grouped_case *c, const grouped_whole *w, grouped_part *parts,
                    const char *kernel) {
    const bsmm_group *g = &c->group;
    uint64_t at;
    for (int i = 0; i < G; i++)
        multiply_part(c, w, &parts[i], i, kernel);
    grouped_visit(c, 'd', offsetof(grouped_part, d), parts, &w->d, g->d_step, g->d_scale_step,
                  same);
    grouped_visit(c, 'd', offsetof(grouped_part, d), parts, &w->d, g->d_step, g->d_scale_step,
                  wipe);
    if (!is_poison(w->d.m.data, w->d.data_bytes, &at))
        fail_msg("%s: byte %llu of D, which is no group's, was written", c->name,
                 (unsigned long long)at);
}

/* Compares the fp32 results of a group without an epilogue with dot products that the test computes
 * in double. */
static void check_sums(const grouped_case *c, const grouped_whole *w, const grouped_part *p,
                       double bound) {
    const int64_t depth = p->a.m.cols, cols = p->d.m.cols;
    double *a = test_matrix_values(&p->a), *b = test_matrix_values(&p->b);
    double *d = test_matrix_values(&p->d);
    for (int64_t i = 0; i < p->d.m.rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < depth; k++) {
                double term = a[i * depth + k] * b[j * depth + k];
                sum += term;
                magnitude += fabs(term);
            }
            double alpha = (double)w->alpha, got = d[i * cols + j];
            double slack = (bound + (double)depth * 0x1p-53) * alpha * magnitude;
            if (!(fabs(got - alpha * sum) <= slack + fabs(got) * 0x1p-24))
                fail_msg("%s, %s: got %a, want %a", c->name, current_kernel, got, alpha * sum);
        }
    free(a);
    free(b);
    free(d);
}

/* Computes the product. If `form` is a packed form, B is packed, and the run of the plan gets no
 * pointer to the unpacked B. If `form` is NONE, the function calls bsmm_matmul. */
static void run(const grouped_whole *w, uint32_t form) {
    bsmm_matmul_desc desc = w->desc;
    bsmm_plan *plan;
    desc.b_packed = form;
    if (!form) {
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
    buffers.b = buffers.b_scales = NULL;
    buffers.b_global = NULL;
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    free(memory);
    free(buffers.workspace);
    bsmm_plan_destroy(plan);
}

static void check_kernel(const grouped_case *c, grouped_whole *w, grouped_part *parts,
                         const char *kernel, uint32_t form) {
    memset(w->d.m.data, 0xa5, w->d.data_bytes);
    w->desc.kernel = kernel;
    current_kernel = kernel ? kernel : "any kernel";
    run(w, form);
    check_d(c, w, parts, kernel);
}

void grouped_check(const grouped_case *c) {
    static grouped_part parts[G];
    current = c->name;
    if (getenv("BSMM_TEST_VERBOSE")) print_message("%s\n", c->name);
    static grouped_whole w;
    rng r = {101};
    grouped_make(c, &w, parts, &r);
    bsmm_explanation e = {.struct_size = sizeof e};
    int ran = 0;
    for (uint32_t i = 0; bsmm_explain(&w.desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts) continue;
        check_kernel(c, &w, parts, e.kernel, BSMM_PACKED_NONE);
        for (int g = 0; c->plain && !c->group.flags && g < G; g++)
            if (w.d.m.format.elem == BSMM_ELEM_F32) check_sums(c, &w, &parts[g], e.bound);
        for (uint32_t form = BSMM_PACKED_WIDE; form <= BSMM_PACKED_COMPACT; form++) {
            w.desc.b_packed = form;
            bool packs = c->group.kind != BSMM_GROUP_K && bsmm_explain(&w.desc, i, &e) == BSMM_OK &&
                         e.accepts;
            w.desc.b_packed = 0;
            if (packs) check_kernel(c, &w, parts, e.kernel, form);
        }
        ran++;
    }
    if (ran == 0) fail_msg("%s: no kernel: %s", c->name, bsmm_error_message());
    check_kernel(c, &w, parts, NULL, BSMM_PACKED_NONE);
    grouped_free(parts, &w);
}
