/* Compares the typical error of the kernel that bench measures with that of its family (level.h).
 */
#include "bench_session.h"
#include "level.h"
#include "multiply.h"
#include <math.h>

static bool multiply(const bsmm_matmul_desc *desc, void *device) {
    cli_ran ran;
    return cli_multiply_on(device, desc, &ran);
}

/* Multiplies the operands of the job again, on a device of its own, because closing the device
 * frees its copies of them. */
static int compare(const bench_job *job, const bsmm_matrix *a, const bsmm_matrix *b,
                   bench_result *result) {
    bench_device *device = NULL;
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = a;
    desc.b = b;
    desc.device = job->device;
    desc.threads = (uint32_t)job->threads;
    desc.compute = job->fast ? BSMM_COMPUTE_FAST : BSMM_COMPUTE_EXACT;
    const bool done = cli_level_run(&desc, result->kernel, multiply, &device, &result->error_level);
    bench_device_close(device);
    return done && cli_level_passes(result->kernel, result->error_level) ? CLI_OK : CLI_FAILED;
}

int cli_bench_check_level(const bench_job *job, bench_result *result) {
    bsmm_matrix matrices[4] = {{0}};
    bsmm_status status = bench_job_operand(job, 0, &matrices[0], &matrices[1]);
    if (!status) status = bench_job_operand(job, 1, &matrices[2], &matrices[3]);
    const int exit_status =
        status ? cli_fail_library("check") : compare(job, &matrices[0], &matrices[2], result);
    for (int i = 0; i < 4; i++)
        bench_matrix_destroy(&matrices[i]);
    return exit_status;
}
