#include "cuda/host/wgmma.h"

#include "cuda/host/generic.h"
#include "cuda/sm90a/gemm_tile.h"
#include "gpu/bf16_jobs.h"

#include <math.h>
#include <stdatomic.h>

/* Describes one tile shape of the sm_90a GEMM kernels, from one entry of sm90a/tiles.def. The last
 * two fields, block_cycles and tile_cycles, are constants of the time model, which the comment at
 * the beginning of tiles.def explains. */
struct bsmm_wgmma_tile {
    bsmm_cuda_function function;
    uint32_t kind, a_elem, b_elem;
    uint32_t tile_m, tile_n, cluster_m, cluster_n, consumers;
    double block_cycles, tile_cycles;
};

#define COLUMNS(...)
#define TILE(name, kind_, a, b, n, consumers_, partials, cm, cn, stages, chunks, early, short_,    \
             ping_pong, block, tile)                                                               \
    {.function = {"sm90a/" #name, #name,                                                           \
                  GEMM_SHARED_BYTES(GEMM_SCALES_OF_##kind_, GEMM_TILE_M(consumers_), n, stages,    \
                                    (consumers_) * (chunks))},                                     \
     .kind = BSMM_WGMMA_##kind_,                                                                   \
     .a_elem = BSMM_ELEM_##a,                                                                      \
     .b_elem = BSMM_ELEM_##b,                                                                      \
     .tile_m = GEMM_TILE_M(consumers_),                                                            \
     .tile_n = n,                                                                                  \
     .cluster_m = cm,                                                                              \
     .cluster_n = cn,                                                                              \
     .consumers = consumers_,                                                                      \
     .block_cycles = block,                                                                        \
     .tile_cycles = tile},

static const bsmm_wgmma_tile tiles[] = {
#include "cuda/sm90a/tiles.def"
};

/* Returns the number of threads of a thread block. A kernel of the kind POW2 (8-bit elements with 1
 * x 128 scales that are powers of two) has as many threads as the generic GEMM, because it runs the
 * generic GEMM's code if neither 8-bit floats nor bf16 can hold the values of A and B. */
static uint32_t threads_of(const bsmm_wgmma_tile *t) {
    return t->kind == BSMM_WGMMA_POW2 ? BSMM_BF16_THREADS : 128 * (1 + t->consumers);
}

uint32_t bsmm_wgmma_parts(const bsmm_product *p, const bsmm_operand *o) {
    if (p->has_c || o->m.format.scale != BSMM_SCALE_NONE) return 1;
    return o->m.format.elem == BSMM_ELEM_F32 ? 3 : o->m.format.elem == BSMM_ELEM_F16 ? 2 : 1;
}

static bool is_wide(uint32_t elem) {
    return elem == BSMM_ELEM_BF16 || elem == BSMM_ELEM_F16;
}

/* Returns the number of k blocks of the product. A k block is the part of K that a kernel
 * multiplies in one stage, i.e. 128 bytes along K. If A or B is split into bf16 parts (each element
 * is the sum of 2 or 3 bf16 numbers), each pair of a part of A and a part of B has its own k
 * blocks. */
static int64_t k_blocks(const bsmm_product *p, const bsmm_wgmma_tile *t) {
    if (t->a_elem == BSMM_ELEM_F16) return bsmm_ceil_div(p->a.m.cols, 64);
    if (t->a_elem != BSMM_ELEM_BF16) return bsmm_ceil_div(p->a.m.cols, 128);
    return bsmm_ceil_div(p->a.m.cols, BSMM_PACK_PART_COLS) * bsmm_wgmma_parts(p, &p->a) *
           bsmm_wgmma_parts(p, &p->b);
}

enum { FEWEST_BLOCKS_TO_SPLIT = 8, FEWEST_BLOCKS_OF_PART = 4 };

/* These constants predict the time of tiles of all shapes. They were fitted to measured times of an
 * H200 (docs/notes/hopper-large.md, "The time model"). TMA copies operand tiles row by row. It does
 * not read rows past the end of A from memory, but copying such a row still costs an SM more cycles
 * than copying a row of A. */
