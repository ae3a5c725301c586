/* The kernel cuda_sm80_bf16: any GEMM on the bf16 tensor cores of any GPU since compute capability
 * 8.0 (sm80/bf16.cu). It is the fallback that takes what no tuned kernel takes.
 *
 * A value is an element times its block scale. A single bf16 holds the value of an element of at
 * most 8 bits or of bf16, if the scale is a power of two, or is e4m3 and the element has at most 4
 * significant bits. Three bf16 parts hold any fp32 value. fp32 scales are applied to the
 * accumulators of each step of K, if the other operand fits in one bf16 too and each step has a
 * single scale. Otherwise they are multiplied into the elements, with one fp32 rounding. */
#include "cuda/host/generic.h"
#include "cuda/host/kernel.h"
#include "cuda/sm80/bf16_params.h"
#include "gpu/params.h"

#include <stdio.h>

enum { ONE_BY_ONE, SCALED, ONE_BY_THREE, THREE_BY_ONE, THREE_BY_THREE };
enum { PLANE_BYTES = BSMM_BF16_TILE * BSMM_BF16_K * 2 };

/* Bytes of shared memory: two buffers with one plane per part. The epilogue reuses them for the
 * tile in fp32. */
#define SHARED(parts) ((parts) < 4 ? 8 * PLANE_BYTES : 2 * (parts)*PLANE_BYTES)

static const bsmm_cuda_function functions[] = {
    [ONE_BY_ONE] = {"sm80/bf16", "bf16_1x1", SHARED(2)},
    [SCALED] = {"sm80/bf16", "bf16_1x1_scaled", SHARED(2)},
    [ONE_BY_THREE] = {"sm80/bf16", "bf16_1x3", SHARED(4)},
    [THREE_BY_ONE] = {"sm80/bf16", "bf16_3x1", SHARED(4)},
    [THREE_BY_THREE] = {"sm80/bf16", "bf16_3x3", SHARED(6)},
};

/* ---- choice of the kernel ---- */

/* Returns true if a single bf16 holds each value, apart from an fp32 scale. */
static bool fits_bf16(const bsmm_operand *o) {
    uint32_t elem = o->m.format.elem;
    if (elem == BSMM_ELEM_BF16) return o->m.format.scale != BSMM_SCALE_E4M3;
    return bsmm_elem_row(elem)->bits <= 8;
}

