/* This is the host code for quantizing, dequantizing and copying scales to another layout on AMD
 * GPUs. It chooses the kernels and computes their parameters. */
#include "amdgpu/host/recode.h"

#include "amdgpu/cdna/recode.h"
#include "amdgpu/runtime/device.h"
#include "gpu/recode_jobs.h"

enum {
    THREADS = BSMM_RECODE_GROUP,
    /* WORKGROUPS is the largest number of workgroups per compute unit in the kernel that finds the
     * largest magnitude. */
    WORKGROUPS = 4
};

static bsmm_status clear(const bsmm_recode *job, void *to, uint64_t bytes) {
    const bsmm_hip_device *d = job->device;
    int before;
    BSMM_TRY(bsmm_hip_enter(d, &before));
    const hipError_t error = d->driver->hipMemsetAsync(to, 0, bytes, job->stream);
    bsmm_hip_leave(d, before);
    return error == hipSuccess ? BSMM_OK : bsmm_hip_fail(d->driver, error, "hipMemsetAsync");
}

/* Launches x times y workgroups of a kernel on the job's stream. */
static bsmm_status launch(const bsmm_recode *job, const bsmm_hip_function *function, int64_t x,
                          uint32_t y, void **arguments) {
    return bsmm_hip_launch(job->device, &(bsmm_hip_launch_desc){
                                            .function = function,
                                            .grid = {(uint32_t)x, y},
                                            .block = {THREADS},
                                            .stream = job->stream,
                                            .arguments = arguments,
                                        });
}

/* Returns the number of workgroups along y for a matrix of `lines` rows (or columns). With n
 * workgroups, workgroup i handles lines i, i + n, i + 2 n and so on. The kernels receive n as the
 * argument `step`. */
static uint32_t steps_of(int64_t lines) {
    return (uint32_t)bsmm_min_i64(lines, BSMM_RECODE_MOST_SLOW);
}

static bsmm_status queue_amax(const bsmm_recode *job, float *result) {
    static const bsmm_hip_function function = {.module = "cdna/recode", .name = "amax_lines"};
    const bsmm_hip_device *d = job->device;
    bsmm_amax_job amax = bsmm_amax_job_of(job, result);
    BSMM_TRY(clear(job, result, sizeof *result));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    const int64_t most = (int64_t)d->compute_units * WORKGROUPS;
    const int64_t x = bsmm_min_i64(bsmm_ceil_div((int64_t)amax.count, THREADS), most);
    uint64_t stride = (uint64_t)x * THREADS;
    uint32_t step = steps_of(bsmm_min_i64((int64_t)amax.lines, bsmm_ceil_div(most, x)));
    return launch(job, &function, x, step, BSMM_HIP_ARGUMENTS(&amax, &stride, &step));
}

bsmm_status bsmm_hip_amax(const bsmm_recode *job) {
    return queue_amax(job, job->result);
}

static bsmm_status clear_padding(const bsmm_recode *job) {
    return bsmm_recode_has_padding(job) ? clear(job, job->dst.m.scales, job->dst.scale_bytes)
                                        : BSMM_OK;
}

static const bsmm_hip_function quantize_any = {.module = "cdna/quantize", .name = "quantize_any"};

/* Holds the parameters of the kernel that quantizes a matrix. */
typedef struct quantizer {
    bsmm_quantize_job job;
    bsmm_quantize_units units;
} quantizer;
BSMM_CHECK_QUANTIZER(quantizer);

/* Fills the kernel's parameters for a job. If an address of the job is NULL, the parameters are for
 * aligned addresses. */
static bsmm_status prepare(const bsmm_recode *job, const float *amax, quantizer *to) {
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(bsmm_recode_check_elem(&job->dst, "dst"));
    to->job = bsmm_quantize_job_of(job, amax);
    to->units = bsmm_quantize_units_of(job, &to->job);
    return BSMM_OK;
}

