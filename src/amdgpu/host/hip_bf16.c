/* This is the host code of the bf16 product (cdna/bf16.c), a GEMM that supports any two operands on
 * the bf16 matrix cores of CDNA3 and CDNA4. It is the fallback for products that no specialised
 * kernel supports. */
#include "amdgpu/cdna/bf16_params.h"
#include "amdgpu/host/kernel.h"
#include "gpu/bf16_jobs.h"

/* MOST_GROUPS is the largest number of workgroups of a launch. A workgroup has 256 threads, so this
 * number of workgroups has 2^31 threads. HIP requires fewer than 2^32 threads along x. */
enum { MOST_GROUPS = 1 << 23 };

/* SHARED(parts) is the size in bytes of a kernel's LDS. Each element is split into bf16 parts, and
 * the main loop stores one tile of bf16 (a plane) for each part of A and each part of B, `parts`
 * planes in all. After the main loop, the kernel stores a tile of fp32 sums at the same address, so
 * the larger of the two sizes counts. A 32-bit word and an fp32 number follow for each row of A and
 * each row of B in the tile. */
#define PLANES(parts) ((parts)*BSMM_CDNA_BF16_PLANE)
#define SHARED(parts)                                                                              \
    ((PLANES(parts) > BSMM_CDNA_BF16_STRIP ? PLANES(parts) : BSMM_CDNA_BF16_STRIP) +               \
     2 * BSMM_CDNA_BF16_TILE * 8)

static const bsmm_hip_function functions[] = {
#define KERNEL(id, name, a, b, scaled) [BSMM_BF16_##id] = {"cdna/bf16", #name, SHARED((a) + (b))},
#include "gpu/bf16_kernels.def"
#undef KERNEL
};

/* Holds the state of a plan for this kernel. */
typedef struct bf16_state {
    bsmm_bf16_job job;
    bsmm_bf16_kind kind;
} bf16_state;
BSMM_CHECK_STATE(bf16_state);

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    bf16_state *s = state;
    const char *reason = bsmm_hip_refuse(p, &functions[0], why, size);
    if (!reason) reason = bsmm_gpu_bf16_refuse(p, BSMM_CDNA_BF16_TILE, why, size);
    if (reason) return reason;
    s->kind = bsmm_gpu_bf16_choose(p);
    s->job = bsmm_gpu_bf16_job_of(p, BSMM_CDNA_BF16_TILE);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* Returns the error bound of a result, relative to the sum of the magnitudes of all products. A
 * matrix instruction adds 8 products to a sum. It may truncate each of these 9 terms to a multiple
 * of a number that is 2^23 times smaller than the largest term. The bound for 8 elements of K is
 * therefore 9 * 2^-23.
 *
 * The kernel SCALED has one bf16 number for each element and multiplies sums by fp32 scales. Its
 * instructions sum only the 32 elements of a step. One FMA for each step then multiplies this sum
 * by the scales and adds it to the total, which adds one rounding for each step. The bound also
 * allows three roundings for the product of a scale of A and a scale of B.
 *
 * The other kernels split each value into one or several bf16 parts, and multiply parts of A by
 * parts of B. This adds the following errors:
 * - Products of small parts are omitted. Together they are below 2^-23 of the product of the
 *   values.
 * - Multiplying an element by its fp32 scale is rounded, for A and B together by at most 2^-23.
 * - The other products of smaller parts have an accumulator of their own. Its values are at most
 *   2^-7 of the whole sum, so its truncation errors are small. */
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
    /* The order of additions along K does not depend on M or N. */
    .features = BSMM_FEATURE_INVARIANT,
};
