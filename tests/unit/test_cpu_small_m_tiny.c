/* Tests tiny products on CPUs with AVX-512. Results must be bitwise identical to those of the
 * kernels that pack both operands. Products whose values are neither NaN, Inf nor extremely large
 * or small must be computed without packing. */
#include "base/cpu.h"
#include "core/describe.h"
#include "cpu/pack/pack.h"
#include "cpu/small_m/small_m_bf16dot.h"
#include "cpu/small_m/small_m_tiny.h"
#include "cpu_hooks.h"
#include "product.h"
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool has_kernels(void) {
    uint32_t needed = BSMM_CPU_AVX512_BF16 | BSMM_CPU_AVX512_VNNI | BSMM_CPU_AVX512_VBMI;
    return (bsmm_cpu_features() & needed) == needed;
}

typedef struct pair {
    const char *a, *b, *kernel;
} pair;

#define INT8 "cpu_avx512_int8dot"
#define BF16 "cpu_avx512_bf16dot"

static const pair pairs[] = {
    {"mxfp4", "mxfp4", INT8},        {"nvfp4", "nvfp4", INT8},
    {"bf16", "mxfp4", BF16},         {"bf16", "bf16", BF16},
    {"bf16", "mxfp8", BF16},         {"bf16", "e5m2", BF16},
    {"bf16", "fp8_block128", BF16},  {"mxfp8", "mxfp8", BF16},
    {"mxfp8_e5m2", "mxfp8", BF16},   {"mxfp8", "mxfp4", BF16},
    {"mxfp8", "bf16", BF16},         {"e4m3", "e4m3", BF16},
    {"e4m3", "mxfp4", BF16},         {"fp8_group128", "fp8_block128", BF16},
    {"fp8_group128", "mxfp4", BF16}, {"fp8_group128", "fp8_group128", BF16},
    {"mxfp8", "mxfp8_e5m2", BF16},   {"bf16", "nvfp4", BF16},
    {"mxfp8", "nvfp4", BF16},        {"fp8_group128", "nvfp4", BF16},
    {"f32", "f32", "cpu_avx2_f32"},
};

/* Runs a plan and returns the bytes of D. `form` is the packed form of B (bsmm_packed_form). If the
 * product adds a C, C and D are the same memory. */
