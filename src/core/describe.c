/* Validates a caller's description of a matrix product (bsmm_matmul_desc): its shapes, formats,
 * factors and options. */
#include "core/describe.h"

#include "base/choices.h"
#include "base/threads.h"
#include "core/epilogue.h"
#include "core/groups.h"
#include "core/packed.h"

#include <math.h>

static bool is_unscaled(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_NONE;
}

/* Checks that a matrix's number of rows or columns equals `wanted`, the extent that the field
 * `other` of another matrix sets. */
static bsmm_status check_same(const char *field, int64_t value, const char *other, int64_t wanted) {
    if (value == wanted) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s: value is %lld; must equal %s (%lld)", field,
                     (long long)value, other, (long long)wanted);
}

/* Checks the number of D's columns. It is the number of B's rows, or half of it for a gated
 * activation, which computes one column of D from two columns of A x B^T. */
static bsmm_status check_d_cols(const bsmm_product *p) {
    int64_t n = p->b.m.rows;
    if (!bsmm_is_gated(p)) return check_same("d.cols", p->d.m.cols, "b.rows", n);
    if (n % 2)
        return bsmm_fail(BSMM_E_INVALID, "b.rows: value is %lld; must be even for activation %s",
                         (long long)n, p->epilogue->activation->info.name);
    return check_same("d.cols", p->d.m.cols, "b.rows / 2", n / 2);
}

static bsmm_status check_shapes(const bsmm_product *p) {
    BSMM_TRY(check_same("b.cols", p->b.m.cols, "a.cols", p->a.m.cols));
    bool gathers = p->groups && p->groups->flags & BSMM_GROUP_GATHER_A;
    if (!gathers) BSMM_TRY(check_same("d.rows", p->d.m.rows, "a.rows", p->a.m.rows));
    BSMM_TRY(check_d_cols(p));
    if (p->epilogue && p->epilogue->has_residual) {
        const bsmm_matrix *residual = &p->epilogue->residual.m;
        BSMM_TRY(check_same("residual.rows", residual->rows, "d.rows", p->d.m.rows));
        BSMM_TRY(check_same("residual.cols", residual->cols, "d.cols", p->d.m.cols));
    }
    if (!p->has_c) return BSMM_OK;
    BSMM_TRY(check_same("c.rows", p->c.m.rows, "d.rows", p->d.m.rows));
    return check_same("c.cols", p->c.m.cols, "b.rows", p->b.m.rows);
}

static bsmm_status take_factor(const char *name, const float *given, double fallback, double *to) {
    *to = given ? (double)*given : fallback;
    if (isfinite(*to)) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s: value is %g; must be finite", name, *to);
}

bsmm_status bsmm_check_addend(const bsmm_operand *o, const char *what) {
    if (is_unscaled(o) && bsmm_elem_is_wide(o->m.format.elem)) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s.format: value is %s; must be f32, f16 or bf16", what,
                     bsmm_format_name(o->m.format));
}

static bsmm_status take_c(const bsmm_matmul_desc *desc, bsmm_product *p) {
    p->has_c = p->beta != 0;
    if (!p->has_c) return BSMM_OK;
    if (!desc->c)
        return bsmm_fail(BSMM_E_INVALID, "c: value is NULL; must be given when beta is %g",
                         p->beta);
    BSMM_TRY(bsmm_operand_take(desc->c, "c", &p->c));
    return bsmm_check_addend(&p->c, "c");
}

/* Validates the caller's matrix `from` and stores the result in *to. If the product has groups of
 * this `kind`, each group owns a range of the matrix's rows or columns, and the scales of each
 * group may be stored separately. */
static bsmm_status take_operand(const bsmm_product *p, const bsmm_matrix *from, const char *what,
                                uint32_t kind, bsmm_operand *to) {
    if (p->groups && p->groups->kind == kind)
        return bsmm_groups_take_operand(p->groups, from, what, to);
    return bsmm_operand_take(from, what, to);
}

static bsmm_status take_a(const bsmm_matmul_desc *desc, bsmm_product *p) {
    bool gathers = p->groups && p->groups->flags & BSMM_GROUP_GATHER_A;
    bool rows = p->groups && p->groups->kind == BSMM_GROUP_ROWS && !gathers;
    return take_operand(p, desc->a, "a", rows ? BSMM_GROUP_ROWS : BSMM_GROUP_K, &p->a);
}

