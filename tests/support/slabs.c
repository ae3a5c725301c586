#include "slabs.h"

#include "cpu_hooks.h"
#include "packed_b.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `tiny` and `huge` are two sizes of the L2 cache in bytes. `tiny` gives slabs (parts of B that are
 * packed at once) the smallest possible size, and `huge` makes one slab hold all of B. */
static const uint64_t tiny = 4096, huge = (uint64_t)1 << 30;

/* Returns the buffers of a run, except for the workspace and packed weights. */
static bsmm_buffers buffers_of(const bsmm_matmul_desc *desc, int64_t rows) {
    const bsmm_epilogue none = {.struct_size = sizeof none};
    const bsmm_epilogue *e = desc->epilogue ? desc->epilogue : &none;
    return (bsmm_buffers){
        .struct_size = sizeof(bsmm_buffers),
        .a = desc->a->data,
        .a_scales = desc->a->scales,
        .a_global = desc->a->global_scale,
        .b = desc->b->data,
        .b_scales = desc->b->scales,
        .b_global = desc->b->global_scale,
        .c = desc->c ? desc->c->data : NULL,
        .d = desc->d->data,
        .d_scales = desc->d->scales,
        .d_global = desc->d->global_scale,
        .bias = desc->bias,
        .residual = e->residual ? e->residual->data : NULL,
        .row_scale = e->row_scale,
        .col_scale = e->col_scale,
        .rows = rows,
    };
}

/* Packs B in the form that the plan's description names. The caller frees the packed weights. */
static void *pack(const bsmm_plan *plan, const bsmm_buffers *buffers, uint64_t bytes) {
    void *packed = packed_b_room(bytes);
    if (bsmm_pack_b(plan, buffers, packed, bytes)) fail_msg("%s", bsmm_error_message());
    return packed;
}

/* Computes D as on a processor whose L2 cache has `l2` bytes. Returns the size of the workspace. */
static uint64_t run_with(const bsmm_matmul_desc *desc, int64_t rows, uint64_t l2) {
    bsmm_plan *plan;
    bsmm_cpu_pretend_l2_bytes(l2);
    if (bsmm_plan_create(desc, &plan)) fail_msg("%s", bsmm_error_message());
    bsmm_buffers b = buffers_of(desc, rows);
    if (desc->b_packed) {
        b.packed_b_bytes = bsmm_plan_packed_b_bytes(plan);
        b.packed_b = pack(plan, &b, b.packed_b_bytes);
    }
    const uint64_t bytes = bsmm_plan_workspace_bytes(plan), room = (bytes + 63) / 64 * 64;
    b.workspace = guarded_alloc(room);
    b.workspace_bytes = bytes;
    memset(desc->d->data, 0xa5, desc->d->data_bytes);
    if (desc->d->scale_bytes) memset(desc->d->scales, 0xa5, desc->d->scale_bytes);
    if (bsmm_plan_run(plan, &b)) fail_msg("%s", bsmm_error_message());
    bsmm_cpu_pretend_l2_bytes(0);
    guarded_free(b.workspace, room);
    free((void *)(uintptr_t)b.packed_b);
    bsmm_plan_destroy(plan);
    return bytes;
}

/* Returns a copy of D's elements and scales. The caller frees it. */
static uint8_t *copy_d(const bsmm_matrix *d) {
    uint8_t *copy = malloc(d->data_bytes + d->scale_bytes);
    memcpy(copy, d->data, d->data_bytes);
    if (d->scale_bytes) memcpy(copy + d->data_bytes, d->scales, d->scale_bytes);
    return copy;
}

static void compare(const bsmm_matmul_desc *desc, int64_t rows) {
    const uint64_t of_slabs = run_with(desc, rows, tiny);
    uint8_t *slabs = copy_d(desc->d);
    const uint64_t of_whole = run_with(desc, rows, huge);
    uint8_t *whole = copy_d(desc->d);
    const bool is_smaller = of_slabs < of_whole;
    if (!is_smaller || memcmp(slabs, whole, desc->d->data_bytes + desc->d->scale_bytes) != 0)
        fail_msg("%s, M = %lld, N = %lld, B in %s: %s", desc->kernel, (long long)desc->a->rows,
                 (long long)desc->b->rows, bsmm_format_name(desc->b->format),
                 is_smaller ? "other bits" : "B is not divided into slabs");
    free(slabs);
    free(whole);
}

/* Returns true if the kernel packs B in every run that does not get a B that was packed in advance.
 */
static bool packs_b(const bsmm_matmul_desc *desc, uint32_t kernel) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    bsmm_matmul_desc plain = *desc;
    plain.b_packed = BSMM_PACKED_NONE;
    assert_int_equal(bsmm_explain(&plain, kernel, &e), BSMM_OK);
    return e.packed_b_bytes && !strstr(e.kernel, "_small_m");
}

int slabs_compare(bsmm_matmul_desc *desc, int64_t rows) {
    int count = 0;
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(desc, i, &e); i++) {
        if (strcmp(e.device, "cpu") != 0 || !e.accepts || !packs_b(desc, i)) continue;
        desc->kernel = e.kernel;
        compare(desc, rows);
        desc->kernel = NULL;
        count++;
    }
    return count;
}
