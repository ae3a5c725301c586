/* These functions load the packing kernels (gpu/pack.h) when a plan is made, and queue them when
 * the plan runs. */
#include "cuda/host/pack_plan.h"

enum { THREADS = 256 };

static const bsmm_cuda_function clear_words = {.module = "sm80/pack_scales", .name = "clear_words"};

static bsmm_status load(const bsmm_cuda_device *device, const bsmm_cuda_function *function,
                        const uint32_t grid[2], uint32_t block, bsmm_cuda_ready *ready) {
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){.function = function,
                                                         .grid = {grid[0], grid[1]},
                                                         .block = {block}},
                                ready);
}

bsmm_status bsmm_pack_clear_load(const bsmm_cuda_device *device, bsmm_cuda_ready *clear) {
    static const uint32_t one[2] = {1, 1};
    return load(device, &clear_words, one, THREADS, clear);
}

bsmm_status bsmm_pack_load(const bsmm_cuda_device *device, bsmm_pack_launch *launch) {
    BSMM_TRY(bsmm_pack_clear_load(device, &launch->clear));
    return load(device, launch->function, launch->grid, launch->block, &launch->ready);
}

bsmm_status bsmm_pack_scales_load(const bsmm_cuda_device *device, bsmm_pack_scales_launch *launch) {
    return load(device, launch->function, launch->grid, launch->block, &launch->ready);
}

bsmm_status bsmm_pack_half_load(const bsmm_cuda_device *device, bsmm_pack_half_launch *launch) {
    static const bsmm_cuda_function function = {.module = "sm80/pack_half", .name = "pack_half"};
    const uint32_t grid[2] = {launch->grid, 1};
    return load(device, &function, grid, THREADS, &launch->ready);
}

/* The functions from here on queue packing kernels each time a product is computed. */

bsmm_status bsmm_pack_clear(const bsmm_cuda_device *device, const bsmm_cuda_ready *clear, void *to,
                            uint32_t bytes, void *stream) {
    uint32_t *words = to, count = bytes / sizeof *words;
    return bsmm_cuda_ready_launch(device, clear, stream, BSMM_CUDA_ARGUMENTS(&words, &count));
}

/* Returns true if a launch of a packing kernel may overlap the previous kernel. The packing kernels
 * for compute capability 9.0 wait for the previous kernel themselves, by the instruction
 * griddepcontrol.wait. The packing kernels for other GPUs do not wait, so they must not overlap it.
 */
static bool may_overlap(const bsmm_cuda_device *device) {
    return device->capability == 90;
}

static bool is_empty(const uint32_t grid[2]) {
    return grid[0] == 0 || grid[1] == 0;
}

bsmm_status bsmm_pack_run(const bsmm_cuda_device *device, const bsmm_pack_launch *launch,
                          void *stream) {
    bsmm_pack_job job = launch->job;
    uint32_t *cleared = launch->cleared;
    bsmm_cuda_ready ready = launch->ready;
    if (is_empty(launch->grid)) return BSMM_OK;
    if (!launch->header_is_clear)
        BSMM_TRY(bsmm_pack_clear(device, &launch->clear, job.header, sizeof *job.header, stream));
    bool after_clearing = !launch->header_is_clear || launch->overlaps;
    ready.desc.overlap = after_clearing && may_overlap(device);
    /* Most packing kernels have only the first parameter. The driver ignores further arguments. */
    return bsmm_cuda_ready_launch(device, &ready, stream, BSMM_CUDA_ARGUMENTS(&job, &cleared));
}

bsmm_status bsmm_pack_scales_run(const bsmm_cuda_device *device,
                                 const bsmm_pack_scales_launch *launch, void *stream) {
    bsmm_pack_scales_job job = launch->job;
    if (is_empty(launch->grid)) return BSMM_OK;
    return bsmm_cuda_ready_launch(device, &launch->ready, stream, BSMM_CUDA_ARGUMENTS(&job));
}

bsmm_status bsmm_pack_half_run(const bsmm_cuda_device *device, const bsmm_pack_half_launch *launch,
                               void *stream) {
    bsmm_pack_half_job job = launch->job;
    if (job.quads == 0) return BSMM_OK;
    return bsmm_cuda_ready_launch(device, &launch->ready, stream, BSMM_CUDA_ARGUMENTS(&job));
}
