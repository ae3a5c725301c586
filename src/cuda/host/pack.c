/* Queues packing kernels. */
#include "cuda/host/pack_plan.h"

enum { THREADS = 256 };

const bsmm_cuda_function bsmm_pack_clear_function = {.module = "sm80/pack_scales",
                                                     .name = "clear_words"};

bsmm_status bsmm_pack_clear(const bsmm_cuda_device *device, void *to, uint32_t bytes,
                            void *stream) {
    uint32_t *words = to, count = bytes / sizeof *words;
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = &bsmm_pack_clear_function,
                                        .block = {THREADS},
                                        .stream = stream,
                                        .arguments = BSMM_CUDA_ARGUMENTS(&words, &count),
                                    });
}

/* Whether the kernels wait by themselves for what is queued before them: those compiled for it. */
static bool may_overlap(const bsmm_cuda_device *device) {
    return device->capability == 90;
}

bsmm_status bsmm_pack_run(const bsmm_cuda_device *device, const bsmm_pack_launch *launch,
                          void *stream) {
    bsmm_pack_job job = launch->job;
    if (launch->grid[0] == 0 || launch->grid[1] == 0) return BSMM_OK;
    if (!launch->header_is_clear)
        BSMM_TRY(bsmm_pack_clear(device, job.header, sizeof *job.header, stream));
    bool behind_clearing = !launch->header_is_clear || launch->overlaps;
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = launch->function,
                                        .grid = {launch->grid[0], launch->grid[1]},
                                        .block = {launch->block},
                                        .overlap = behind_clearing && may_overlap(device),
                                        .stream = stream,
                                        .arguments = BSMM_CUDA_ARGUMENTS(&job),
                                    });
}

bsmm_status bsmm_pack_scales_run(const bsmm_cuda_device *device,
                                 const bsmm_pack_scales_launch *launch, void *stream) {
    bsmm_pack_scales_job job = launch->job;
    if (launch->grid[0] == 0 || launch->grid[1] == 0) return BSMM_OK;
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = launch->function,
                                        .grid = {launch->grid[0], launch->grid[1]},
                                        .block = {launch->block},
                                        .stream = stream,
                                        .arguments = BSMM_CUDA_ARGUMENTS(&job),
                                    });
}