static const double
    /* MEMORY_BYTES_OF_CYCLE is the number of bytes that device memory moves in a cycle of the
     * SMs. */
    MEMORY_BYTES_OF_CYCLE = 3700,
    /* The predicted time is the longer one of two times, computing and reading memory, plus OVERLAP
     * times the shorter one. */
    OVERLAP = 0.125,
    /* COPY_CYCLES_OF_ROW is the number of cycles that an SM takes to issue the TMA copy of 128
     * bytes of a row. COPY_CYCLES_PAST_END is this number for a row past the end of A. */
    COPY_CYCLES_OF_ROW = 1.8, COPY_CYCLES_PAST_END = 5.3,
    /* ALL_SPLIT is the fraction by which computing takes longer if all tiles are split along K. */
    ALL_SPLIT = 0.22,
    /* FLAG_CYCLES is the number of additional cycles of a GEMM that is split along K. Thread blocks
     * spend them to wait for the accumulators of other parts. */
    FLAG_CYCLES = 2100,
    /* CYCLES_OF_RESULT is for tiles whose K is divided among clusters. A cluster then passes its
     * accumulators of the tile on to another cluster. CYCLES_OF_RESULT is the number of cycles that
     * this takes for each accumulator. */
    CYCLES_OF_RESULT = 0.1,
    /* LAST_CYCLES_OF_RESULT is the number of additional cycles for each accumulator of a tile if
     * the last tiles are split (split_last). It is for FP8 kernels with 128 x 128 scales of B whose
     * tiles are larger than 128 x 128, or as large but without a cluster. Times of kernels for bf16
     * or with smaller tiles show no such cost. */
    LAST_CYCLES_OF_RESULT = 0.35;

/* Returns the number of cycles that device memory needs to move A, B and D. */
static double memory_cycles(const bsmm_product *p, const bsmm_wgmma_tile *t) {
    const double rows = (double)p->d.m.rows, cols = (double)p->d.m.cols;
    return ((rows + cols) * (double)k_blocks(p, t) * GEMM_K_BYTES + rows * cols * 2) /
           MEMORY_BYTES_OF_CYCLE;
}

/* Returns the estimated cycles that a thread block takes for a k block (the elements of K in one
 * stage). It is the longer one of two times that overlap: multiplying the k block, and issuing the
 * copies of its rows of A and B. */
static double block_cycles(const bsmm_product *p, const bsmm_wgmma_tile *t) {
    const int64_t m = p->d.m.rows, padded = bsmm_round_up(m, (int64_t)t->tile_m * t->cluster_m);
    const int64_t past = bsmm_min_i64(padded - m, t->tile_m);
    const double rows =
        (double)(t->tile_m - past) * COPY_CYCLES_OF_ROW + (double)past * COPY_CYCLES_PAST_END;
    return fmax(t->block_cycles,
                rows / t->cluster_n + t->tile_n * COPY_CYCLES_OF_ROW / t->cluster_m);
}

/* Returns the predicted number of cycles of work that needs `computing` cycles for computing and
 * `reading` cycles for reading memory. Computing and reading mostly overlap. The prediction is
 * therefore the longer of the two, plus a fraction of the shorter one. */
static double together(double computing, double reading) {
    return fmax(computing, reading) + OVERLAP * fmin(computing, reading);
}

/* Splits K of every tile into the same number of equal parts, if there are so few tiles that each
 * part can have a cluster of its own. This is one of two kinds of split-K. Here, the kernel adds
 * the accumulators of the parts at the end, so the number of parts influences the bits of the
 * results. In the other kind (split_last), a cluster continues with the accumulators of the cluster
 * before it, so the bits are those without a split. */
