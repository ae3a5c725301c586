/* Tests that packed weights depend only on B, the kind of device, the form and the format of A.
 * Neither the size of the packed weights nor the name of their panels may depend on C, D, the bias,
 * the epilogue or the flags. They may not depend on the order, the leading dimension or the scale
 * layout of A either, or on the order or the scale layout in which the caller stores B.
 * bsmm_packed_bytes must give this size without a plan. The test makes plans for the CPU and for
 * fake GPUs; it runs none of them. */
#include "fake_gpus.h"
#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 192 };

/* Holds the description of a product and the matrices to which it points. */
typedef struct axes {
    bsmm_matrix a, b, c, d;
    bsmm_epilogue epilogue;
    float one;
    bsmm_matmul_desc desc;
} axes;

static void make(axes *x, bsmm_format a, bsmm_format b, int64_t k) {
    *x = (axes){.a = describe(a, 33, k),
                .b = describe(b, N, k),
                .c = describe(format_named("f32"), 33, N),
                .d = describe(format_named("f32"), 33, N),
                .epilogue = {.struct_size = sizeof x->epilogue},
                .one = 1};
    x->desc = (bsmm_matmul_desc){.struct_size = sizeof x->desc, .a = &x->a, .b = &x->b, .d = &x->d};
}

/* The functions from here on each change a product in one way that must not change its packed
 * weights. They return false if the product cannot be changed in this way. */

static bool change_nothing(axes *x) {
    (void)x;
    return true;
}

static bool make_a_one_row(axes *x) {
    x->a.rows = x->c.rows = x->d.rows = 1;
    return true;
}

static bool make_a_many_rows(axes *x) {
    x->a.rows = x->c.rows = x->d.rows = 1000;
    return true;
}

static bool make_a_column_major(axes *x) {
    x->a.order = BSMM_ORDER_COL;
    return true;
}

static bool widen_a(axes *x) {
    x->a.ld = x->a.cols + 32;
    return true;
}

/* Makes the distance between rows of A no multiple of the 16 bytes that TMA requires. */
static bool widen_a_to_odd(axes *x) {
    x->a.ld = x->a.cols + 4;
    return true;
}

static bool make_a_scales_column_major(axes *x) {
    x->a.scale_layout = BSMM_LAYOUT_COL_MAJOR;
    return x->a.format.scale != BSMM_SCALE_NONE;
}

static bool widen_a_scales(axes *x) {
    x->a.scale_ld = x->a.cols + 8;
    return x->a.format.scale != BSMM_SCALE_NONE;
}

static bool swizzle_a_scales(axes *x) {
    x->a.scale_layout = BSMM_LAYOUT_NV_128X4;
    return x->a.format.scale != BSMM_SCALE_NONE && x->a.format.scale != BSMM_SCALE_F32;
}

static bool make_b_column_major(axes *x) {
    x->b.order = BSMM_ORDER_COL;
    return true;
}

static bool widen_b(axes *x) {
    x->b.ld = x->b.cols + 4;
    return true;
}

static bool make_b_scales_column_major(axes *x) {
    x->b.scale_layout = BSMM_LAYOUT_COL_MAJOR;
    return x->b.format.scale != BSMM_SCALE_NONE;
}

static bool add_c(axes *x) {
    x->desc.c = &x->c;
    x->desc.beta = &x->one;
    return true;
}

static bool add_c_in_bf16(axes *x) {
    x->c.format = format_named("bf16");
    return add_c(x);
}

static bool add_bias(axes *x) {
    x->desc.bias_elem = BSMM_ELEM_BF16;
    x->desc.bias = &x->one;
    return true;
}

static bool add_activation(axes *x) {
    x->epilogue.activation = BSMM_ACTIVATION_SILU;
    x->desc.epilogue = &x->epilogue;
    return true;
}

static bool make_d_bf16(axes *x) {
    x->d.format = format_named("bf16");
    return true;
}

static bool make_d_fp8(axes *x) {
    x->d.format = format_named("e4m3");
    return true;
}

static bool make_d_column_major(axes *x) {
    x->d.order = BSMM_ORDER_COL;
    return true;
}

static bool make_d_mxfp4(axes *x) {
    x->d.format = format_named("mxfp4");
    return true;
}

static bool make_d_tall_blocks(axes *x) {
    x->d.format = format_named("fp8_block128");
    return true;
}

