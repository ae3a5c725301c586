#include "activated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const bsmm_epilogue gpt_oss = {.activation = BSMM_ACTIVATION_SWIGLU,
                               .halves = BSMM_HALVES_INTERLEAVED,
                               .limit = 7,
                               .slope = 1.702f,
                               .up_offset = 1};

static float small(rng *r) {
    return (float)rng_below(r, 1000) / 400 - 1.25f;
}

static bool is_gated(uint32_t activation) {
    bsmm_activation_info info = {.struct_size = sizeof info};
    assert_int_equal(bsmm_activation_at(activation, &info), BSMM_OK);
    return info.is_gated;
}

void activated_make(activated *p, const bsmm_epilogue *e, const char *d, bool everything, rng *r) {
    int64_t cols = is_gated(e->activation) ? HALF : N;
    *p = (activated){.alpha = 0.05f, .beta = 0.75f, .epilogue = *e};
    test_matrix_make(&p->a, describe(format_named("mxfp8"), M, K), FILL_ORDINARY, r);
    test_matrix_make(&p->b, describe(format_named("mxfp4"), N, K), FILL_ORDINARY, r);
    test_matrix_make(&p->d, describe(format_named(d), M, cols), FILL_ORDINARY, r);
    p->a_values = test_matrix_values(&p->a);
    p->b_values = test_matrix_values(&p->b);
    p->epilogue.struct_size = sizeof p->epilogue;
    p->desc = (bsmm_matmul_desc){.struct_size = sizeof p->desc,
                                 .a = &p->a.m,
                                 .b = &p->b.m,
                                 .d = &p->d.m,
                                 .alpha = &p->alpha,
                                 .epilogue = &p->epilogue};
    if (!everything) return;
    test_matrix_make(&p->c, describe(format_named("f16"), M, N), FILL_ORDINARY, r);
    test_matrix_make(&p->residual, describe(format_named("bf16"), M, cols), FILL_ORDINARY, r);
    for (int i = 0; i < N; i++) {
        p->bias[i] = small(r);
        p->col_scale[i] = small(r);
    }
    for (int i = 0; i < M; i++)
        p->row_scale[i] = small(r);
    p->desc.c = &p->c.m;
    p->desc.beta = &p->beta;
    p->desc.bias = p->bias;
    p->desc.bias_elem = BSMM_ELEM_F32;
    p->epilogue.residual = &p->residual.m;
    p->epilogue.scale_by = BSMM_SCALE_BY_ROW | BSMM_SCALE_BY_COL;
    p->epilogue.row_scale = p->row_scale;
    p->epilogue.col_scale = p->col_scale;
}

void activated_free(activated *p) {
    test_matrix_free(&p->a);
    test_matrix_free(&p->b);
    test_matrix_free(&p->d);
    free(p->a_values);
    free(p->b_values);
    if (p->c.m.data) test_matrix_free(&p->c);
    if (p->residual.m.data) test_matrix_free(&p->residual);
}
