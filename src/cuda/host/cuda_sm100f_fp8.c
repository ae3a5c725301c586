/* The kernel cuda_sm100f_fp8 multiplies e4m3 and e5m2 elements with fp32 scales on Blackwell's
 * tensor cores (sm100f/fp8_groups.cu). Each scale covers a multiple of 128 columns, or whole rows.
 * If the distance between rows of elements is no multiple of 16 bytes, TMA cannot read the rows,
 * and each run first copies the rows to the workspace. */
#include "cuda/host/group_sums.h"
#include "cuda/host/tma_rows.h"
#include "gpu/params.h"

static const bsmm_cuda_function function = {"sm100f/fp8_groups", "fp8_groups",
                                            BSMM_GROUP_SUMS_SHARED};

typedef struct fp8_state {
    bsmm_tma_rows rows[2];
    bsmm_group_sums_params params;
    bsmm_cuda_ready ready;
} fp8_state;

BSMM_CHECK_STATE(fp8_state);

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    fp8_state *s = state;
    const char *reason = bsmm_cuda_refuse(p, &function, why, size);
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
    return bsmm_group_sums_refuse(p, why, size);
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    const fp8_state *s = state;
    const uint64_t bytes = s->rows[0].bytes + s->rows[1].bytes;
    (void)p;
    return bsmm_cuda_room_bytes(bytes);
}

/* Returns the kernel's error bound, relative to the sum of the magnitudes of all products. The
 * bound assumes that a tcgen05.mma truncates each term at worst 13 bits below the largest term, as
 * Hopper's FP8 tensor cores do (docs/NUMERICS.md). Four instructions sum 128 elements of K. An fp32
 * FMA multiplies each of these sums by a rounded product of scales and adds it to a total. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 132 * 0x1p-13 + ((double)p->a.m.cols / BSMM_GROUP_SUMS_K + 4) * 0x1p-24;
}

/* ---- making a plan ---- */

/* Returns the descriptor of the instruction tcgen05.mma of kind f8f6f4 (PTX ISA, "Instruction
 * descriptor"). It encodes fp32 sums, the types of elements, and the extents of the tile. */
static uint32_t form_of(const bsmm_product *p) {
    enum { F32 = 1, E4M3 = 0, E5M2 = 1 };
    const uint32_t a = p->a.m.format.elem == BSMM_ELEM_E5M2 ? E5M2 : E4M3,
                   b = p->b.m.format.elem == BSMM_ELEM_E5M2 ? E5M2 : E4M3;
    return F32 << 4 | a << 7 | b << 10 | BSMM_GROUP_SUMS_TILE / 8 << 17 |
           BSMM_GROUP_SUMS_TILE / 16 << 24;
}

static bsmm_status make_in_context(const bsmm_product *p, fp8_state *s) {
    s->params = bsmm_group_sums_params_of(p);
    s->params.form = form_of(p);
    for (int i = 0; i < 2; i++)
        BSMM_TRY(
            bsmm_tma_rows_make(p->device, bsmm_cuda_side(p, i), BSMM_GROUP_SUMS_TILE, &s->rows[i]));
    return bsmm_group_sums_make(p, &function, &s->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

/* ---- running a plan ---- */

static bsmm_status run_in_context(const bsmm_product *p, const fp8_state *s, void *workspace) {
    bsmm_group_sums_params params = s->params;
    uint8_t *room = bsmm_cuda_room(workspace);
    for (int i = 0; i < 2; i++) {
        bsmm_gpu_operand_bind(bsmm_cuda_side(p, i), &params.sides[i]);
        BSMM_TRY(
            bsmm_tma_rows_bind(p, bsmm_cuda_side(p, i), &s->rows[i], &room, &params.elements[i]));
    }
    bsmm_gpu_epilogue_bind(p, &params.epilogue);
    return bsmm_cuda_ready_launch(p->device, &s->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
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