static void split_all(const bsmm_product *p, const bsmm_wgmma_tile *t, int64_t room,
                      bsmm_wgmma_deal *d) {
    const int64_t all = d->tiles_m * d->tiles_n, blocks = k_blocks(p, t);
    if (all == 0 || room * blocks > INT32_MAX) return;
    const bsmm_wgmma_split split = {
        .most = bsmm_min_i64(room / all, blocks / FEWEST_BLOCKS_OF_PART),
        .blocks = blocks,
        .block_cycles = block_cycles(p, t),
        .least_cycles = memory_cycles(p, t),
        .fixed_cycles = t->tile_cycles,
        .join_cycles = FLAG_CYCLES,
        .part_cycles = (double)t->tile_m * t->tile_n * CYCLES_OF_RESULT,
    };
    d->splits = bsmm_wgmma_choose_splits(&split);
    if (d->splits < 2) return;
    d->whole = 0;
    d->cycles = bsmm_wgmma_split_cycles(&split, d->splits);
    if (t->kind != BSMM_WGMMA_POW2) d->clusters = all * d->splits;
}

/* Returns true if passing on accumulators of the last tiles costs LAST_CYCLES_OF_RESULT. */
static bool is_slow_if_last_split(const bsmm_wgmma_tile *t) {
    const uint32_t results = t->tile_m * t->tile_n, clustered = t->cluster_m * t->cluster_n > 1;
    return t->kind == BSMM_WGMMA_BLOCK && !is_wide(t->a_elem) && results >= 128 * 128 + clustered;
}

/* A wave is the tiles that all clusters compute at the same time, one each. If the last wave is
 * incomplete, some clusters have no tile in it. The function then splits the tiles of the last two
 * waves along K over all clusters (split-K), if that is predicted to take less time. Each cluster
 * computes its whole tiles and an equal share of the k blocks of the split tiles, which is as much
 * work as one to two tiles. */
static void split_last(const bsmm_product *p, const bsmm_wgmma_tile *t, int64_t room,
                       bsmm_wgmma_deal *d) {
    const int64_t all = d->tiles_m * d->tiles_n, blocks = k_blocks(p, t);
    if (all <= room || all % room == 0 || blocks < FEWEST_BLOCKS_TO_SPLIT) return;
    const int64_t waves = all / room - 1, whole = waves * room;
    const double computing = (double)(all * blocks) / (double)room * block_cycles(p, t);
    double split = together(computing, memory_cycles(p, t)) + (double)(waves + 2) * t->tile_cycles;
    if (is_slow_if_last_split(t)) split += (double)t->tile_m * t->tile_n * LAST_CYCLES_OF_RESULT;
    if (whole == 0) split += ALL_SPLIT * computing;
    if (split >= d->cycles || (all - whole) * blocks > INT32_MAX) return;
    d->whole = whole;
    d->cycles = split;
}

bsmm_wgmma_deal bsmm_wgmma_deal_of(const bsmm_product *p, const bsmm_wgmma_tile *t) {
    const bsmm_cuda_device *device = p->device;
    bsmm_wgmma_deal d;
    d.tiles_m = bsmm_ceil_div(p->d.m.rows, (int64_t)t->tile_m * t->cluster_m);
    d.tiles_n = bsmm_ceil_div(p->d.m.cols, (int64_t)t->tile_n * t->cluster_n);
    int64_t all = d.tiles_m * d.tiles_n;
    int64_t room = device->multiprocessors / (int)(t->cluster_m * t->cluster_n);
    /* `room` is the number of clusters that run at once. It is 0 if the device has fewer SMs than a
     * cluster has thread blocks. The later launch then fails with an error, but the estimate must
     * not divide by 0 before that, so `room` becomes 1. */
    if (room == 0) room = 1;
    /* Kernels of other kinds launch at most one cluster per tile. A kernel of the kind POW2 (8-bit
     * elements with 1 x 128 scales that are powers of two) always launches as many clusters as fit
     * on the device, because it may have to do other work. If 8-bit floats cannot hold the values
     * of A and B, its thread blocks pack A and B to bf16. If bf16 cannot hold the values either,
     * they run the code of the generic GEMM. */
    bool few = all < room && t->kind != BSMM_WGMMA_POW2;
    d.clusters = !few ? room : all == 0 ? 1 : all;
    d.whole = all;
    d.splits = 1;
    const double waves = (double)bsmm_ceil_div(all, d.clusters);
    d.cycles = together(waves * (double)k_blocks(p, t) * block_cycles(p, t), memory_cycles(p, t)) +
               waves * t->tile_cycles;
    split_all(p, t, room, &d);
    split_last(p, t, room, &d);
    return d;
}

