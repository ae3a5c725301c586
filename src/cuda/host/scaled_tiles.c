#include "cuda/host/scaled_tiles.h"

#include "gpu/params.h"

static int64_t tiles_m(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return bsmm_ceil_div(p->d.m.rows, (int64_t)BSMM_SCALED_TILE_M * tile->ctas);
}

static int64_t tiles_n(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return bsmm_ceil_div(p->d.m.cols, tile->cols);
}

static int64_t count_of(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return tiles_m(p, tile) * tiles_n(p, tile);
}

/* Returns the number of groups of thread blocks that the device runs at once. The thread blocks of
 * a group, one or two, compute a tile together. */
static int64_t groups_of(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    const bsmm_cuda_device *device = p->device;
    return device->multiprocessors / (int)tile->ctas;
}

/* Returns an estimate of the cycles in which an SM multiplies 32 bytes of each row of A and of B in
 * a tile. The estimate is the larger of two times: that of the products and that of shared memory.
 * The rate of the products is the published peak of a B200: in one cycle, an SM multiplies 128 rows
 * of A by two rows of B, for 32 bytes of each row. Shared memory moves 128 bytes per cycle. TMA
 * writes each row to it, and the products read each row from it. No time was measured. */
static int64_t tile_cycles(const bsmm_scaled_tile *tile) {
    const int64_t products = tile->cols / 2,
                  moves = (BSMM_SCALED_TILE_M + tile->cols / tile->ctas) * 32 * 2 / 128;
    return products > moves ? products : moves;
}

/* Returns an estimate of the cycles of the whole product: the number of tiles that one group (one
 * or two thread blocks) computes, times the cycles of a tile. A factor for the length of K is left
 * out, because it is the same for all tile sizes. */
static int64_t cycles_of(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return bsmm_ceil_div(count_of(p, tile), groups_of(p, tile)) * tile_cycles(tile);
}

/* Returns the tile size with the fewest estimated cycles. A tile for a pair of thread blocks is
 * allowed only if the device has two SMs for each pair and A has more than 128 rows. */
const bsmm_scaled_tile *bsmm_scaled_tile_choose(const bsmm_product *p,
                                                const bsmm_scaled_tile *tiles, size_t count) {
    const bsmm_cuda_device *device = p->device;
    const bool pairs = device->multiprocessors > 1 && p->d.m.rows > BSMM_SCALED_TILE_M;
    const bsmm_scaled_tile *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if ((tiles[i].ctas > 1 && !pairs) || count_of(p, &tiles[i]) > INT32_MAX) continue;
        if (!best || cycles_of(p, &tiles[i]) < cycles_of(p, best)) best = &tiles[i];
    }
    return best;
}

const char *bsmm_scaled_tile_refuse(const bsmm_product *p, char *why, size_t size) {
    return bsmm_reason(why, size, "D is %lld x %lld; the kernel takes at most %d tiles",
                       (long long)p->d.m.rows, (long long)p->d.m.cols, INT32_MAX);
}

void bsmm_scaled_tile_set(const bsmm_product *p, const bsmm_scaled_tile *tile,
                          bsmm_scaled_params *params) {
    const int64_t down = tiles_m(p, tile), across = tiles_n(p, tile);
    enum { BAND_ROWS = 2048 };
    *params = (bsmm_scaled_params){
        .sides = {bsmm_gpu_operand_of(&p->a), bsmm_gpu_operand_of(&p->b)},
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .tiles = (uint32_t)(down * across),
        .tiles_m = (uint32_t)down,
        .tiles_n = (uint32_t)across,
        .tile_n = tile->cols,
        .group_m = BAND_ROWS / (BSMM_SCALED_TILE_M * tile->ctas),
        .parts = 1,
    };
}

bsmm_status bsmm_scaled_tile_make(const bsmm_product *p, const bsmm_scaled_tile *tile,
                                  const bsmm_cuda_function *function, uint32_t threads,
                                  bsmm_cuda_ready *ready) {
    const int64_t groups = bsmm_min_i64(count_of(p, tile), groups_of(p, tile));
    return bsmm_cuda_ready_make(p->device,
                                &(bsmm_cuda_launch_desc){
                                    .function = function,
                                    .grid = {(uint32_t)groups * tile->ctas},
                                    .block = {threads},
                                    .cluster = {tile->ctas > 1 ? tile->ctas : 0},
                                    .shared_bytes = function->shared_bytes,
                                    .overlap = true,
                                },
                                ready);
}

/* TMA requires that D's rows are multiples of 16 bytes apart. D's
 * rows must also be multiples of 16 bytes long. On an H100, a TMA store of other rows has written
 * bytes after the last column (docs/notes/hopper-large.md). */
bsmm_scaled_store bsmm_scaled_store_of(const bsmm_product *p) {
    static const struct {
        uint32_t elem, bytes;
        bsmm_scaled_store store;
    } rows[] = {{BSMM_ELEM_F32, 4, BSMM_SCALED_STORE_F32},
                {BSMM_ELEM_BF16, 2, BSMM_SCALED_STORE_BF16},
                {BSMM_ELEM_F16, 2, BSMM_SCALED_STORE_F16},
                {BSMM_ELEM_E4M3, 1, BSMM_SCALED_STORE_E4M3},
                {BSMM_ELEM_E5M2, 1, BSMM_SCALED_STORE_E5M2}};
    for (size_t i = 0; i < BSMM_COUNT(rows) && p->d.m.order == BSMM_ORDER_ROW; i++)
        if (p->d.m.format.elem == rows[i].elem &&
            (p->d.m.ld | p->d.m.cols) * rows[i].bytes % 16 == 0)
            return rows[i].store;
    return BSMM_SCALED_STORE_ANY;
}

/* A warp stores 32 rows by 32 columns of D at a time. A row of its staging buffer has 32, 64 or 128
 * bytes, and TMA's swizzle has the same width. */
void bsmm_scaled_result_map(const bsmm_product *p, uint32_t store, bsmm_cuda_ready_map *map) {
    static const struct {
        uint32_t bytes;
        int type, swizzle;
    } forms[] = {
        [BSMM_SCALED_STORE_F32] = {4, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_SWIZZLE_128B},
        [BSMM_SCALED_STORE_BF16] = {2, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_64B},
        [BSMM_SCALED_STORE_F16] = {2, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_64B},
        [BSMM_SCALED_STORE_E4M3] = {1, CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_SWIZZLE_32B},
        [BSMM_SCALED_STORE_E5M2] = {1, CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_SWIZZLE_32B},
    };
    if (store == BSMM_SCALED_STORE_ANY) return;
    bsmm_cuda_ready_map_make(p->device,
                             &(bsmm_cuda_tensor_desc){
                                 .type = forms[store].type,
                                 .swizzle = forms[store].swizzle,
                                 .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                 .rank = 2,
                                 .extents = {(uint64_t)p->d.m.cols, (uint64_t)p->d.m.rows},
                                 .strides = {(uint64_t)p->d.m.ld * forms[store].bytes},
                                 .box = {BSMM_SCALED_CHUNK, 32},
                             },
                             map);
}
