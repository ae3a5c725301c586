/* Compares the typical error of the kernel that bench measures with an earlier measurement for the
 * kernel's family. The typical error is the root mean square of the relative errors of results. A
 * family contains the kernels that add products in the same order (level.h). */
#include "bench_session.h"
#include "level.h"
#include "multiply.h"
#include <math.h>

static bool multiply(const bsmm_matmul_desc *desc, void *device) {
    cli_ran ran;
    return cli_multiply_on(device, desc, &ran);
}

/* Multiplies the operands of the job again on a device handle of its own. Closing this handle frees
 * the copies of the operands on the device. */
static int compare(const bench_job *job, const bench_matrices *m, bench_result *result) {
    bench_device *device = NULL;
    const bsmm_matmul_desc desc = bench_job_describe(job, m);
    const bool done = cli_level_run(&desc, result->kernel, multiply, &device, &result->error_level);
    bench_device_close(device);
    return done && cli_level_passes(result->kernel, result->error_level) ? CLI_OK : CLI_FAILED;
}

int cli_bench_check_level(const bench_job *job, bench_result *result) {
    bench_matrices m = {.a = {0}};
    const int status =
        bench_matrices_create(job, &m) ? cli_fail_library("check") : compare(job, &m, result);
    bench_matrices_destroy(&m);
    return status;
}
