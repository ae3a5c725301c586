/* Runs some hundred random products (any_product.h) on the CPU and compares what the library does
 * with stored digests. A digest covers the kernels that accept a product, the reasons for which the
 * other kernels refuse it, the cache blocks and all other numbers in the kernels' states, the
 * workspace, the bytes of packed weights, and all bits of D. The files have separate lines for
 * several kinds of processors. The test hides features of the processor to imitate the other kinds.
 * tests/golden/choices/README.md says when the stored files change. */
#include "any_product.h"
#include "core/describe.h"
#include "cpu/engine/engine_gemm.h"
#include "cpu/small_m/small_m.h"
#include "cpu_hooks.h"
#include "digest.h"
#include "golden_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CHOICES = 300, RESULTS = 200, MOST_NAME = 200, MOST_GROUPS = 256 };

/* The test makes the library believe that the L2 cache has this size. Otherwise the sizes of cache
 * blocks, and thus the digests, would depend on the machine. */
static const uint64_t cache_bytes = (uint64_t)1 << 20;

enum {
    AVX512 = BSMM_CPU_AVX512 | BSMM_CPU_AVX512_VNNI | BSMM_CPU_AVX512_BF16 | BSMM_CPU_AVX512_VBMI,
};

typedef struct cpu_kind {
    const char *title;
    uint32_t features, added; /* Features that the processor has, and that the test adds. */
} cpu_kind;

static const cpu_kind kinds[] = {
    {"portable", 0, 0},
    {"avx2", BSMM_CPU_AVX2, 0},
    {"avx512", BSMM_CPU_AVX2 | AVX512, 0},
    {"avx512_intel", BSMM_CPU_AVX2 | AVX512, BSMM_CPU_TWO_PORTS},
};

/* Makes the library see a processor of this kind. Returns false if this processor lacks a feature
 * of the kind. */
static bool pretend(const cpu_kind *kind) {
    bsmm_cpu_pretend_l2_bytes(cache_bytes);
    bsmm_cpu_add_features(kind->added);
    bsmm_cpu_mask_features(kind->features | kind->added);
    return bsmm_cpu_features() == (kind->features | kind->added);
}

static void stop_pretending(void) {
    bsmm_cpu_pretend_l2_bytes(0);
    bsmm_cpu_add_features(0);
    bsmm_cpu_mask_features(~0u);
}

static void add_status(bsmm_status status) {
    digest_add_number(status);
    if (status != BSMM_OK) digest_add_text(bsmm_error_message());
}

static void add_numbers(const uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        digest_add_number(numbers[i]);
}

static void add_side(const bsmm_gemm_side *side) {
    const uint64_t numbers[] = {(uint64_t)side->rows, (uint64_t)side->panels, (uint64_t)side->width,
                                side->panel_bytes};
    add_numbers(numbers, BSMM_COUNT(numbers));
}

static void add_gemm(const bsmm_gemm *g) {
    const uint64_t numbers[] = {
        (uint64_t)g->units, (uint64_t)g->chunk,   (uint64_t)g->mc,   (uint64_t)g->nc,
        (uint64_t)g->slab,  g->b_bytes,           g->by_slabs,       g->gate_bytes,
        g->scratch_bytes,   g->workspace_bytes,   g->packed_b_bytes, (uint64_t)g->cols,
        g->is_split,        (uint64_t)g->threads, g->by_rows,
    };
    add_side(&g->a);
    add_side(&g->b);
    add_numbers(numbers, BSMM_COUNT(numbers));
}

static void add_small_m(const bsmm_small_m *m) {
    const uint64_t numbers[] = {
        (uint64_t)m->tiles,
        (uint64_t)m->steps,
        (uint64_t)m->units,
        (uint64_t)m->scale_units,
        (uint64_t)m->used_steps,
        (uint64_t)m->chunk_steps,
        (uint64_t)m->step_bytes,
        (uint64_t)m->row_bytes,
        (uint64_t)m->pitch,
        (uint64_t)m->whole_steps,
        (uint64_t)m->used_scales,
        (uint64_t)m->chunk_scales,
        (uint64_t)m->strips_ahead,
        m->tile_bytes,
        m->packed_bytes,
        m->thread_bytes,
        m->workspace_bytes,
        (uint64_t)m->cols,
        m->is_split,
        (uint64_t)m->threads,
    };
    add_numbers(numbers, BSMM_COUNT(numbers));
}

/* The digest is a checksum of what the library chooses. Adds to it the sizes that a kernel computes
 * when it accepts a product. */
