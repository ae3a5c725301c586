/* Runs products that are divided into parts on the CPU. A part is a plain product with a fixed
 * number of rows, for example the product of one group. For each part, the code chooses
 * one of two kernels by the part's number of rows. */
#include "core/parts.h"
#include "core/packed.h"

/* Parts are the plain products into which a CPU divides a product, e.g. one for each group. A part
 * with more than MOST_FEW_ROWS rows of A runs on the plan's kernel. A smaller part runs on the
 * kernel for few rows or, if that kernel refuses it, on the plan's kernel too. */
enum { MOST_FEW_ROWS = 96 };

typedef struct kernel_state {
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t bytes[BSMM_STATE_BYTES];
} kernel_state;

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static const char *refusal(const bsmm_kernel *kernel, const bsmm_product *part, kernel_state *state,
                           char *why, size_t size) {
    const char *lacks = bsmm_features_refuse(kernel, part);
    return lacks ? lacks : kernel->refuse(part, state->bytes, why, size);
}

/* Returns the largest workspace in bytes that `few`, the kernel for few rows of A, needs for any
 * number of rows that it accepts. */
static uint64_t few_workspace(const bsmm_kernel *few, const bsmm_product *widest) {
    char why[200];
    kernel_state state;
    uint64_t most = 0;
    for (int64_t rows = 1; rows <= bsmm_min_i64(MOST_FEW_ROWS, widest->d.m.rows); rows++) {
        bsmm_part part;
        bsmm_part_take_rows(widest, rows, &part);
        if (refusal(few, &part.product, &state, why, sizeof why)) break;
        most = larger(most, few->workspace_bytes(&part.product, state.bytes));
    }
    return most;
}

/* Returns the best kernel for a part of the product with few rows of A. It chooses as for a part
 * with a single row. It returns NULL if that is `many`, the kernel of the whole plan, or if the
 * caller named a kernel in the description. */
static const bsmm_kernel *choose_few(const bsmm_request *request, const bsmm_product *widest,
                                     const bsmm_kernel *many) {
    bsmm_request one = *request;
    bsmm_part part;
    kernel_state state;
    const bsmm_kernel *few;
    if (request->kernel || widest->d.m.rows == 0) return NULL;
    bsmm_part_take_rows(widest, 1, &part);
    one.product = part.product;
    if (bsmm_kernel_choose(&one, state.bytes, &few) != BSMM_OK || few == many) return NULL;
    return few;
}

/* Returns the reference kernel, which accepts every product. It is the last kernel of
 * kernels.def. */
static const bsmm_kernel *reference(void) {
    const bsmm_kernel *last = bsmm_kernel_at(0);
    for (uint32_t i = 1; bsmm_kernel_at(i); i++)
        last = bsmm_kernel_at(i);
    return last;
}

static uint64_t empty_workspace(const bsmm_kernel *empty, const bsmm_product *widest) {
    bsmm_product part = *widest;
    bsmm_operand_keep_cols(&part.a, 0, 0);
    bsmm_operand_keep_cols(&part.b, 0, 0);
    return empty->workspace_bytes(&part, NULL);
}

void bsmm_parts_make(const bsmm_request *request, const bsmm_kernel *many, const void *state,
                     bsmm_parts *parts) {
    const bsmm_product *product = &request->product;
    bsmm_product widest;
    bsmm_part_widest(product, &widest);
    *parts = (bsmm_parts){.many = many, .few = choose_few(request, &widest, many)};
    uint64_t bytes = many->workspace_bytes(&widest, state);
    if (parts->few) bytes = larger(bytes, few_workspace(parts->few, &widest));
    if (product->groups) parts->gathered_bytes = bsmm_part_gathered_bytes(product->groups);
    if (product->groups && product->groups->kind == BSMM_GROUP_K) {
        parts->empty = reference();
        bytes = larger(bytes, empty_workspace(parts->empty, &widest));
    }
    if (!bsmm_add_u64(bytes, parts->gathered_bytes, &parts->workspace_bytes))
        parts->workspace_bytes = UINT64_MAX;
}

/* Returns true if all groups read one packed matrix. A packed matrix contains its second-level
 * scale, so if groups share B but have different second-level scales, each group has a packed
 * matrix of its own. */
static bool share_packed(const bsmm_groups *g) {
    return g->b.elements == 0 && !(g->flags & BSMM_GROUP_EACH_B_GLOBAL);
}

int64_t bsmm_parts_b_count(const bsmm_product *p) {
    if (!p->groups) return 1;
    return share_packed(p->groups) ? bsmm_min_i64(p->groups->count, 1) : p->groups->count;
}

static bsmm_status run_by(const bsmm_kernel *kernel, const bsmm_product *part, void *workspace,
                          uint64_t workspace_bytes) {
    char why[200];
    kernel_state state;
    const char *reason = refusal(kernel, part, &state, why, sizeof why);
    if (reason)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "kernel: %s refuses a part of the product: %s",
                         kernel->name, reason);
    if (kernel->workspace_bytes(part, state.bytes) > workspace_bytes)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "kernel: %s needs more workspace for a part",
                         kernel->name);
    return kernel->run(part, state.bytes, workspace);
}

static bool takes(const bsmm_kernel *kernel, const bsmm_product *part) {
    char why[200];
    kernel_state state;
    return kernel && part->d.m.rows <= MOST_FEW_ROWS &&
           !refusal(kernel, part, &state, why, sizeof why);
}

static bsmm_status run_part(const bsmm_parts *parts, const bsmm_product *part, void *workspace) {
    const bsmm_kernel *kernel = takes(parts->few, part) ? parts->few : parts->many;
    if (part->d.m.rows == 0 || part->d.m.cols == 0) return BSMM_OK;
    if (part->a.m.cols == 0 && parts->empty) kernel = parts->empty;
    return run_by(kernel, part, (uint8_t *)workspace + parts->gathered_bytes,
                  parts->workspace_bytes - parts->gathered_bytes);
}

static bsmm_status run_groups(const bsmm_parts *parts, const bsmm_packed *packed,
                              const void *packed_b, const bsmm_product *product, void *workspace) {
    const bsmm_groups *g = product->groups;
    bsmm_part_cursor cursor = {0};
    for (int64_t i = 0; i < g->count; i++) {
        bsmm_part part;
        int64_t first = bsmm_part_take_group(product, i, &cursor, &part);
        if (product->packed_form) {
            part.product.b = product->b;
            bsmm_packed_bind(packed, packed_b, share_packed(g) ? 0 : i, &part.product);
        }
        if (g->flags & BSMM_GROUP_GATHER_A)
            bsmm_part_gather(g, g->gather + first, workspace, &part.product);
        BSMM_TRY(run_part(parts, &part.product, workspace));
    }
    return BSMM_OK;
}

/* Returns the number of rows of the current run. If the number is read from device memory, it was
 * not checked before, so it is clamped to the range from 0 to the number of D's rows. */
static int64_t rows_of_run(const bsmm_product *p) {
    if (!p->device_rows) return p->rows;
    int64_t rows = *p->device_rows;
    return rows < 0 ? 0 : bsmm_min_i64(rows, p->d.m.rows);
}

bsmm_status bsmm_parts_run(const bsmm_parts *parts, const bsmm_packed *packed, const void *packed_b,
                           const bsmm_product *product, void *workspace) {
    bsmm_part part;
    if (product->groups) return run_groups(parts, packed, packed_b, product, workspace);
    bsmm_part_take_rows(product, rows_of_run(product), &part);
    return run_part(parts, &part.product, workspace);
}
