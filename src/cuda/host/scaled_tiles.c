#include "cuda/host/scaled_tiles.h"

#include "cuda/host/clusters.h"
#include "cuda/host/wgmma.h"
#include "gpu/params.h"
#include <stdio.h>
#include <stdlib.h>

static int64_t tiles_m(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return bsmm_ceil_div(p->d.m.rows, (int64_t)BSMM_SCALED_TILE_M * tile->ctas);
}

static int64_t tiles_n(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return bsmm_ceil_div(p->d.m.cols, tile->cols);
}

static int64_t count_of(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return tiles_m(p, tile) * tiles_n(p, tile);
}

/* A group is one thread block or a pair of them, which computes a tile. A thread block occupies a
 * whole SM. Returns the number of groups that the device runs at once. */
static int64_t groups_of(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    const bsmm_cuda_device *device = p->device;
    return device->multiprocessors / (int)tile->ctas;
}

/* Estimates the cycles in which an SM of a B200 multiplies 32 bytes of each row of A and of B in a
 * tile. No time was measured. The estimate is the larger of two times. The first is that of the
 * products: by the published peak, an SM multiplies 128 rows of A by two rows of B in one cycle,
 * for 32 bytes of each row. The second is that of shared memory, which moves 128 bytes per cycle:
 * TMA writes each row to it, and the products read each row from it. */
static int64_t tile_cycles(const bsmm_scaled_tile *tile) {
    const int64_t products = tile->cols / 2,
                  moves = (BSMM_SCALED_TILE_M + tile->cols / tile->ctas) * 32 * 2 / 128;
    return products > moves ? products : moves;
}

/* Returns an estimate of the cycles of a product without split-K, by which tile sizes are compared.
 * It is the number of tiles that one group (one or two thread blocks) computes, times the cycles of
 * a tile. All numbers leave out the same factor, the length of K, so they are not real cycles. */
static int64_t cycles_of(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    return bsmm_ceil_div(count_of(p, tile), groups_of(p, tile)) * tile_cycles(tile);
}

/* A tile for a pair of thread blocks is allowed only if the device has two SMs for each pair and A
 * has more than 128 rows. */
static bool is_allowed(const bsmm_product *p, const bsmm_scaled_tile *tile) {
    const bsmm_cuda_device *device = p->device;
    const bool pairs = device->multiprocessors > 1 && p->d.m.rows > BSMM_SCALED_TILE_M;
    return (tile->ctas == 1 || pairs) && count_of(p, tile) <= INT32_MAX;
}

enum {
    /* MEMORY_BYTES_OF_CYCLE is the number of bytes that device memory moves in a cycle of the SMs:
     * 7.2 TB/s at 1850 MHz on a B200. */
    MEMORY_BYTES_OF_CYCLE = 3890,
    /* These are constants of the time model by which the host chooses a tile, in cycles. None was
     * measured on a GPU. A thread block stores its rows of a tile in chunks of 32 columns, which
     * take STORE_CYCLES each. With split-K, the groups that divide K also need JOIN_CYCLES to wait
     * for each other, and CHUNK_JOIN_CYCLES for each chunk of the tile to write and add their sums.
     * A fit to 35 launches in the simulator's time model of a B200 gave lower numbers
     * (docs/notes/blackwell.md). The numbers here are larger, so that K is not split if the gain is
     * doubtful. */
    STORE_CYCLES = 700,
    JOIN_CYCLES = 400,
    CHUNK_JOIN_CYCLES = 300,
    /* MOST_BLOCKS is the largest number of thread blocks of a cluster that every GPU accepts. All
     * thread blocks that compute a tile form a cluster. */
    MOST_BLOCKS = 8,
};

/* Returns the number of cycles in which device memory delivers A and B. */
static double memory_cycles(const bsmm_product *p) {
    const double row_bits = (double)p->d.m.rows * bsmm_elem_row(p->a.m.format.elem)->bits,
                 col_bits = (double)p->d.m.cols * bsmm_elem_row(p->b.m.format.elem)->bits;
    return (row_bits + col_bits) * (double)p->a.m.cols / 8 / MEMORY_BYTES_OF_CYCLE;
}

/* Returns true if the clusters of all tiles run at the same time if `parts` groups (a group is a
 * thread block or a pair) divide the K of each tile among them. */
static bool runs_at_once(const bsmm_product *p, const bsmm_scaled_tile *tile, int64_t parts) {
    const bsmm_cuda_device *device = p->device;
    const int64_t blocks = tile->ctas * parts;
    return blocks <= MOST_BLOCKS && blocks * count_of(p, tile) <= device->multiprocessors &&
           count_of(p, tile) <= bsmm_cuda_clusters_at_once(device, (uint32_t)blocks);
}

/* A group is a thread block, or a pair of thread blocks that compute a tile together. Returns the
 * largest number of groups that can divide the K of a tile among them (split-K), or 1 if K cannot
 * be divided. Three conditions limit the number:
 * - All groups of all tiles run at the same time.
 * - Each group multiplies at least one k block.
 * - Each group stores at least one chunk of the tile's columns.
 * The K of a batch-invariant product is not divided, because the number of groups would depend on
 * the number of rows of A. */
