/* The kernel cuda_sm100f_fp8 multiplies e4m3 and e5m2 elements with fp32 scales on Blackwell's
 * tensor cores (sm100f/scaled_body.h). Each scale covers a multiple of 128 elements of K, or all of
 * K. If the distance between rows of elements is no multiple of 16 bytes, TMA cannot read the rows,
 * and each run first copies the rows to the workspace. */
#include "cuda/host/group_sums.h"
#include "cuda/host/tma_rows.h"
#include "gpu/params.h"

static const bsmm_scaled_kernel *const kernels = bsmm_scaled_kernels[BSMM_SCALED_FP8_GROUPS];

typedef struct fp8_state {
    bsmm_tma_rows rows[2];
    bsmm_group_sums sums;
} fp8_state;

BSMM_CHECK_STATE(fp8_state);

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    fp8_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &kernels[0].function, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (reason) return reason;
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        if (!bsmm_cuda_is_fp8(o->m.format.elem) || !bsmm_cuda_has_groups(o))
            return bsmm_gpu_refuse_format(o, "AB"[i], BSMM_CUDA_FP8_RULE, why, size);
        reason = bsmm_gpu_refuse_order(o, "AB"[i], why, size);
        if (reason) return reason;
        bsmm_tma_rows_begin(o, false, &s->rows[i]);
    }
    return bsmm_group_sums_begin(p, &s->sums, why, size);
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const fp8_state *s = state;
    const uint64_t bytes = s->rows[0].bytes + s->rows[1].bytes;
    (void)p;
    return bsmm_cuda_room_bytes(bytes);
}

/* Returns the kernel's error bound, relative to the sum of the magnitudes of all products. The
 * bound assumes that a tcgen05.mma truncates each term at worst 13 bits below the largest term, as
 * Hopper's FP8 tensor cores do (docs/NUMERICS.md). One instruction multiplies 32 elements of K, so
 * four of them sum a group of 128 elements. An fp32 FMA multiplies the group's sum by a rounded
 * product of scales and adds it to the sum over all of K. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 132 * 0x1p-13 + ((double)p->a.m.cols / BSMM_SCALED_GROUP_K + 4) * 0x1p-24;
}

/* The functions from here on choose how the kernel computes a product. They run once, when the plan
 * is made. */

/* Returns the bits of tcgen05.mma's instruction descriptor that give the element types of A and B,
 * for the kind f8f6f4 (PTX ISA, "Instruction descriptor"). */
static uint32_t types_of(const bsmm_product *p) {
    enum { E4M3 = 0, E5M2 = 1 };
    const uint32_t a = p->a.m.format.elem == BSMM_ELEM_E5M2 ? E5M2 : E4M3,
                   b = p->b.m.format.elem == BSMM_ELEM_E5M2 ? E5M2 : E4M3;
    return a << 7 | b << 10;
}

static bsmm_status make_in_context(const bsmm_product *p, fp8_state *s) {
    const uint32_t rows[] = {BSMM_SCALED_TILE_M, bsmm_group_sums_b_rows(&s->sums)};
    BSMM_TRY(bsmm_group_sums_make(p, BSMM_SCALED_ROW_BYTES, 1, kernels, &s->sums));
    s->sums.params.form = bsmm_group_sums_form(&s->sums) | types_of(p);
    for (int i = 0; i < 2; i++)
        BSMM_TRY(bsmm_tma_rows_make(p->device, bsmm_cuda_side(p, i), rows[i], &s->rows[i]));
    return BSMM_OK;
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

/* The functions from here on queue the kernels of a product each time it is computed. */

static bsmm_status run_in_context(const bsmm_product *p, const fp8_state *s, void *workspace) {
    bsmm_scaled_params params = s->sums.params;
    CUtensorMap *const maps[] = {&params.a, &params.b};
    uint8_t *room = bsmm_cuda_room(workspace);
    for (int i = 0; i < 2; i++) {
        bsmm_gpu_operand_bind(bsmm_cuda_side(p, i), &params.sides[i]);
        BSMM_TRY(bsmm_tma_rows_bind(p, bsmm_cuda_side(p, i), &s->rows[i], &room, maps[i]));
    }
    return bsmm_group_sums_run(p, &s->sums, &params);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

const bsmm_kernel bsmm_kernel_cuda_sm100f_fp8 = {
    .name = "cuda_sm100f_fp8",
    .device = "cuda",
    .state_bytes = sizeof(fp8_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    .alignment = 16, /* TMA requires addresses that are multiples of 16. */
    /* Every tile adds products in ascending order of K, and no result depends on other rows of
     * A. */
    .features = BSMM_FEATURE_INVARIANT,
};
