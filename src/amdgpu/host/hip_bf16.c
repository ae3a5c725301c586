/* Any product on the bf16 matrix cores of CDNA3 and CDNA4 (cdna/bf16.c): what no tuned kernel
 * takes. */
#include "amdgpu/cdna/bf16_params.h"
#include "amdgpu/host/kernel.h"
#include "gpu/bf16_jobs.h"

/* Workgroups of a launch: HIP counts threads along x in 32 bits. */
enum { MOST_GROUPS = 1 << 23 };

/* Planes of A and B, at least as much as the tile in fp32; then a word and a float for each row. */
#define PLANES(parts) ((parts)*BSMM_CDNA_BF16_PLANE)
#define SHARED(parts)                                                                              \
    ((PLANES(parts) > BSMM_CDNA_BF16_STRIP ? PLANES(parts) : BSMM_CDNA_BF16_STRIP) +               \
     2 * BSMM_CDNA_BF16_TILE * 8)

static const bsmm_hip_function functions[] = {
    [BSMM_BF16_1X1] = {"cdna/bf16", "bf16_1x1", SHARED(2)},
    [BSMM_BF16_SCALED] = {"cdna/bf16", "bf16_1x1_scaled", SHARED(2)},
    [BSMM_BF16_1X3] = {"cdna/bf16", "bf16_1x3", SHARED(4)},
    [BSMM_BF16_3X1] = {"cdna/bf16", "bf16_3x1", SHARED(4)},
    [BSMM_BF16_3X3] = {"cdna/bf16", "bf16_3x3", SHARED(6)},
};

/* The state of this kernel in a plan. */
typedef struct bf16_state {
    bsmm_bf16_job job;
    bsmm_bf16_kind kind;
} bf16_state;
BSMM_CHECK_STATE(bf16_state);

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    bf16_state *s = state;
    const char *reason = bsmm_hip_refuse(p, &functions[0], why, size);
    if (!reason) reason = bsmm_gpu_bf16_refuse(p, BSMM_CDNA_BF16_TILE);
    if (reason) return reason;
    s->kind = bsmm_gpu_bf16_choose(p);
    s->job = bsmm_gpu_bf16_job_of(p, BSMM_CDNA_BF16_TILE);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* The matrix cores add 8 products and a sum, each at worst cut off 23 bits below the largest: 9 *
 * 2^-23 for 8 terms. Scaled: four of those inside a step, one FMA a step and three roundings of
 * factors. In parts: those after the third are left out (2^-23), fp32 scales are multiplied in
 * (2^-23 for both), and the sums of the smaller parts, of at most 2^-7 of the whole, are apart. */
static double bound(const bsmm_product *p, const void *state) {
    const double k = (double)p->a.m.cols;
    switch (((const bf16_state *)state)->kind) {
    case BSMM_BF16_1X1:
        return 2.3 * (k + 16) * 0x1p-24;
    case BSMM_BF16_SCALED:
        return (k / BSMM_BF16_K + 80) * 0x1p-24;
    default:
        return 2.4 * (k + 32) * 0x1p-24;
    }
}

static bsmm_status make(const bsmm_product *p, void *state) {
    return bsmm_hip_load(p->device, &functions[((bf16_state *)state)->kind], NULL);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    const bf16_state *s = state;
    bsmm_bf16_job job = s->job;
    uint32_t groups = job.tiles < MOST_GROUPS ? job.tiles : MOST_GROUPS;
    (void)workspace;
    if (groups == 0) return BSMM_OK;
    bsmm_gpu_bf16_job_bind(p, &job);
    return bsmm_hip_launch(p->device, &(bsmm_hip_launch_desc){
                                          .function = &functions[s->kind],
                                          .grid = {groups},
                                          .block = {BSMM_CDNA_BF16_THREADS},
                                          .shared_bytes = functions[s->kind].shared_bytes,
                                          .stream = p->stream,
                                          .arguments = BSMM_HIP_ARGUMENTS(&job, &groups),
                                      });
}

const bsmm_kernel bsmm_kernel_hip_bf16 = {
    .name = "hip_bf16",
    .device = "hip",
    .state_bytes = sizeof(bf16_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    .features = BSMM_FEATURE_INVARIANT, /* one way for any rows, each result by itself */
};