static void *run(product *p, const char *kernel, uint32_t form, const void *c, size_t bytes) {
    bsmm_plan *plan = NULL;
    p->desc.kernel = kernel;
    p->desc.b_packed = form;
    p->desc.threads = 1;
    if (bsmm_plan_create(&p->desc, &plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    bsmm_buffers buffers = BSMM_INIT(bsmm_buffers);
    buffers.a = p->a.m.data, buffers.a_scales = p->a.m.scales;
    buffers.a_global = p->a.m.global_scale;
    buffers.b = p->b.m.data, buffers.b_scales = p->b.m.scales;
    buffers.b_global = p->b.m.global_scale;
    buffers.c = p->desc.beta ? p->d.data : NULL;
    buffers.d = p->d.data;
    buffers.bias = p->desc.bias;
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = aligned_alloc(64, (buffers.workspace_bytes / 64 + 1) * 64);
    void *packed = NULL, *got = malloc(bytes);
    if (form) {
        buffers.packed_b_bytes = bsmm_plan_packed_b_bytes(plan);
        packed = aligned_alloc(64, (buffers.packed_b_bytes / 64 + 1) * 64);
        assert_int_equal(bsmm_pack_b(plan, &buffers, packed, buffers.packed_b_bytes), BSMM_OK);
        buffers.packed_b = packed;
    }
    memcpy(p->d.data, c, bytes);
    if (bsmm_plan_run(plan, &buffers) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    memcpy(got, p->d.data, bytes);
    free(packed);
    free(buffers.workspace);
    bsmm_plan_destroy(plan);
    p->desc.kernel = NULL;
    p->desc.b_packed = 0;
    return got;
}

static size_t d_bytes(const product *p) {
    return (size_t)(p->d.rows * p->d.cols) * (p->d.format.elem == BSMM_ELEM_F32 ? 4 : 2);
}

/* Checks that several ways to compute a product give bitwise identical results: the kernel for few
 * rows with stored and with compact weights, the kernel that reads packed panels of B (wide
 * weights), and the kernel that packs both operands. */
static void check_same(product *p, const pair *of) {
    char few[64];
    snprintf(few, sizeof few, "%s_small_m", of->kernel);
    size_t bytes = d_bytes(p);
    uint8_t *c = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        c[i] = (uint8_t)(i % 2 ? 0x3e : 0x11);
    void *expected = run(p, of->kernel, BSMM_PACKED_NONE, c, bytes);
    void *stored = run(p, few, BSMM_PACKED_NONE, c, bytes);
    void *compact = run(p, few, BSMM_PACKED_COMPACT, c, bytes);
    void *wide = run(p, of->kernel, BSMM_PACKED_WIDE, c, bytes);
    assert_memory_equal(stored, expected, bytes);
    assert_memory_equal(compact, expected, bytes);
    assert_memory_equal(wide, expected, bytes);
    free(c);
    free(expected);
    free(stored);
    free(compact);
    free(wide);
}

/* Calls the library's function for tiny products. Returns whether that function has computed the
 * product. */
static bool takes_tiny(product *p, const pair *of) {
    _Alignas(64) uint8_t context[BSMM_SMALL_M_CONTEXT_BYTES] = {0};
    bsmm_request request;
    assert_int_equal(bsmm_describe(&p->desc, &request), BSMM_OK);
    const bsmm_product *q = &request.product;
    assert_true(bsmm_small_m_is_tiny(q));
    if (strcmp(of->a, "f32") == 0) {
        assert_true(bsmm_small_m_tiny_f32fma_takes(q));
        return bsmm_small_m_tiny_f32fma(q, context);
    }
    if (strcmp(of->kernel, INT8) == 0) {
        assert_true(bsmm_small_m_tiny_int8dot_takes(q));
        memcpy(context, bsmm_pack_table_of(BSMM_ELEM_E2M1)->b, 64);
        return bsmm_small_m_tiny_int8dot(q, context);
    }
    assert_true(bsmm_small_m_tiny_bf16dot_takes(q));
    if (q->b.m.format.elem != BSMM_ELEM_BF16) bsmm_decode_tables_for_dots(q, context);
    return bsmm_small_m_tiny_bf16dot(q, context);
}

static void make(product *p, const pair *of, int64_t m, int64_t n, int64_t k, fill how, rng *r) {
    product_make(p, of->a, of->b, m, n, k, how, r);
}

/* Tests many sizes. Operands of ordinary values must be multiplied without packing. */
static void test_sizes(void **state) {
    (void)state;
    static const int64_t ns[] = {1, 8, 15, 16, 17, 33, 64, 127, 128};
    if (!has_kernels()) skip();
    rng r = {21};
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (int64_t m = 1; m <= 16; m++)
            for (fill how = FILL_ORDINARY; how <= FILL_SPECIAL; how++) {
                if (!test_takes_next()) continue;
                product p;
                int64_t n = ns[((size_t)m * 4 + i + how) % BSMM_COUNT(ns)],
                        k = 32 * (1 + (m + how) % 4);
                make(&p, &pairs[i], m, n, k, how, &r);
                check_same(&p, &pairs[i]);
                if (how == FILL_ORDINARY) assert_true(takes_tiny(&p, &pairs[i]));
                product_free(&p);
            }
    bsmm_cpu_mask_features(~0u);
}

/* Tests that products with B in compact order (format/compact.c) count as tiny, too. */
static void test_compact(void **state) {
    (void)state;
    rng r = {24};
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        product p;
        bsmm_request request;
        make(&p, &pairs[i], 4, 40, 128, FILL_ORDINARY, &r);
        assert_int_equal(bsmm_describe(&p.desc, &request), BSMM_OK);
        const bsmm_operand stored = request.product.b;
        assert_int_equal(bsmm_compact_view(&stored, &request.product.b), BSMM_OK);
        if (!bsmm_small_m_is_tiny(&request.product)) fail_msg("%s", pairs[i].b);
        product_free(&p);
    }
}

/* Tests matrices with gaps between their rows. The scales stay row-major without gaps. */
static void test_pitches(void **state) {
    (void)state;
    if (!has_kernels()) skip();
    rng r = {22};
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        product p = {.d = describe(format_named("f32"), 7, 40)};
        bsmm_matrix a = describe(format_named(pairs[i].a), 7, 64);
        bsmm_matrix b = describe(format_named(pairs[i].b), 40, 64);
        a.ld = 96;
        b.ld = 130;
        test_matrix_make(&p.a, a, FILL_ORDINARY, &r);
        test_matrix_make(&p.b, b, FILL_ORDINARY, &r);
        p.d.data = malloc(7 * 40 * sizeof(float));
        p.desc =
            (bsmm_matmul_desc){.struct_size = sizeof p.desc, .a = &p.a.m, .b = &p.b.m, .d = &p.d};
        check_same(&p, &pairs[i]);
        product_free(&p);
    }
    bsmm_cpu_mask_features(~0u);
}

/* Tests epilogues and a D of bf16 or f16. In half of the products the values are extreme, so that
 * the function for tiny products refuses them. C and D are the same memory. If the function had
 * overwritten a part of D before it refused, the result would be wrong. */
static void test_epilogues(void **state) {
    (void)state;
    static const char *const ds[] = {"f32", "bf16", "f16"};
    if (!has_kernels()) skip();
    rng r = {23};
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    for (size_t i = 0; i < BSMM_COUNT(pairs) * 24; i++) {
        const pair *of = &pairs[i % BSMM_COUNT(pairs)];
        size_t kind = i / BSMM_COUNT(pairs);
        if (!test_takes_next()) continue;
        product p;
        const float alpha = -1.25f, beta = 0.5f;
        float globals[] = {0.75f, 3.0f}, bias[40];
        for (size_t j = 0; j < 40; j++)
            bias[j] = (float)j / 3;
        make(&p, of, 1 + (int64_t)i % 16, 40, 64, i % 2 ? FILL_ORDINARY : FILL_EXTREME, &r);
        p.d.format = format_named(ds[kind % 3]);
        if (kind & 4) p.desc.alpha = &alpha;
        if (kind & 8) {
            p.desc.beta = &beta;
            p.desc.c = &p.d;
        }
        if (kind & 16) {
            p.desc.bias_elem = BSMM_ELEM_F32;
            p.desc.bias = bias;
        }
        if (strcmp(of->a, "nvfp4") == 0) p.a.m.global_scale = &globals[0];
        if (strcmp(of->b, "nvfp4") == 0) p.b.m.global_scale = &globals[1];
        check_same(&p, of);
        product_free(&p);
    }
    bsmm_cpu_mask_features(~0u);
}

/* Tests one unusual scale or element in the last row of A or of B. */
static void test_unusual(void **state) {
    (void)state;
    static const uint8_t e8m0[] = {0, 76, 77, 106, 107, 147, 148, 177, 178, 254, 255};
    static const uint8_t bytes[] = {0, 0x80, 0x7e, 0x7f, 0x7b, 0x7c, 0xff, 0xfc};
    static const uint16_t halves[] = {0,      0x8000, 1,      97 << 7,  (97 << 7) - 1,
                                      0x7f80, 0xffff, 0x49ff, 147 << 7, 0x4a80};
    static const uint32_t floats[] = {0,          0x80000000, 1,          112u << 23, 0x37ffffff,
                                      0x46ffffff, 142u << 23, 0x7f800000, 0x7fc00000, 0xbf800000};
    if (!has_kernels()) skip();
    rng r = {24};
    bsmm_cpu_mask_features(~(uint32_t)BSMM_CPU_TWO_PORTS);
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++)
        for (size_t j = 0; j < 44; j++) {
            if (!test_takes_next()) continue;
            product p;
            make(&p, &pairs[i], 5, 21, 96, FILL_ORDINARY, &r);
            test_matrix *t = j % 2 ? &p.a : &p.b;
            size_t last = j / 2 % 11, elem_bits = bsmm_elem_row(t->m.format.elem)->bits;
            uint8_t *scales = t->m.scales, *data = t->m.data;
            if (t->m.format.scale == BSMM_SCALE_F32)
                memcpy(scales + t->scale_bytes - 4, &floats[last % BSMM_COUNT(floats)], 4);
            else if (t->m.format.scale == BSMM_SCALE_E8M0 && (elem_bits == 4 || j < 22))
                scales[t->scale_bytes - 1] = e8m0[last];
            else if (t->m.format.scale == BSMM_SCALE_E4M3)
                scales[t->scale_bytes - 1] = bytes[last % BSMM_COUNT(bytes)];
            else if (elem_bits == 8)
                data[t->data_bytes - 1] = bytes[last % BSMM_COUNT(bytes)];
            else
                memcpy(data + t->data_bytes - 2, &halves[last % BSMM_COUNT(halves)], 2);
            check_same(&p, &pairs[i]);
            product_free(&p);
        }
    bsmm_cpu_mask_features(~0u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_pitches),
        cmocka_unit_test(test_epilogues), cmocka_unit_test(test_unusual),
        cmocka_unit_test(test_compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
