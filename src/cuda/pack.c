/* Queues packing kernels. */
#include "cuda/pack_plan.h"

static bsmm_status clear_header(const bsmm_cuda_device *device, bsmm_pack_header *header,
                                void *stream) {
    BSMM_TRY(bsmm_cuda_enter(device));
    CUresult result =
        device->driver->cuMemsetD8Async((uintptr_t)header, 0, BSMM_PACK_HEADER_BYTES, stream);
    bsmm_cuda_leave(device);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(result, "cuMemsetD8Async");
}

bsmm_status bsmm_pack_run(const bsmm_cuda_device *device, const bsmm_pack_launch *launch,
                          void *stream) {
    bsmm_pack_job job = launch->job;
    if (launch->grid[0] == 0 || launch->grid[1] == 0) return BSMM_OK;
    if (!launch->header_is_clear) BSMM_TRY(clear_header(device, job.header, stream));
    return bsmm_cuda_launch(device, &(bsmm_cuda_launch_desc){
                                        .function = launch->function,
                                        .grid = {launch->grid[0], launch->grid[1]},
                                        .block = {launch->block},
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