static void add_kernel_state(const bsmm_matmul_desc *desc, const bsmm_kernel *kernel) {
    static _Alignas(BSMM_STATE_ALIGNMENT) uint8_t state[BSMM_STATE_BYTES];
    bsmm_request request;
    char why[240];
    if (!kernel->state_bytes || bsmm_describe(desc, &request) != BSMM_OK) return;
    memset(state, 0x5a, sizeof state);
    if (bsmm_kernel_refusal(kernel, &request, state, why, sizeof why)) return;
    const void *const made = state;
    if (strstr(kernel->name, "_small_m"))
        add_small_m(made);
    else
        add_gemm(made); /* It is the first member of every other state. */
}

/* Adds to the product's digest (a hash) what bsmm_explain says about each kernel of the CPU. */
static void add_choices(any_product *p) {
    bsmm_explanation e = {.struct_size = sizeof e};
    const bsmm_kernel *kernel;
    for (uint32_t i = 0; (kernel = bsmm_kernel_at(i)); i++) {
        if (strcmp(kernel->device, "cpu") != 0) continue;
        add_status(bsmm_explain(&p->desc, i, &e));
        digest_add_text(e.reason);
        digest_add(&e.bound, sizeof e.bound);
        digest_add_number(e.packed_b_bytes);
        digest_add_number(e.k_parts);
        if (e.accepts) add_kernel_state(&p->desc, kernel);
    }
}

static void check_choice(const cpu_kind *kind, int number) {
    any_product p;
    bsmm_plan *plan = NULL;
    char name[MOST_NAME], about[MOST_NAME], found[MOST_NAME];
    any_product_make(&p, (uint64_t)number, number % 4 == 0);
    digest_reset();
    for (int round = 0; round < DIGEST_ROUNDS; round++) {
        digest_begin(round);
        add_choices(&p);
        bsmm_plan_destroy(plan);
        add_status(bsmm_plan_create(&p.desc, &plan));
    }
    snprintf(name, sizeof name, "%s %d", kind->title, number);
    snprintf(found, sizeof found, "%s %llu %08x", plan ? bsmm_plan_kernel(plan) : "-",
             plan ? (unsigned long long)bsmm_plan_workspace_bytes(plan) : 0, digest_end());
    bsmm_plan_destroy(plan);
    any_product_name(&p, about, sizeof about);
    golden_lines_check(name, found, about);
}

static void test_choices(void **state) {
    (void)state;
    golden_lines_open("cpu_choices");
    for (size_t i = 0; i < BSMM_COUNT(kinds); i++)
        for (int number = 0; pretend(&kinds[i]) && number < CHOICES; number++)
            check_choice(&kinds[i], number);
    stop_pretending();
    golden_lines_close();
}

/* The operands of a product in memory. */
typedef struct operands {
    test_matrix matrices[ANY_MATRICES];
    bsmm_buffers buffers;
    float row_scale[1024], col_scale[1024], bias[1024], group_alpha[MOST_GROUPS];
    int32_t sizes[MOST_GROUPS];
} operands;

/* Most products have ordinary values. Every fourth product has scales from the whole range of its
 * format, so the kernels must compute some rows in double. */
static void operands_make(operands *o, any_product *p, int number) {
    rng r = {(uint64_t)number};
    const fill how = number % 4 == 3 ? FILL_EXTREME : FILL_ORDINARY;
    for (int i = 0; i < ANY_MATRICES; i++) {
        test_matrix_make(&o->matrices[i], p->matrices[i], i == ANY_A || i == ANY_B ? how : 0, &r);
        p->matrices[i] = o->matrices[i].m;
        if (!p->has_globals) p->matrices[i].global_scale = NULL;
    }
    for (int i = 0; i < 1024; i++) {
        o->row_scale[i] = (float)(i % 7) * 0.5f - 1;
        o->col_scale[i] = (float)(i % 5) * 0.25f + 0.5f;
        o->bias[i] = (float)(i % 11) * 0.125f - 0.5f;
    }
}

static bsmm_buffers buffers_of(const operands *o, const any_product *p) {
    const bsmm_matrix *const m = p->matrices;
    const bsmm_epilogue *const e = p->desc.epilogue;
    return (bsmm_buffers){
        .struct_size = sizeof(bsmm_buffers),
        .a = m[ANY_A].data,
        .a_scales = m[ANY_A].scales,
        .a_global = m[ANY_A].global_scale,
        .b = p->desc.b_packed ? NULL : m[ANY_B].data,
        .b_scales = p->desc.b_packed ? NULL : m[ANY_B].scales,
        .b_global = p->desc.b_packed ? NULL : m[ANY_B].global_scale,
        .c = p->desc.c ? m[ANY_C].data : NULL,
        .d = m[ANY_D].data,
        .d_scales = m[ANY_D].scales,
        .d_global = m[ANY_D].global_scale,
        .bias = p->desc.bias_elem ? o->bias : NULL,
        .residual = e && e->residual ? m[ANY_RESIDUAL].data : NULL,
        .row_scale = e && e->scale_by & BSMM_SCALE_BY_ROW ? o->row_scale : NULL,
        .col_scale = e && e->scale_by & BSMM_SCALE_BY_COL ? o->col_scale : NULL,
        .rows = p->rows,
    };
}