static bsmm_status queue(const bsmm_recode *job, bsmm_quantize_units units, bsmm_quantize_job *q) {
    uint32_t step = steps_of(units.slow);
    BSMM_TRY(clear_padding(job));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    return launch(job, &quantize_any, bsmm_ceil_div(units.fast, THREADS), step,
                  BSMM_HIP_ARGUMENTS(q, &units.rows, &units.cols, &step));
}

bsmm_status bsmm_hip_make_quantizer(const bsmm_recode *job, void *to) {
    BSMM_TRY(prepare(job, NULL, to));
    return bsmm_hip_load(job->device, &quantize_any, NULL);
}

bsmm_status bsmm_hip_run_quantizer(const bsmm_recode *job, const void *from) {
    const quantizer *const prepared = from;
    bsmm_quantize_job q = prepared->job;
    if (!bsmm_quantize_job_bind(job, &q)) return bsmm_hip_quantize(job);
    return queue(job, prepared->units, &q);
}

static bsmm_status queue_level(const bsmm_recode *job, const bsmm_quantize_job *q) {
    static const bsmm_hip_function function = {.module = "cdna/recode", .name = "store_level"};
    bsmm_level_job level = bsmm_level_job_of(job, q);
    return bsmm_hip_launch(job->device, &(bsmm_hip_launch_desc){
                                            .function = &function,
                                            .block = {BSMM_HIP_WAVE},
                                            .stream = job->stream,
                                            .arguments = BSMM_HIP_ARGUMENTS(&level),
                                        });
}

/* Quantizes a tensor. A format with a second-level scale needs the tensor's largest magnitude
 * (amax) first. If the caller has not passed amax, the function queues a kernel that finds it. The
 * memory of the second-level scale holds amax until the values are converted. */
bsmm_status bsmm_hip_quantize(const bsmm_recode *job) {
    const float *amax = job->amax ? job->amax : job->dst.m.global_scale;
    quantizer made;
    BSMM_TRY(prepare(job, job->two_level ? amax : NULL, &made));
    if (job->two_level && !job->amax) BSMM_TRY(queue_amax(job, job->dst.m.global_scale));
    BSMM_TRY(queue(job, made.units, &made.job));
    return job->dst.m.global_scale && !job->given_level ? queue_level(job, &made.job) : BSMM_OK;
}

bsmm_status bsmm_hip_dequantize(const bsmm_recode *job) {
    static const bsmm_hip_function function = {.module = "cdna/dequantize",
                                               .name = "dequantize_any"};
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(bsmm_recode_check_elem(&job->src, "src"));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    bsmm_dequantize_job q = bsmm_dequantize_job_of(job);
    const bool rows = q.dst_lines.col_step == 1;
    uint32_t step = steps_of(rows ? q.rows : q.cols);
    return launch(job, &function, bsmm_ceil_div(rows ? q.cols : q.rows, THREADS), step,
                  BSMM_HIP_ARGUMENTS(&q, &step));
}

bsmm_status bsmm_hip_relayout(const bsmm_recode *job) {
    static const bsmm_hip_function function = {.module = "cdna/recode", .name = "move_scales"};
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(clear_padding(job));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    bsmm_relayout_job q = bsmm_relayout_job_of(job);
    uint32_t step = steps_of(q.rows);
    return launch(job, &function, bsmm_ceil_div(q.by_words ? q.cols / 4 : q.cols, THREADS), step,
                  BSMM_HIP_ARGUMENTS(&q, &step));
}

bsmm_status bsmm_hip_move_codes(const bsmm_recode *job) {
    static const bsmm_hip_function function = {.module = "cdna/recode", .name = "move_codes"};
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    bsmm_codes_job q = bsmm_codes_job_of(job);
    uint32_t step = steps_of(q.rows);
    return launch(job, &function, bsmm_ceil_div(q.cols, 8 * (int64_t)THREADS), step,
                  BSMM_HIP_ARGUMENTS(&q, &step));
}
