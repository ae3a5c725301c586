/* Makes the matrices and the plan of a product that bench measures. */
#include "data.h"
#include "device.h"
#include "measure.h"

/* Returns the scale layout that an operand with format `f` has in a measurement. In AMD's FP8
 * groupwise challenge it is column-major. On a GPU, fp32 scales of 1 x 128 blocks have the layout
 * cublas_vec128, so that bsmm and the peer library (a library for comparison) read the same
 * buffers. All other scales are row-major, as in checkpoints. */
static uint32_t layout_of(const bench_job *job, bsmm_format f) {
    if (job->challenge) return BSMM_LAYOUT_COL_MAJOR;
    bool rows = f.scale == BSMM_SCALE_F32 && f.block_rows == 1 && f.block_cols == 128;
    return rows && !bench_device_kind_of(job->device)->is_host ? BSMM_LAYOUT_CUBLAS_VEC128
                                                               : BSMM_LAYOUT_ROW_MAJOR;
}

static bsmm_status make_operand(const bench_job *job, uint64_t number, bsmm_matrix *matrix,
                                bsmm_matrix *wide) {
    const bsmm_format format = number ? job->b : job->a;
    const bench_operand_kind kind = {
        .order = job->challenge ? BSMM_ORDER_COL : BSMM_ORDER_ROW,
        .layout = layout_of(job, format),
        .seed = BENCH_FIRST_SEED + number,
        .quantized = job->quantized,
        .normal_scales = job->challenge,
    };
    return bench_operand_create(matrix, wide, format, job->sizes[number], job->sizes[2], &kind);
}

bsmm_status bench_matrices_create(const bench_job *job, bench_matrices *m) {
    bsmm_status status = make_operand(job, 0, &m->a, &m->a_wide);
    if (!status) status = make_operand(job, 1, &m->b, &m->b_wide);
    return status ? status : bench_matrix_create(&m->d, job->out, job->sizes[0], job->sizes[1]);
}

void bench_matrices_destroy(bench_matrices *m) {
    bsmm_matrix *const all[] = {&m->a, &m->b, &m->d, &m->a_wide, &m->b_wide};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bench_matrix_destroy(all[i]);
}

bsmm_matmul_desc bench_job_describe(const bench_job *job, const bench_matrices *m) {
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &m->a, desc.b = &m->b, desc.d = &m->d;
    desc.kernel = job->kernel;
    desc.device = job->device;
    desc.threads = (uint32_t)job->threads;
    desc.compute = job->fast ? BSMM_COMPUTE_FAST : BSMM_COMPUTE_EXACT;
    return desc;
}

bsmm_status bench_job_plan(const bench_job *job, const bench_matrices *m, bsmm_plan **plan,
                           uint64_t *packed_bytes) {
    bsmm_matmul_desc desc = bench_job_describe(job, m);
    desc.b_packed = job->form;
    bsmm_status status = bsmm_plan_create(&desc, plan);
    *packed_bytes = !status && job->pack_b ? bsmm_plan_packed_b_bytes(*plan) : 0;
    if (!*packed_bytes || desc.b_packed) return status;
    bsmm_plan_destroy(*plan);
    desc.b_packed = BSMM_PACKED_WIDE;
    return bsmm_plan_create(&desc, plan);
}
