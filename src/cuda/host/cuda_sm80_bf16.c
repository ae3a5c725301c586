/* The kernel cuda_sm80_bf16 is called the generic GEMM. It takes operands of any format and
 * multiplies them on the bf16 tensor cores of any GPU since compute capability 8.0 (device code:
 * sm80/bf16.cu). It computes products that no faster kernel supports. gpu/bf16_product.h says how
 * bf16 numbers represent values. */
#include "cuda/host/generic.h"
#include "cuda/host/kernel.h"
#include "cuda/sm80/bf16_params.h"
#include "gpu/bf16_jobs.h"

enum { PLANE_BYTES = BSMM_BF16_TILE * BSMM_BF16_K * 2 };

/* Returns the bytes of shared memory of a kernel. A value of A or B is represented by one or
 * several bf16 numbers, and `parts` is their number for A plus their number for B. A plane is the
 * memory for one of these numbers of each value in a 128 x 32 tile of A or B. The main loop needs
 * two buffers of `parts` planes each (double buffering). The epilogue uses the same memory for the
 * 128 x 128 tile of D in fp32, which needs 8 planes, so this is the minimum. */
#define SHARED(parts) ((parts) < 4 ? 8 * PLANE_BYTES : 2 * (parts)*PLANE_BYTES)

static const bsmm_cuda_function functions[] = {
#define KERNEL(id, name, a, b, scaled) [BSMM_BF16_##id] = {"sm80/bf16", #name, SHARED((a) + (b))},
#include "gpu/bf16_kernels.def"
#undef KERNEL
};

const char *bsmm_cuda_generic_refuse(const bsmm_product *p, char *why, size_t size) {
    const char *reason = bsmm_cuda_refuse(p, &functions[0], why, size);
    if (reason) return reason;
    return bsmm_gpu_bf16_refuse(p, BSMM_BF16_TILE, why, size);
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* Returns the error bound of the generic GEMM, as a multiple of sum |a b| over K. The tensor cores
 * add 16 products and an accumulator at once. They truncate each of these 17 terms 23 bits below
 * the largest term. The bound for 16 elements of K is therefore 17 * 2^-23.
 *
 * The GEMM has several kernels (gpu/bf16_product.h). In 1X1, a value of A is one bf16 number, and
 * so is a value of B. There is no other error.
 *
 * In 1X3 and 3X1, a value of one operand is the sum of three bf16 numbers, which causes two more
 * errors. The value loses what remains after its third bf16 number, at most 2^-23 of the value. The
 * product of an element and its fp32 scale is rounded once (2^-23).
 *
 * In 3X3, values of both operands are three bf16 numbers. For each pair of values, six products of
 * these numbers are added to one accumulator.
 *
 * SCALED has one bf16 number for each value, like 1X1. It multiplies the sum of each step (32
 * elements of K) by fp32 scales. A step takes two additions of 16 products, one FMA, and the
 * rounding of a product of two scales. */
double bsmm_cuda_generic_bound(const bsmm_product *p) {
    double k = (double)p->a.m.cols;
    switch (bsmm_gpu_bf16_choose(p)) {
    case BSMM_BF16_1X1:
        return 2.2 * (k + 16) * 0x1p-24;
    case BSMM_BF16_SCALED:
        return (k / BSMM_BF16_K + 80) * 0x1p-24;
    case BSMM_BF16_3X3:
        return 13 * (k + 16) * 0x1p-24;
    default:
        return 2.3 * (k + 32) * 0x1p-24;
    }
}

bsmm_bf16_job bsmm_cuda_generic_job(const bsmm_product *p) {
    return bsmm_gpu_bf16_job_of(p, BSMM_BF16_TILE);
}

bsmm_status bsmm_cuda_generic_make(const bsmm_product *p, bool is_gated, bsmm_cuda_generic *made) {
    const bsmm_cuda_device *d = p->device;
    const bsmm_cuda_function *function = &functions[bsmm_gpu_bf16_choose(p)];
    made->job = bsmm_cuda_generic_job(p);
    /* A gate is a condition in device memory under which a kernel runs (sm80/gate.h). A kernel with
     * a gate is a fallback for the kernel that runs before it. Usually the earlier kernel has
     * computed the product, and the fallback only exits. The fallback therefore gets at most two
     * thread blocks for each SM, because a kernel with few thread blocks exits faster. */
    int64_t blocks =
        is_gated ? bsmm_min_i64(made->job.tiles, 2 * (int64_t)d->multiprocessors) : made->job.tiles;
    return bsmm_cuda_ready_make(d,
                                &(bsmm_cuda_launch_desc){
                                    .function = function,
                                    .grid = {(uint32_t)blocks},
                                    .block = {BSMM_BF16_THREADS},
                                    .shared_bytes = function->shared_bytes,
                                    /* A kernel with a gate waits for the end of the previous kernel
                                     * before it reads the gate's condition (sm80/gate.h), so the
                                     * launches may overlap. */
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
    bsmm_gpu_bf16_job_bind(p, &params.job);
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
    BSMM_CUDA_RETURN_INSIDE(p->device, bsmm_cuda_generic_run(p, state, NULL));
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
    /* One code path computes any number of rows, and no result depends on other rows of A. */
    .features = BSMM_FEATURE_INVARIANT,
};