static bsmm_status take_d(const bsmm_matmul_desc *desc, bsmm_product *p) {
    BSMM_TRY(take_operand(p, desc->d, "d", BSMM_GROUP_ROWS, &p->d));
    if (!is_unscaled(&p->d)) return bsmm_recipe_find(desc->recipe, p->d.m.format, &p->recipe);
    if (bsmm_elem_row(p->d.m.format.elem)->bits < 8)
        return bsmm_fail(
            BSMM_E_INVALID,
            "d.format: value is %s; an unscaled D must be f32, f16, bf16 or 8 bits wide",
            bsmm_format_name(p->d.m.format));
    if (desc->recipe)
        return bsmm_fail(BSMM_E_INVALID,
                         "recipe: value is \"%.64s\"; must be NULL when d has no scales",
                         desc->recipe);
    return BSMM_OK;
}

static bsmm_status take_bias(const bsmm_matmul_desc *desc, bsmm_product *p) {
    p->bias_elem = desc->bias_elem;
    p->bias = desc->bias;
    if (p->bias_elem == BSMM_ELEM_NONE && p->bias)
        return bsmm_fail(BSMM_E_INVALID, "bias_elem: value is 0; must be given with bias");
    if (p->bias_elem != BSMM_ELEM_NONE && !bsmm_elem_is_wide(p->bias_elem))
        return bsmm_fail(BSMM_E_INVALID,
                         "bias_elem: value is %u; must be f32, f16 or bf16 (1 to 3)", p->bias_elem);
    return BSMM_OK;
}

static bsmm_status take_options(const bsmm_matmul_desc *desc, bsmm_product *p) {
    if (desc->compute >= BSMM_COMPUTE_COUNT)
        return bsmm_fail(BSMM_E_INVALID, "compute: value is %u; must be at most %d", desc->compute,
                         BSMM_COMPUTE_COUNT - 1);
    if (desc->b_packed && !bsmm_packed_form_row(desc->b_packed))
        return bsmm_fail(BSMM_E_INVALID, "b_packed: value is %u; must be a bsmm_packed_form",
                         desc->b_packed);
    if (desc->b_panels && desc->b_packed != BSMM_PACKED_WIDE)
        return bsmm_fail(BSMM_E_INVALID,
                         "b_panels: value is \"%.32s\"; must be NULL unless b_packed is WIDE",
                         desc->b_panels);
    if (desc->flags & ~(uint32_t)BSMM_ALL_MATMUL_FLAGS)
        return bsmm_fail(BSMM_E_INVALID, "flags: value is %u; must be a sum of bsmm_matmul_flags",
                         desc->flags);
    p->any_rows = desc->flags & BSMM_MATMUL_ANY_ROWS;
    p->invariant = desc->flags & BSMM_MATMUL_BATCH_INVARIANT;
    p->packed_form = desc->b_packed;
    p->b_packed = desc->b_packed == BSMM_PACKED_WIDE;
    p->compute = desc->compute;
    p->threads = bsmm_thread_count(desc->threads);
    return bsmm_pool_take(desc->pool, &p->pool);
}

bsmm_status bsmm_describe(const bsmm_matmul_desc *desc, bsmm_request *request) {
    bsmm_matmul_desc copy;
    BSMM_TRY(bsmm_take_struct(&copy, sizeof copy, desc, "desc"));
    bsmm_group group;
    *request = (bsmm_request){.device = copy.device ? copy.device : "cpu",
                              .kernel = copy.kernel,
                              .panels = copy.b_panels};
    bsmm_product *p = &request->product;
    BSMM_TRY(take_options(&copy, p));
    if (copy.group) BSMM_TRY(bsmm_groups_take(copy.group, &group, &request->groups));
    if (request->groups.kind != BSMM_GROUP_NONE) p->groups = &request->groups;
    BSMM_TRY(take_a(&copy, p));
    BSMM_TRY(take_operand(p, copy.b, "b", BSMM_GROUP_K, &p->b));
    BSMM_TRY(take_factor("alpha", copy.alpha, 1, &p->alpha));
    BSMM_TRY(take_factor("beta", copy.beta, 0, &p->beta));
    BSMM_TRY(take_c(&copy, p));
    BSMM_TRY(take_d(&copy, p));
    BSMM_TRY(take_bias(&copy, p));
    if (copy.epilogue) {
        BSMM_TRY(bsmm_epilogue_take(copy.epilogue, &request->epilogue));
        p->epilogue = &request->epilogue;
    }
    BSMM_TRY(check_shapes(p));
    if (!p->groups) return BSMM_OK;
    return bsmm_groups_place(&group, &request->groups, p, p->epilogue ? &request->epilogue : NULL);
}
