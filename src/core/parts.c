/* Parts of a product whose extents each run chooses. */
#include "core/parts.h"

/* Parts of so many rows and fewer may take the kernel for few rows; it refuses what is too many. */
enum { MOST_FEW_ROWS = 64 };

typedef struct kernel_state {
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t bytes[BSMM_STATE_BYTES];
} kernel_state;

/* ---- cutting ---- */

/* Keeps rows of everything that has D's rows. `finish` is the part's own. */
static void keep_rows(bsmm_product *part, bsmm_finish *finish, int64_t row, int64_t rows) {
    bsmm_operand_keep_rows(&part->a, row, rows);
    bsmm_operand_keep_rows(&part->d, row, rows);
    if (part->has_c) bsmm_operand_keep_rows(&part->c, row, rows);
    if (!part->finish) return;
    *finish = *part->finish;
    if (finish->has_residual) bsmm_operand_keep_rows(&finish->residual, row, rows);
    if (finish->row_scale) finish->row_scale += row;
    part->finish = finish;
}

/* ---- kernels ---- */

static const char *refusal(const bsmm_kernel *kernel, const bsmm_product *part, kernel_state *state,
                           char *why, size_t size) {
    const char *lacks = bsmm_features_refuse(kernel, part);
    return lacks ? lacks : kernel->refuse(part, state->bytes, why, size);
}

/* The most workspace that `few` needs; 0 if it takes no part. */
static uint64_t few_workspace(const bsmm_kernel *few, const bsmm_product *product) {
    char why[200];
    kernel_state state;
    uint64_t most = 0;
    for (int64_t rows = 1; rows <= bsmm_min_i64(MOST_FEW_ROWS, product->d.m.rows); rows++) {
        bsmm_product part = *product;
        bsmm_finish finish;
        keep_rows(&part, &finish, 0, rows);
        if (refusal(few, &part, &state, why, sizeof why)) break;
        uint64_t bytes = few->workspace_bytes(&part, state.bytes);
        if (bytes > most) most = bytes;
    }
    return most;
}

uint64_t bsmm_parts_make(const bsmm_request *request, const bsmm_kernel *many,
                         uint64_t workspace_bytes, bsmm_parts *parts) {
    *parts = (bsmm_parts){.many = many};
    bsmm_request one = *request;
    kernel_state state;
    if (request->kernel || request->product.d.m.rows == 0) return workspace_bytes;
    keep_rows(&one.product, &one.finish, 0, 1);
    if (bsmm_kernel_choose(&one, state.bytes, &parts->few) != BSMM_OK || parts->few == many) {
        parts->few = NULL;
        return workspace_bytes;
    }
    uint64_t bytes = few_workspace(parts->few, &request->product);
    return bytes > workspace_bytes ? bytes : workspace_bytes;
}

static bsmm_status run_part(const bsmm_parts *parts, const bsmm_product *part, void *workspace) {
    char why[200];
    kernel_state state;
    if (part->d.m.rows == 0 || part->d.m.cols == 0) return BSMM_OK;
    if (parts->few && part->d.m.rows <= MOST_FEW_ROWS &&
        !refusal(parts->few, part, &state, why, sizeof why))
        return parts->few->run(part, state.bytes, workspace);
    const char *reason = refusal(parts->many, part, &state, why, sizeof why);
    if (!reason) return parts->many->run(part, state.bytes, workspace);
    return bsmm_fail(BSMM_E_UNSUPPORTED, "kernel: %s refuses a part of the product: %s",
                     parts->many->name, reason);
}

/* ---- runs ---- */

/* A run's rows; a value from the device may be anything. */
static int64_t rows_of_run(const bsmm_product *p) {
    if (!p->device_rows) return p->rows;
    int64_t rows = *p->device_rows;
    return rows < 0 ? 0 : bsmm_min_i64(rows, p->d.m.rows);
}

bsmm_status bsmm_parts_run(const bsmm_parts *parts, const bsmm_product *product, void *workspace) {
    bsmm_product part = *product;
    bsmm_finish finish;
    keep_rows(&part, &finish, 0, rows_of_run(product));
    return run_part(parts, &part, workspace);
}
