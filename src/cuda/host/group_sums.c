#include "cuda/host/group_sums.h"

#include "gpu/params.h"

static int64_t tiles_of(int64_t extent) {
    return bsmm_ceil_div(extent, BSMM_GROUP_SUMS_TILE);
}

static int64_t count_of(const bsmm_product *p) {
    return tiles_of(p->d.m.rows) * tiles_of(p->d.m.cols);
}

const char *bsmm_group_sums_refuse(const bsmm_product *p, char *why, size_t size) {
    return bsmm_gpu_refuse_tiles(p, BSMM_GROUP_SUMS_TILE, BSMM_GROUP_SUMS_TILE, INT32_MAX, why,
                                 size);
}

bsmm_group_sums_params bsmm_group_sums_params_of(const bsmm_product *p) {
    enum { BAND_ROWS = 2048 };
    return (bsmm_group_sums_params){
        .sides = {bsmm_gpu_operand_of(&p->a), bsmm_gpu_operand_of(&p->b)},
        .epilogue = bsmm_gpu_epilogue_of(p),
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .k = (uint32_t)p->a.m.cols,
        .k_blocks = (uint32_t)bsmm_ceil_div(p->a.m.cols, BSMM_GROUP_SUMS_K),
        .tiles = (uint32_t)count_of(p),
        .tiles_m = (uint32_t)tiles_of(p->d.m.rows),
        .tiles_n = (uint32_t)tiles_of(p->d.m.cols),
        .group_m = BAND_ROWS / BSMM_GROUP_SUMS_TILE,
        .scaled = {p->a.m.format.scale == BSMM_SCALE_F32, p->b.m.format.scale == BSMM_SCALE_F32},
        .a_parts = 1,
        .b_parts = 1,
    };
}

bsmm_status bsmm_group_sums_make(const bsmm_product *p, const bsmm_cuda_function *function,
                                 bsmm_cuda_ready *ready) {
    const bsmm_cuda_device *device = p->device;
    const int64_t blocks = bsmm_min_i64(count_of(p), device->multiprocessors);
    return bsmm_cuda_ready_make(device,
                                &(bsmm_cuda_launch_desc){
                                    .function = function,
                                    .grid = {(uint32_t)blocks},
                                    .block = {BSMM_GROUP_SUMS_THREADS},
                                    .shared_bytes = function->shared_bytes,
                                    .overlap = true,
                                },
                                ready);
}
