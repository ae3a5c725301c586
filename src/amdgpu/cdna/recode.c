/* These small kernels are steps of tensor conversions. They find the largest magnitude of a tensor
 * (amax), compute its second-level scale, copy scales to another layout, and copy elements to rows.
 */
#include "amdgpu/cdna/recode.h"
#include "gpu/recode_small.h"

/* Returns the maximum of `most` over all lanes of the wave. All lanes get the same result. */
BSMM_DEVICE uint32_t wave_most(uint32_t most) {
    for (int by = 1; by < BSMM_LANES; by *= 2) {
        const int from = 4 * ((int)bsmm_device_lane() ^ by);
        most = bsmm_max_u32(most, (uint32_t)__builtin_amdgcn_ds_bpermute(from, (int)most));
    }
    return most;
}

/* Computes the largest magnitude of a matrix. Workgroups divide the elements of each line (row or
 * column) among them and combine their results by atomic maxima. A maximum does not depend on the
 * order, so the result is deterministic. */
BSMM_KERNEL(BSMM_RECODE_GROUP) amax_lines(bsmm_amax_job job, uint64_t stride, uint32_t step) {
    uint32_t most = 0;
    for (uint64_t line = bsmm_group_y(); line < job.lines; line += step)
        for (uint64_t i = bsmm_recode_thread(); i < job.count; i += stride)
            most = bsmm_max_u32(most,
                                bsmm_amax_code(job.src_elem, job.src + line * job.line_bytes, i));
    most = wave_most(most);
    if (job.src_elem == BSMM_LANE_F16) most = bsmm_float_bits(bsmm_lane_f16(most >> 16));
    if (bsmm_device_lane() == 0 && most)
        __scoped_atomic_fetch_max((BSMM_GLOBAL uint32_t *)job.result, most, __ATOMIC_RELAXED,
                                  __MEMORY_SCOPE_DEVICE);
}

BSMM_KERNEL(64) store_level(bsmm_level_job job) {
    if (bsmm_thread() == 0) bsmm_level_store(&job);
}

/* Copies scales from one layout to another. Each thread copies one scale of each row, or four
 * neighbouring scales as a word. */
BSMM_KERNEL(BSMM_RECODE_GROUP) move_scales(bsmm_relayout_job job, uint32_t step) {
    const uint32_t index = (uint32_t)bsmm_recode_thread();
    const uint32_t column = job.by_words ? 4 * index : index;
    const bool word = job.by_words || job.wide;
    if (column >= job.cols) return;
    for (uint32_t row = bsmm_group_y(); row < job.rows; row += step)
        bsmm_move_store(&job, word, row, column, bsmm_move_load(&job, word, row, column));
}

/* Copies the elements of a matrix to row-major order. Each thread copies 8 elements of each row. */
BSMM_KERNEL(BSMM_RECODE_GROUP) move_codes(bsmm_codes_job job, uint32_t step) {
    for (uint32_t row = bsmm_group_y(); row < job.rows; row += step)
        bsmm_move_codes(&job, row, (uint32_t)bsmm_recode_thread());
}