static bool has_floats(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

/* Returns true if fp32 scales can be applied to the accumulators of a step, because each step of K
 * lies in one block. */
static bool may_stay_outside(const bsmm_operand *o) {
    uint32_t cols = o->m.format.block_cols;
    return has_floats(o) && (cols % BSMM_BF16_K == 0 || cols >= o->m.cols);
}

/* Returns true if a product of two elements may underflow in fp32 before the scales make it larger.
 * That is possible for two bf16 elements, but not for a bf16 element and one of at most 8 bits. */
static bool may_vanish(const bsmm_product *p) {
    return p->a.m.format.elem == BSMM_ELEM_BF16 && p->b.m.format.elem == BSMM_ELEM_BF16;
}

static int choose(const bsmm_product *p) {
    bool a = fits_bf16(&p->a) && (!has_floats(&p->a) || may_stay_outside(&p->a));
    bool b = fits_bf16(&p->b) && (!has_floats(&p->b) || may_stay_outside(&p->b));
    bool floats = has_floats(&p->a) || has_floats(&p->b);
    if (a && b && !(floats && may_vanish(p))) return floats ? SCALED : ONE_BY_ONE;
    a = fits_bf16(&p->a) && !has_floats(&p->a);
    b = fits_bf16(&p->b) && !has_floats(&p->b);
    return a ? ONE_BY_THREE : b ? THREE_BY_ONE : THREE_BY_THREE;
}

/* ---- parameters ---- */

static bool is_together(const bsmm_operand *o) {
    static const uint32_t alignments[] = {[4] = 4, [6] = 2, [8] = 8, [16] = 16, [32] = 16};
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    uint64_t pitch = (uint64_t)o->m.ld * bits / 8;
    return o->m.order == BSMM_ORDER_ROW && ((uintptr_t)o->m.data | pitch) % alignments[bits] == 0;
}

static bsmm_bf16_side side_of(const bsmm_operand *o, bool outside) {
    uint32_t cols = o->m.format.block_cols;
    return (bsmm_bf16_side){
        .o = bsmm_gpu_operand_of(o),
        .rows = (uint32_t)o->m.rows,
        .by_rows = o->m.order == BSMM_ORDER_ROW,
        .together = is_together(o),
        .one = cols % 8 == 0 || cols >= o->m.cols,
        .outside = outside,
    };
}

static int64_t tiles(int64_t rows) {
    return bsmm_ceil_div(rows, BSMM_BF16_TILE);
}

/* ---- the kernel ---- */

const char *bsmm_cuda_generic_refuse(const bsmm_product *p, char *why, size_t size) {
    const char *reason = bsmm_cuda_refuse(p, &functions[0], why, size);
    if (reason) return reason;
    if (p->recipe) return "D is block-scaled: it stores unscaled formats only";
    if (!bsmm_gpu_is_small(p) || tiles(p->d.m.rows) > INT32_MAX / tiles(p->d.m.cols + 1))
        return "an extent is beyond 32 bits";
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* The error bound. The tensor cores add 16 products and an accumulator, each truncated 23 bits
 * below the largest, which is 17 * 2^-23 for 16 terms. SCALED: two such additions per step, then
 * one FMA per step and two roundings of scales. Parts: the products after the third part are
 * omitted (2^-23), and fp32 scales are multiplied in (2^-23). THREE_BY_THREE has six such additions
 * in one accumulator. */
double bsmm_cuda_generic_bound(const bsmm_product *p) {
    double k = (double)p->a.m.cols;
    switch (choose(p)) {
    case ONE_BY_ONE:
        return 2.2 * (k + 16) * 0x1p-24;
    case SCALED:
        return (k / BSMM_BF16_K + 80) * 0x1p-24;
    case THREE_BY_THREE:
        return 13 * (k + 16) * 0x1p-24;
    default:
        return 2.3 * (k + 32) * 0x1p-24;
    }
}

bsmm_bf16_job bsmm_cuda_generic_job(const bsmm_product *p) {
    bool scaled = choose(p) == SCALED;
    return (bsmm_bf16_job){
        .sides = {side_of(&p->a, scaled && has_floats(&p->a)),
                  side_of(&p->b, scaled && has_floats(&p->b))},
        .epilogue = bsmm_gpu_epilogue_of(p),
        .k = (uint32_t)p->a.m.cols,
        .b_tiles = (uint32_t)tiles(p->d.m.cols),
        .tiles = (uint32_t)(tiles(p->d.m.rows) * tiles(p->d.m.cols)),
    };
}

void bsmm_cuda_generic_bind(const bsmm_product *p, bsmm_bf16_job *job) {
    const bsmm_operand *operands[2] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        bsmm_gpu_operand_bind(operands[i], &job->sides[i].o);
        job->sides[i].together = is_together(operands[i]);
    }
    bsmm_gpu_epilogue_bind(p, &job->epilogue);
}

bsmm_status bsmm_cuda_generic_make(const bsmm_product *p, bool is_gated, bsmm_cuda_generic *made) {
    const bsmm_cuda_device *d = p->device;
    const bsmm_cuda_function *function = &functions[choose(p)];
    made->job = bsmm_cuda_generic_job(p);
    /* A gate is rarely open, so launch only few blocks to find it closed. */
    int64_t blocks =
        is_gated ? bsmm_min_i64(made->job.tiles, 2 * (int64_t)d->multiprocessors) : made->job.tiles;
    return bsmm_cuda_ready_make(d,
                                &(bsmm_cuda_launch_desc){
                                    .function = function,
                                    .grid = {(uint32_t)blocks},
                                    .block = {BSMM_BF16_THREADS},
                                    .shared_bytes = function->shared_bytes,
                                    /* The kernel's gate waits for the previous kernel, so launches
                                     * may overlap. */
                                    .overlap = d->capability == 90,
                                },
                                &made->ready);
}

bsmm_status bsmm_cuda_generic_run(const bsmm_product *p, const bsmm_cuda_generic *made,
                                  const bsmm_cuda_gate *gate) {
    bsmm_bf16_params params = {
        .job = made->job,
        .gate = gate ? *gate : (bsmm_cuda_gate){.when = BSMM_WHEN_ALWAYS},
    };
    bsmm_cuda_generic_bind(p, &params.job);
    return bsmm_cuda_ready_launch(p->device, &made->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

BSMM_CHECK_STATE(bsmm_cuda_generic);

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    (void)state;
    return bsmm_cuda_generic_refuse(p, why, size);
}

static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return bsmm_cuda_generic_bound(p);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    return bsmm_cuda_generic_make(p, false, state);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    (void)workspace;
    BSMM_TRY(bsmm_cuda_enter(p->device));
    bsmm_status status = bsmm_cuda_generic_run(p, state, NULL);
    bsmm_cuda_leave(p->device);
    return status;
}

const bsmm_kernel bsmm_kernel_cuda_sm80_bf16 = {
    .name = "cuda_sm80_bf16",
    .device = "cuda",
    .state_bytes = sizeof(bsmm_cuda_generic),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    /* One code path computes any number of rows, and each result is independent of the others. This
     * makes results batch-invariant. */
    .features = BSMM_FEATURE_INVARIANT,
};
