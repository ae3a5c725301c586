#include "packed_b.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void *packed_b_room(uint64_t bytes) {
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void packed_b_make(packed_b *f, bsmm_format a, bsmm_matrix b, int64_t m, fill how, rng *r) {
    *f = (packed_b){.plan = NULL};
    test_matrix_make(&f->a, describe(a, m, b.cols), how, r);
    test_matrix_make(&f->b, b, how, r);
    test_matrix_make(&f->d, describe(format_named("f32"), m, b.rows), FILL_ORDINARY, r);
    f->desc =
        (bsmm_matmul_desc){.struct_size = sizeof f->desc, .a = &f->a.m, .b = &f->b.m, .d = &f->d.m};
}

static bsmm_buffers buffers_of(const packed_b *f) {
    return (bsmm_buffers){.struct_size = sizeof(bsmm_buffers),
                          .a = f->a.m.data,
                          .a_scales = f->a.m.scales,
                          .d = f->d.m.data,
                          .packed_b = f->packed,
                          .packed_b_bytes = f->bytes};
}

void packed_b_pack(packed_b *f, uint32_t form) {
    f->desc.b_packed = form;
    if (bsmm_plan_create(&f->desc, &f->plan) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    f->bytes = bsmm_plan_packed_b_bytes(f->plan);
    f->packed = packed_b_room(f->bytes);
    memset(f->packed, 0xa5, f->bytes);
    const bsmm_buffers b = {.struct_size = sizeof b,
                            .b = f->b.m.data,
                            .b_scales = f->b.m.scales,
                            .b_global = f->b.m.global_scale};
    if (bsmm_pack_b(f->plan, &b, f->packed, f->bytes) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
}

void packed_b_free(packed_b *f) {
    bsmm_plan_destroy(f->plan);
    free(f->packed);
    test_matrix_free(&f->a);
    test_matrix_free(&f->b);
    test_matrix_free(&f->d);
}

bsmm_status packed_b_run(const packed_b *f, const bsmm_plan *plan) {
    bsmm_buffers buffers = buffers_of(f);
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    buffers.workspace = packed_b_room(buffers.workspace_bytes);
    bsmm_status status = bsmm_plan_run(plan, &buffers);
    free(buffers.workspace);
    return status;
}

void packed_b_check_unpacked(const packed_b *f, rng *r) {
    test_matrix back;
    float global = 0;
    bsmm_matrix like = f->b.m;
    like.global_scale = NULL;
    test_matrix_make(&back, like, FILL_SPECIAL, r);
    back.m.global_scale = f->b.m.global_scale ? &global : NULL;
    /* Packed weights that are a tensor of a file may lie at any address, also at an odd one. */
    uint8_t *odd = malloc(f->bytes + 1);
    assert_non_null(odd);
    memcpy(odd + 1, f->packed, f->bytes);
    if (bsmm_unpack_b(odd + 1, f->bytes, 0, &back.m) != BSMM_OK)
        fail_msg("%s", bsmm_error_message());
    free(odd);
    const bsmm_matrix *b = &f->b.m;
    bsmm_operand from, to;
    assert_int_equal(bsmm_operand_take(b, "b", &from), BSMM_OK);
    assert_int_equal(bsmm_operand_take(&back.m, "b", &to), BSMM_OK);
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t k = 0; k < b->cols; k++) {
            uint64_t at = bsmm_operand_index(&from, row, k);
            assert_int_equal(bsmm_elem_load(b->format.elem, b->data, at),
                             bsmm_elem_load(b->format.elem, back.m.data, at));
        }
    for (int64_t row = 0; row < from.map.rows; row++)
        for (int64_t c = 0; c < from.map.cols; c++) {
            uint64_t at = bsmm_scale_map_at(&from.map, row, c);
            assert_int_equal(bsmm_scale_load_code(b->format.scale, b->scales, at),
                             bsmm_scale_load_code(b->format.scale, back.m.scales, at));
        }
    if (b->global_scale) assert_memory_equal(&global, b->global_scale, sizeof global);
    back.m.global_scale = NULL;
    test_matrix_free(&back);
}