double bsmm_wgmma_split_cycles(const bsmm_wgmma_split *split, int64_t splits) {
    const double computing = (double)bsmm_ceil_div(split->blocks, splits) * split->block_cycles;
    const double storing = (double)bsmm_ceil_div(split->stores, splits) * split->store_cycles,
                 whole = together(computing, split->least_cycles) + split->fixed_cycles + storing;
    return splits == 1 ? whole : whole + split->join_cycles + (double)splits * split->part_cycles;
}

const bsmm_wgmma_tile *bsmm_wgmma_tile_at(size_t index) {
    return index < BSMM_COUNT(tiles) ? &tiles[index] : NULL;
}

bool bsmm_wgmma_tile_takes(const bsmm_wgmma_tile *t, bsmm_wgmma_kind kind, uint32_t a_elem,
                           uint32_t b_elem) {
    return t->kind == kind && t->a_elem == a_elem && t->b_elem == b_elem;
}

double bsmm_wgmma_tile_cycles(const bsmm_product *p, const bsmm_wgmma_tile *t) {
    return p->device ? bsmm_wgmma_deal_of(p, t).cycles : 0;
}

const bsmm_cuda_function *bsmm_wgmma_function(const bsmm_wgmma_tile *tile) {
    return &tile->function;
}

static uint64_t flag_bytes(const bsmm_cuda_device *device, const bsmm_wgmma_tile *t) {
    return (uint64_t)bsmm_round_up(
        (int64_t)((uint64_t)device->multiprocessors * t->consumers * sizeof(uint64_t)), 256);
}

uint64_t bsmm_wgmma_engine_bytes(const bsmm_product *p, const bsmm_wgmma_tile *t) {
    const bsmm_cuda_device *device = p->device;
    return flag_bytes(device, t) +
           (uint64_t)device->multiprocessors * t->tile_m * (t->tile_n + 4) * sizeof(float);
}

/* Returns a number that no other launch has. A warpgroup stores this number in a flag in the
 * workspace when it has stored its accumulators for another cluster. Before the launch, the flags
 * hold arbitrary values, for example numbers of earlier launches. Because the number is new, none
 * of these values counts as a set flag. The number is a counter whose bits are mixed by splitmix64
 * (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). A CUDA graph repeats
 * a launch with the same number, so the kernel also clears the flags that it has read. */