/* Packs B and adds the packed bytes to the digest. Returns the packed weights, which the caller
 * frees. */
static void *pack(const any_product *p, const bsmm_plan *plan, const operands *o) {
    const uint64_t bytes = bsmm_plan_packed_b_bytes(plan);
    any_product stored = *p;
    stored.desc.b_packed = 0;
    const bsmm_buffers buffers = buffers_of(o, &stored);
    if (!bytes) return NULL;
    void *const packed = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(packed);
    memset(packed, 0, bytes);
    add_status(bsmm_pack_b(plan, &buffers, packed, bytes));
    digest_add(packed, bytes);
    return packed;
}

/* Runs the product by the kernel that desc names, and adds the bytes of D to the digest. */
static void run(const any_product *p, const operands *o) {
    bsmm_plan *plan;
    const bsmm_status made = bsmm_plan_create(&p->desc, &plan);
    add_status(made);
    if (made != BSMM_OK) return;
    bsmm_buffers b = buffers_of(o, p);
    const bsmm_matrix *const d = &p->matrices[ANY_D];
    void *const packed = pack(p, plan, o);
    b.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    b.workspace = aligned_alloc(64, b.workspace_bytes / 64 * 64 + 64);
    assert_non_null(b.workspace);
    b.packed_b = p->desc.b_packed ? packed : NULL;
    b.packed_b_bytes = p->desc.b_packed ? bsmm_plan_packed_b_bytes(plan) : 0;
    memset(d->data, 0, d->data_bytes);
    if (d->scale_bytes) memset(d->scales, 0, d->scale_bytes);
    add_status(bsmm_plan_run(plan, &b));
    digest_add(d->data, d->data_bytes);
    digest_add(d->scales, d->scale_bytes);
    free(packed);
    free(b.workspace);
    bsmm_plan_destroy(plan);
}

static void check_result(const char *kernel, any_product *p, const operands *o, const char *name,
                         const char *about) {
    char key[2 * MOST_NAME], found[MOST_NAME];
    p->desc.kernel = kernel;
    digest_reset();
    for (int round = 0; round < DIGEST_ROUNDS; round++) {
        digest_begin(round);
        run(p, o);
    }
    snprintf(key, sizeof key, "%s %s", name, kernel);
    snprintf(found, sizeof found, "%08x", digest_end());
    golden_lines_check(key, found, about);
}

/* Tells whether the test runs product `number` by a kernel on a kind of processor. The least
 * capable kind that can run the kernel runs all products. On more capable kinds the kernel runs
 * too, because operands may be packed by other code there, but only a third of the products. The
 * kernel `ref` runs an eighth of the products, because it is slow and cpu_f32 gives the same
 * results. */
static bool is_run(const cpu_kind *kind, const char *kernel, int number) {
    if (strcmp(kernel, "ref") == 0) return number % 8 == 0;
    const bool is_portable = strstr(kernel, "avx") == NULL;
    return number % 3 == 0 || (kind->features ? strstr(kernel, kind->title) != NULL : is_portable);
}

/* CPU kernels do not handle groups themselves, so this test removes the groups from the product.
 * test_groups compares grouped products with single products. */
static int check_results(const cpu_kind *kind, int number) {
    any_product p;
    static operands o;
    char name[MOST_NAME], about[MOST_NAME];
    bsmm_explanation e = {.struct_size = sizeof e};
    int runs = 0;
    any_product_make(&p, (uint64_t)number, true);
    p.desc.group = NULL;
    operands_make(&o, &p, number);
    snprintf(name, sizeof name, "%d", number);
    any_product_name(&p, about, sizeof about);
    for (uint32_t i = 0; bsmm_explain(&p.desc, i, &e) == BSMM_OK; i++) {
        if (!e.accepts || !is_run(kind, e.kernel, number)) continue;
        check_result(e.kernel, &p, &o, name, about);
        p.desc.kernel = NULL;
        runs++;
    }
    for (int i = 0; i < ANY_MATRICES; i++)
        test_matrix_free(&o.matrices[i]);
    return runs;
}

static void test_results(void **state) {
    (void)state;
    int runs = 0;
    golden_lines_open("cpu_results");
    for (size_t i = 0; i < BSMM_COUNT(kinds); i++) {
        if (kinds[i].added || !pretend(&kinds[i])) continue;
        for (int number = 0; number < RESULTS; number++)
            runs += check_results(&kinds[i], number);
    }
    stop_pretending();
    golden_lines_close();
    print_message("%d runs\n", runs);
    assert_true(runs > RESULTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices),
                                       cmocka_unit_test(test_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
