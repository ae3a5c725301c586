#include "multiply.h"
#include "common.h"
#include "samples.h"
#include <stdio.h>

/* Describes the copies of the operands in the memory of the device. */
typedef struct placed {
    bsmm_matrix a, b, c, d;
} placed;

static bool place(bench_device *device, const bsmm_matmul_desc *desc, placed *there) {
    return bench_device_put(device, desc->a, true, &there->a) &&
           bench_device_put(device, desc->b, true, &there->b) &&
           (!desc->c || bench_device_put(device, desc->c, true, &there->c)) &&
           bench_device_put(device, desc->d, false, &there->d);
}

static bsmm_buffers buffers_of(bench_device *device, const bsmm_matmul_desc *desc,
                               const placed *there) {
    bsmm_buffers buffers = BSMM_INIT(bsmm_buffers);
    buffers.a = there->a.data;
    buffers.a_scales = there->a.scales;
    buffers.a_global = there->a.global_scale;
    buffers.b = there->b.data;
    buffers.b_scales = there->b.scales;
    buffers.b_global = there->b.global_scale;
    buffers.c = desc->c ? there->c.data : NULL;
    buffers.d = there->d.data;
    buffers.stream = bench_device_stream(device);
    return buffers;
}

static bool device_failed(void) {
    cli_fail("%s", cli_option_message(bench_device_error()));
    return false;
}

static bool timed_run(bench_device *device, const bsmm_plan *plan, const bsmm_buffers *buffers,
                      cli_ran *ran) {
    const double started = bench_now();
    if (bsmm_plan_run(plan, buffers)) {
        cli_fail_library(NULL);
        return false;
    }
    const bool done = bench_device_wait(device);
    ran->seconds = bench_now() - started;
    return done || device_failed();
}

static bool run_plan(bench_device **device, const bsmm_matmul_desc *desc, const bsmm_plan *plan,
                     cli_ran *ran) {
    placed there;
    if (!*device) *device = bench_device_open(desc->device);
    if (!*device || !place(*device, desc, &there)) return device_failed();
    bsmm_buffers buffers = buffers_of(*device, desc, &there);
    buffers.workspace_bytes = bsmm_plan_workspace_bytes(plan);
    if (!bench_device_allocate(*device, buffers.workspace_bytes + 1, &buffers.workspace))
        return device_failed();
    snprintf(ran->kernel, sizeof ran->kernel, "%s", bsmm_plan_kernel(plan));
    return timed_run(*device, plan, &buffers, ran) &&
           (bench_device_get(*device, &there.d, desc->d) || device_failed());
}

/* The plan comes first, because its error message for a wrong device name is clearer than the
 * message of opening a device. */
bool cli_multiply_on(bench_device **device, const bsmm_matmul_desc *desc, cli_ran *ran) {
    bsmm_plan *plan = NULL;
    if (bsmm_plan_create(desc, &plan)) {
        cli_fail_library(NULL);
        return false;
    }
    const bool done = run_plan(device, desc, plan, ran);
    bsmm_plan_destroy(plan);
    return done;
}