static uint64_t new_ticket(void) {
    static _Atomic uint64_t count;
    uint64_t x = (atomic_fetch_add(&count, 1) + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static void map_elements(const bsmm_product *p, const bsmm_wgmma_form *form, int64_t rows,
                         uint32_t box_rows, bsmm_cuda_ready_map *map) {
    bool wide = is_wide(form->elem);
    int64_t cols = p->a.m.cols;
    if (form->parts > 1) cols = form->parts * bsmm_round_up(cols, BSMM_PACK_PART_COLS);
    bsmm_cuda_ready_map_make(
        p->device,
        &(bsmm_cuda_tensor_desc){
            .type = wide ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8,
            .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
            .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            .rank = 2,
            .extents = {(uint64_t)cols, (uint64_t)rows},
            .strides = {form->pitch},
            .box = {wide ? 64 : 128, box_rows},
        },
        map);
}

static void map_scales(const bsmm_product *p, const bsmm_wgmma_form *form, int64_t rows,
                       uint32_t box_rows, bsmm_cuda_ready_map *map) {
    if (!form->rows_pitch) return;
    bsmm_cuda_ready_map_make(
        p->device,
        &(bsmm_cuda_tensor_desc){
            .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
            .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            .rank = 2,
            .extents = {(uint64_t)rows,
                        form->is_row_wide ? 1 : (uint64_t)bsmm_ceil_div(p->a.m.cols, 128)},
            .strides = {form->rows_pitch * sizeof(float)},
            .box = {box_rows, 1},
        },
        map);
}

/* Returns true if D's description allows a fast path of the epilogue: D is row-major, and there is
 * neither C nor bias. A fast path also requires that D has no second-level scale. This function
 * cannot test that, because the scale is known only when the plan runs. bsmm_wgmma_run tests it. */
static bool is_simple(const bsmm_product *p) {
    return p->d.m.order == BSMM_ORDER_ROW && !p->has_c && p->bias_elem == BSMM_ELEM_NONE;
}

/* Returns how a kernel stores D. TMA requires that D's rows are multiples of 16 bytes apart. D's
 * rows must also be multiples of 16 bytes long. On an H100, a TMA store of rows of other lengths
 * has written bytes after the last column. */
static bsmm_wgmma_store store_of(const bsmm_product *p) {
    static const bsmm_wgmma_store by_map[BSMM_ELEM_COUNT] = {
        [BSMM_ELEM_BF16] = BSMM_WGMMA_STORE_BF16,
        [BSMM_ELEM_F16] = BSMM_WGMMA_STORE_F16,
        [BSMM_ELEM_E4M3] = BSMM_WGMMA_STORE_E4M3,
        [BSMM_ELEM_E5M2] = BSMM_WGMMA_STORE_E5M2,
    };
    const uint32_t elem = p->d.m.format.elem;
    if (!is_simple(p)) return BSMM_WGMMA_STORE_ANY;
    if (elem == BSMM_ELEM_F32) return BSMM_WGMMA_STORE_F32;
    const int64_t bits = bsmm_elem_row(elem)->bits;
    return (p->d.m.ld | p->d.m.cols) * bits % 128 == 0 ? by_map[elem] : BSMM_WGMMA_STORE_ANY;
}

/* Makes the tensor map with which TMA stores D. A warpgroup stores 64 rows by 64 columns at a time,
 * or 32 columns if 64 does not divide the tile's width. */
static void map_result(const bsmm_product *p, const bsmm_wgmma_tile *t, bsmm_cuda_ready_map *map) {
    const uint32_t cols = GEMM_CHUNK_COLS(t->tile_n);
    const uint32_t bytes = bsmm_elem_row(p->d.m.format.elem)->bits / 8, row = cols * bytes;
    bsmm_cuda_ready_map_make(
        p->device,
        &(bsmm_cuda_tensor_desc){
            .type = bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8,
            .swizzle = row == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                       : row == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                   : CU_TENSOR_MAP_SWIZZLE_32B,
            .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
            .rank = 2,
            .extents = {(uint64_t)p->d.m.cols, (uint64_t)p->d.m.rows},
            .strides = {(uint64_t)p->d.m.ld * bytes},
            .box = {cols, 64},
        },
        map);
}

static bsmm_wgmma_divisor divisor(int64_t d) {
    uint32_t shift = 31;
    while ((int64_t)1 << (shift - 31) < d)
        shift++;
    return (bsmm_wgmma_divisor){
        (uint32_t)((((uint64_t)1 << shift) + (uint64_t)d - 1) / (uint64_t)d), shift};
}

/* Clusters compute the tiles of D band by band; a band is a range of rows of D. Returns the number
 * of cluster tiles along M in a band. A band has 2048 rows, so that the tiles that run at the same
 * time read about as many rows of A as of B from L2. */
static int64_t band(const bsmm_wgmma_tile *t) {
    int64_t tiles_m = 2048 / (t->tile_m * t->cluster_m);
    return tiles_m > 0 ? tiles_m : 1;
}

/* Returns the kernel parameters of the sm_90a GEMM, except for pointers, which are set in each
 * run. */
static bsmm_wgmma_params params_of(const bsmm_product *p, const bsmm_wgmma_tile *t,
                                   const bsmm_wgmma_deal *d, const bsmm_wgmma_form *a,
                                   const bsmm_wgmma_form *b) {
    const int64_t split = (d->tiles_m * d->tiles_n - d->whole) * k_blocks(p, t);
    return (bsmm_wgmma_params){
        .b_blocks = {NULL, (uint32_t)b->n_step, (uint32_t)b->k_step},
        .whole = bsmm_cuda_generic_job(p),
        .m = (int32_t)p->d.m.rows,
        .n = (int32_t)p->d.m.cols,
        .k_blocks = (int32_t)k_blocks(p, t),
        .a_parts = (int32_t)a->parts,
        .b_parts = (int32_t)b->parts,
        .a_reciprocal = (int32_t)((31 + a->parts) / a->parts),
        .tiles_m = (int32_t)d->tiles_m,
        .tiles_n = (int32_t)d->tiles_n,
        .group_m = (int32_t)band(t),
        .whole_tiles = (int32_t)d->whole,
        .splits = (int32_t)d->splits,
        .range_blocks = (int32_t)(split / d->clusters),
        .longer_ranges = (int32_t)(split % d->clusters),
        .by_k = divisor(k_blocks(p, t)),
        .by_pairs = divisor((int64_t)a->parts * b->parts),
        .by_group = divisor(band(t)),
        .by_band = divisor(band(t) * d->tiles_n),
        .a_rows_step = a->is_row_wide ? 0 : 1,
        .store = store_of(p),
    };
}

/* Returns the number of thread blocks that a launch puts into a cluster, or 0 for a launch without
 * clusters. Kernels whose tiles need no clusters run in pairs, too, if there is an even number of
 * thread blocks. The GPU places the blocks of a cluster on neighboring SMs. Consecutive blocks
 * mostly read the same rows of B at the same time, and these reads then take less time: FP8 with
 * (M, N, K) = (96, 8192, 4096) takes 13.2 instead of 15.9 us on an H200. If D has one row of tiles,
 * consecutive blocks have different rows of B and the same rows of A, and pairs gain nothing. If
 * only the last tiles are split along K, or if the only tile is, consecutive blocks compute parts
 * of the same tile, which have no rows in common. Such blocks do not run in pairs. */
static uint32_t blocks_together(const bsmm_wgmma_tile *t, const bsmm_wgmma_deal *d) {
    const uint32_t blocks = t->cluster_m * t->cluster_n;
    if (blocks > 1) return blocks;
    const int64_t all = d->tiles_m * d->tiles_n;
    const bool shares_b = d->splits > 1 ? all > 1 : d->whole == all;
    return d->clusters % 2 == 0 && shares_b ? 2 : 0;
}

static void make_maps(const bsmm_product *p, const bsmm_wgmma_tile *t, const bsmm_wgmma_form *a,
                      const bsmm_wgmma_form *b, bsmm_wgmma_engine *made) {
    int64_t m = p->d.m.rows, n = p->d.m.cols;
    map_elements(p, a, m, t->tile_m, &made->a);
    map_elements(p, b, n, t->tile_n, &made->b);
    map_scales(p, a, m, t->tile_m, &made->a_rows);
    map_scales(p, b, n, t->tile_n, &made->b_rows);
    if (made->params.store >= BSMM_WGMMA_STORE_E4M3) map_result(p, t, &made->d);
}

bsmm_status bsmm_wgmma_make(const bsmm_product *p, const bsmm_wgmma_tile *t,
                            const bsmm_wgmma_form *a, const bsmm_wgmma_form *b, bool plain,
                            bsmm_wgmma_engine *made) {
    const bsmm_wgmma_deal d = bsmm_wgmma_deal_of(p, t);
    const uint32_t blocks = t->cluster_m * t->cluster_n;
    *made = (bsmm_wgmma_engine){.params = params_of(p, t, &d, a, b),
                                .flag_bytes = flag_bytes(p->device, t)};
    made->params.whole.epilogue.alpha = ldexp(made->params.whole.epilogue.alpha, -(int)b->shift);
    if (plain) {
        made->params.plain[0] = bsmm_pack_plain_of(&p->a, NULL);
        made->params.plain[1] = bsmm_pack_plain_of(&p->b, NULL);
    }
    make_maps(p, t, a, b, made);
    return bsmm_cuda_ready_make(p->device,
                                &(bsmm_cuda_launch_desc){
                                    .function = &t->function,
                                    .grid = {(uint32_t)d.clusters * blocks},
                                    .block = {threads_of(t)},
                                    .cluster = {blocks_together(t, &d)},
                                    .shared_bytes = t->function.shared_bytes,
                                    .overlap = true,
                                },
                                &made->ready);
}

static bsmm_status bind_maps(const bsmm_product *p, const bsmm_wgmma_engine *made,
                             const bsmm_wgmma_input *in, bsmm_wgmma_params *params) {
    const bsmm_cuda_device *d = p->device;
    BSMM_TRY(bsmm_cuda_ready_map_at(d, &made->a, in->a.elements, &params->a));
    BSMM_TRY(bsmm_cuda_ready_map_at(d, &made->b, in->b.elements, &params->b));
    if (in->a.rows) BSMM_TRY(bsmm_cuda_ready_map_at(d, &made->a_rows, in->a.rows, &params->a_rows));
    if (in->b.rows) BSMM_TRY(bsmm_cuda_ready_map_at(d, &made->b_rows, in->b.rows, &params->b_rows));
    if (params->store < BSMM_WGMMA_STORE_E4M3) return BSMM_OK;
    return bsmm_cuda_ready_map_at(d, &made->d, p->d.m.data, &params->d);
}

/* Sets the parameters in `job` for the kernel that splits each f16 element of A into two bf16
 * numbers. The kernel reads A where the caller stores it, and writes the bf16 numbers to in->parts.
 */
static void bind_parts(const bsmm_product *p, const bsmm_wgmma_input *in, bsmm_pack_job *job) {
    job->data = p->a.m.data;
    job->line_bytes = (uint64_t)p->a.m.ld * 2;
    job->rows = (uint32_t)p->a.m.rows;
    job->cols = (uint32_t)p->a.m.cols;
    job->elements = in->parts;
    job->element_pitch = in->parts_pitch;
}

bsmm_status bsmm_wgmma_run(const bsmm_product *p, const bsmm_wgmma_engine *made,
                           const bsmm_wgmma_input *in) {
    bsmm_wgmma_params params = made->params;
    bsmm_gpu_bf16_job_bind(p, &params.whole);
    params.b_blocks.base = in->b.blocks;
    params.row_factors = in->a.rows;
    params.col_factors = in->b.rows;
    params.gate = in->gate;
    params.overflowed = in->overflowed;
    params.handed_flag = in->workspace;
    params.handed = (float *)(void *)((uint8_t *)in->workspace + made->flag_bytes);
    params.ticket = new_ticket();
    if (p->d.m.global_scale) params.store = BSMM_WGMMA_STORE_ANY;
    if (in->plain[0]) bsmm_pack_plain_bind(&p->a, in->plain[0], &params.plain[0]);
    if (in->plain[1]) bsmm_pack_plain_bind(&p->b, in->plain[1], &params.plain[1]);
    if (in->parts) bind_parts(p, in, &params.plain[0].job);
    BSMM_TRY(bind_maps(p, made, in, &params));
    return bsmm_cuda_ready_launch(p->device, &made->ready, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

/* Returns the error bound of a result of the sm_90a GEMM, as a multiple of sum |a b| over K. The
 * errors are these:
 *
 * One wgmma instruction adds 16 products of bf16, or 32 products of FP8, to an accumulator. It
 * truncates all terms at 2^-23 (bf16) or 2^-13 (FP8) of the largest term.
 *
 * With fp32 scales (kinds other than BSMM_WGMMA_BF16), a k block is 4 instructions, and its
 * accumulator begins at 0. The kernel multiplies the accumulator by the product of two scales and
 * adds it to the total. Each k block therefore adds the rounding errors of that product and of one
 * FMA. */
double bsmm_wgmma_bound(bsmm_wgmma_kind kind, uint32_t elem, int64_t k) {
    if (kind == BSMM_WGMMA_BF16) return 17 * 0x1p-23 * (double)bsmm_ceil_div(k, 16) + 0x1p-23;
    const bool wide = elem == BSMM_ELEM_BF16;
    const double sum = wide ? 4 * 17 * 0x1p-23 : 4 * 33 * 0x1p-13;
    return sum + (double)(bsmm_ceil_div(k, wide ? 64 : 128) + 2) * 0x1p-24;
}