static bool let_rows_vary(axes *x) {
    x->desc.flags = BSMM_MATMUL_ANY_ROWS;
    return true;
}

static bool make_invariant(axes *x) {
    x->desc.flags = BSMM_MATMUL_BATCH_INVARIANT;
    return true;
}

static bool use_one_thread(axes *x) {
    x->desc.threads = 1;
    return true;
}

/* Changes two properties of the product at once: adds a C and makes A column-major. Each of these
 * changes alone can already make the library choose another kernel. */
static bool add_c_and_turn_a(axes *x) {
    return make_a_column_major(x) && add_c(x);
}

typedef struct change {
    const char *name;
    bool (*apply)(axes *x);
} change;

#define CHANGE(function)                                                                           \
    { #function, function }

static const change changes[] = {
    CHANGE(change_nothing),
    CHANGE(make_a_one_row),
    CHANGE(make_a_many_rows),
    CHANGE(make_a_column_major),
    CHANGE(widen_a),
    CHANGE(widen_a_to_odd),
    CHANGE(make_a_scales_column_major),
    CHANGE(widen_a_scales),
    CHANGE(swizzle_a_scales),
    CHANGE(make_b_column_major),
    CHANGE(widen_b),
    CHANGE(make_b_scales_column_major),
    CHANGE(add_c),
    CHANGE(add_c_in_bf16),
    CHANGE(add_bias),
    CHANGE(add_activation),
    CHANGE(make_d_bf16),
    CHANGE(make_d_fp8),
    CHANGE(make_d_column_major),
    CHANGE(make_d_mxfp4),
    CHANGE(make_d_tall_blocks),
    CHANGE(let_rows_vary),
    CHANGE(make_invariant),
    CHANGE(use_one_thread),
    CHANGE(add_c_and_turn_a),
};

/* Holds the fixed properties of products under test: a device, a form of packed weights, a
 * bsmm_compute, and the formats of A and B. */
typedef struct place {
    const char *device;
    uint32_t form, compute;
    bsmm_format a, b;
} place;

/* Describes a product with the formats of A and B that *at names, with B packed in the form that
 * *at names, and changes it by `how`. Returns false if the product cannot be changed in this
 * way. */
static bool describe_at(const place *at, const change *how, axes *x) {
    make(x, at->a, at->b, 256);
    x->desc.device = at->device;
    x->desc.compute = at->compute;
    x->desc.b_packed = at->form;
    return how->apply(x);
}

static bool has_plan(const bsmm_matmul_desc *desc, bsmm_plan **plan) {
    *plan = NULL;
    return bsmm_plan_create(desc, plan) == BSMM_OK;
}

static void expect_same(const place *at, const change *how, const char *what,
                        const bsmm_packed_info *is, const bsmm_packed_info *must_be) {
    if (memcmp(is, must_be, sizeof *is) == 0) return;
    fail_msg("%s, %s x %s, compute %u, form %u, %s, %s: panels \"%s\" of %llu bytes; must be "
             "\"%s\" of %llu",
             at->device, bsmm_format_name(at->a), bsmm_format_name(at->b), at->compute, at->form,
             how->name, what, is->panels, (unsigned long long)is->bytes, must_be->panels,
             (unsigned long long)must_be->bytes);
}

/* bsmm_explain must report the size of the packed weights for the kernel that the plan chooses, and
 * no kernel before it in the list of bsmm_explain may accept the product. */
static void check_explained(const bsmm_matmul_desc *desc, const bsmm_plan *plan) {
    bsmm_explanation e = {.struct_size = sizeof e};
    for (uint32_t i = 0; bsmm_explain(desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts) continue;
        assert_string_equal(e.kernel, bsmm_plan_kernel(plan));
        assert_int_equal(e.packed_b_bytes, bsmm_plan_packed_b_bytes(plan));
        return;
    }
    fail_msg("no kernel accepts the product of a plan");
}

/* Tests packing with a plan whose b_packed is NONE. Such a plan does not read packed weights, but
 * it may be able to pack B for other plans. If it packs B in form wide, the result must be
 * described by the same bsmm_packed_info as that of a plan with b_packed = WIDE, `first`. Returns
 * false if no kernel takes the product. */
static bool check_plan_without(const place *at, const change *how, const bsmm_packed_info *first) {
    place none = *at;
    axes x;
    bsmm_plan *plan;
    bsmm_packed_info info = {.struct_size = sizeof info};
    none.form = BSMM_PACKED_NONE;
    describe_at(&none, how, &x);
    if (!has_plan(&x.desc, &plan)) return false;
    const bool packs = bsmm_plan_packed_info(plan, &info) == BSMM_OK;
    if (at->form == BSMM_PACKED_WIDE) check_explained(&x.desc, plan);
    bsmm_plan_destroy(plan);
    if (packs && at->form == BSMM_PACKED_WIDE) expect_same(at, how, "b_packed NONE", &info, first);
    return true;
}

static void check_change(const place *at, const change *how, const bsmm_packed_info *first) {
    axes x;
    bsmm_plan *plan;
    bsmm_packed_info info = {.struct_size = sizeof info};
    if (!describe_at(at, how, &x)) return;
    const bool runs = check_plan_without(at, how, first);
    if (has_plan(&x.desc, &plan) != runs)
        fail_msg("%s, %s x %s, form %u, %s: %s", at->device, bsmm_format_name(at->a),
                 bsmm_format_name(at->b), at->form, how->name, bsmm_error_message());
    if (!runs) return;
    assert_int_equal(bsmm_plan_packed_info(plan, &info), BSMM_OK);
    expect_same(at, how, "the plan's form", &info, first);
    check_explained(&x.desc, plan);
    bsmm_plan_destroy(plan);
}

/* Checks for one pair of formats that the packed weights of B stay the same with each change in the
 * list `changes`. Returns the number of plans, or 0 if no kernel reads weights in the form
 * at->form. */
static int check_pair(const place *at) {
    axes x;
    bsmm_plan *plan;
    bsmm_packed_info first = {.struct_size = sizeof first};
    uint64_t told = 0;
    describe_at(at, &changes[0], &x);
    const bsmm_status status = bsmm_packed_bytes(at->device, at->form, &x.b, 0, &x.a.format, &told);
    const bool packs = has_plan(&x.desc, &plan);
    assert_int_equal(status == BSMM_OK, packs);
    if (!packs) return 0;
    assert_int_equal(bsmm_plan_packed_info(plan, &first), BSMM_OK);
    bsmm_plan_destroy(plan);
    /* bsmm_packed_bytes describes plans with compute EXACT. */
    if (at->compute == BSMM_COMPUTE_EXACT) assert_int_equal(told, first.bytes);
    for (size_t i = 0; i < BSMM_COUNT(changes); i++)
        check_change(at, &changes[i], &first);
    return BSMM_COUNT(changes);
}

/* Returns a format by its name. "rows" is e4m3 with one fp32 scale for each row. */
static bsmm_format find_format(const char *name) {
    if (strcmp(name, "rows") == 0) return (bsmm_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 256};
    return format_named(name);
}

static int check_device(const char *device) {
    static const char *const formats[] = {"f32",   "f16",          "bf16",         "e4m3",
                                          "rows",  "mxfp8",        "mxfp6_e2m3",   "mxfp4",
                                          "nvfp4", "fp8_group128", "fp8_block128", "mxfp8_e5m2"};
    static const struct {
        uint32_t form, compute;
    } plans_of[] = {{BSMM_PACKED_WIDE, BSMM_COMPUTE_EXACT},
                    {BSMM_PACKED_WIDE, BSMM_COMPUTE_FAST},
                    {BSMM_PACKED_COMPACT, BSMM_COMPUTE_EXACT}};
    int plans = 0;
    for (size_t i = 0; i < BSMM_COUNT(formats); i++)
        for (size_t j = 0; j < BSMM_COUNT(formats); j++)
            for (size_t n = 0; n < BSMM_COUNT(plans_of); n++)
                plans += check_pair(&(place){.device = device,
                                             .form = plans_of[n].form,
                                             .compute = plans_of[n].compute,
                                             .a = find_format(formats[i]),
                                             .b = find_format(formats[j])});
    print_message("%s: %d changed products\n", device, plans);
    return plans;
}

static void test_packed_weights_on_the_cpu(void **state) {
    (void)state;
    assert_true(check_device("cpu") > 0);
}

static void test_packed_weights_on_gpus(void **state) {
    (void)state;
    if (!fake_gpus_open()) skip();
    if (fake_gpus_sum(check_device) == 0) skip(); /* The build has no CUDA kernels. */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_weights_on_the_cpu),
        cmocka_unit_test(test_packed_weights_on_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