static int64_t most_parts(const bsmm_product *p, const bsmm_scaled_tile *tile, int64_t k_blocks) {
    int64_t most = 1;
    if (p->invariant || count_of(p, tile) == 0) return 1;
    while (most < k_blocks && most < tile->cols / BSMM_SCALED_CHUNK &&
           runs_at_once(p, tile, most + 1))
        most++;
    return most;
}

/* Returns the parameters of bsmm_wgmma_split_cycles, which estimates the cycles of a product with
 * split-K. The kernels for Hopper use the same estimate. The field `most` is the largest number of
 * parts into which K can be divided so that the groups of thread blocks of all tiles still run at
 * the same time. */
static bsmm_wgmma_split split_of(const bsmm_product *p, const bsmm_scaled_tile *tile,
                                 int64_t k_blocks) {
    enum { STEPS = BSMM_SCALED_ROW_BYTES / 32 };
    const int64_t chunks = tile->cols / BSMM_SCALED_CHUNK;
    return (bsmm_wgmma_split){
        .most = most_parts(p, tile, k_blocks),
        .blocks = k_blocks,
        .block_cycles = (double)(STEPS * tile_cycles(tile)),
        .least_cycles = memory_cycles(p),
        .stores = chunks,
        .store_cycles = STORE_CYCLES,
        .join_cycles = (double)(JOIN_CYCLES + chunks * CHUNK_JOIN_CYCLES),
    };
}

/* Decides whether to divide K. The chosen tile size is the best one without split-K. K is divided,
 * possibly with another tile size, if this takes fewer estimated cycles. It is never divided if D
 * has more tiles of the chosen size than the GPU runs at once, because most SMs have work then. */
static void divide_k(const bsmm_product *p, const bsmm_scaled_tile *tiles, size_t count,
                     int64_t k_blocks, bsmm_scaled_deal *deal) {
    if (count_of(p, deal->tile) > groups_of(p, deal->tile)) return;
    const bsmm_wgmma_split whole = split_of(p, deal->tile, k_blocks);
    double least = bsmm_wgmma_split_cycles(&whole, 1);
    for (size_t i = 0; i < count; i++) {
        const bsmm_wgmma_split split = split_of(p, &tiles[i], k_blocks);
        if (!is_allowed(p, &tiles[i]) || split.most < 2) continue;
        const int64_t parts = bsmm_wgmma_choose_splits(&split);
        const double cycles = bsmm_wgmma_split_cycles(&split, parts);
        if (parts > 1 && cycles < least)
            *deal = (bsmm_scaled_deal){&tiles[i], (uint32_t)parts}, least = cycles;
    }
}

bsmm_scaled_deal bsmm_scaled_tile_choose(const bsmm_product *p, const bsmm_scaled_tile *tiles,
                                         size_t count, int64_t k_blocks) {
    bsmm_scaled_deal best = {NULL, 1};
    for (size_t i = 0; i < count; i++)
        if (is_allowed(p, &tiles[i]) &&
            (!best.tile || cycles_of(p, &tiles[i]) < cycles_of(p, best.tile)))
            best.tile = &tiles[i];
    if (best.tile && k_blocks > 1) divide_k(p, tiles, count, k_blocks, &best);
    return best;
}

const char *bsmm_scaled_tile_refuse(const bsmm_product *p, char *why, size_t size) {
    return bsmm_reason(why, size, "D is %lld x %lld; the kernel takes at most %d tiles",
                       (long long)p->d.m.rows, (long long)p->d.m.cols, INT32_MAX);
}

void bsmm_scaled_tile_set(const bsmm_product *p, const bsmm_scaled_deal *deal,
                          bsmm_scaled_params *params) {
    const bsmm_scaled_tile *tile = deal->tile;
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
        .parts = deal->parts,
    };
}

bsmm_status bsmm_scaled_tile_make(const bsmm_product *p, const bsmm_scaled_deal *deal,
                                  const bsmm_scaled_kernel *kernels, bsmm_cuda_ready *ready) {
    const bsmm_scaled_kernel *kernel =
        &kernels[deal->tile->ctas == 2 ? BSMM_SCALED_PAIR : BSMM_SCALED_SINGLE];
    const uint32_t blocks = deal->tile->ctas * deal->parts;
    const int64_t groups =
        bsmm_min_i64(count_of(p, deal->tile) * deal->parts, groups_of(p, deal->tile));
    return bsmm_cuda_ready_make(p->device,
                                &(bsmm_cuda_launch_desc){
                                    .function = &kernel->function,
                                    .grid = {(uint32_t)groups * deal->tile->ctas},
                                    .block = {kernel->threads},
                                    .cluster = {blocks > 1 ? blocks : 0},
                                    .shared_bytes = kernel->function.shared_bytes,
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
