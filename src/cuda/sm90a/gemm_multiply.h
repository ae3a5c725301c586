/* In the sm_90a GEMM, a consumer warpgroup multiplies one stage at a time, i.e. one k block of its
 * tile, and reads the scales of that k block. gemm_body.h includes this file. */

/* Holds the scales that one thread needs for a k block. `row` has the scales of the two rows of A
 * to which the thread's accumulators belong. If B has one scale per 128 x 128 block
 * (GEMM_ROW_BLOCK), `col` has the scales of the one or two blocks in which the tile's columns lie.
 * If each row of B has a scale per k block (GEMM_ROW_ROW), the scales of the tile's columns are in
 * shared memory, at the address `cols`. */
typedef struct factors {
    float row[2], col[2];
    uint32_t cols;
    /* `moderate` is true if, for all scales of A and of B that this warp needs, each product of two
     * scales is certain to lie between 2^-104 and 2^64 (is_safe). The warp then need not test the
     * products one by one. Only kernels that test them (CAREFUL) use this field. */
    bool moderate;
} factors;

typedef struct consumer {
    const bsmm_wgmma_params *p;
    ring r;
    int32_t warpgroup, warp, lane;
    /* `a` and `b` are the wgmma descriptors of the operands in stage 0, i.e. in the first buffer
     * for operand tiles in shared memory. `a` is for the first 64 rows of A that this warpgroup
     * multiplies, and `b` is for the tile of B. */
    uint64_t a, b;
    /* `row_scales` is the offset in bytes, in a stage's scales, of the scale of this thread's first
     * row of A. */
    uint32_t row_scales;
    /* In a cluster, this lane notifies the "empty" mbarrier at this address when its warp has read
     * a stage. 0 means that the lane notifies none. */
    uint32_t empty;
    /* `staging` is the address of this warpgroup's staging buffers, from which TMA stores D. */
    uint32_t staging;
    uint32_t chunks; /* Bit i of `chunks` is the parity of the current phase of staging buffer i. */
    /* `even` is true if each row of A and of B has one scale for all of K. The kernel then
     * multiplies by the scales once at the end of a tile, instead of after each k block. Only
     * kernels with EVENS use this field. */
    bool even;
    /* If the columns of a tile lie in two 128 x 128 blocks of B (COL_BLOCKS is 2), they have two
     * different scales. The tile is divided into groups of COL_GROUP columns, and the first `split`
     * groups lie in the first of the two blocks. If COL_BLOCKS is 1, `split` is not used. */
    int32_t split;
    /* Results are multiplied by the product of a scale of A and a scale of B. Bit i of `unsafe` is
     * set if such a product for the thread's row i (0 or 1) lies outside the range from 2^-104 to
     * 2^64 (is_safe). The row's results are then recomputed in double. Only kernels that test
     * products of scales (CAREFUL) use this mask. */
    uint32_t unsafe;
    /* The loop keeps the smallest and the largest product of a scale of A and a scale of B that it
     * has met, as fp32 bits. `least` has the smallest product for each of the thread's two rows of
     * A, and `most` has the largest product for both. From them the kernel sees whether a product
     * has left the range in which fp32 sums are safe. Only kernels with 128 x 128 scales of B
     * (GEMM_ROW_BLOCK) use these fields. */
    uint32_t least[2], most;
} consumer;

/* When a warp has read a stage, it notifies the "empty" mbarriers of the thread blocks that load
 * tiles for this thread block. Lane i notifies thread block i of the cluster if that block is one
 * of them. Returns the shared memory address of this mbarrier for stage 0, or 0 if the lane
 * notifies none. */
static __device__ __forceinline__ uint32_t empty_to_tell(const ring *r, int32_t lane) {
    if (lane >= CLUSTER || !loads_for(cluster_rank_of((uint32_t)lane), cluster_rank_here()))
        return 0;
    return ptx_mapa(empty_of(r, 0), (uint32_t)lane);
}

/* Signals that this warp has read a stage, so that it may be refilled. In a cluster, other thread
 * blocks may load parts of this thread block's operand tiles (multicast). The signal goes to all
 * thread blocks that do so, by arrivals at their "empty" mbarriers of the stage. */
static __device__ __forceinline__ void release(uint32_t stage, const consumer *c) {
    if (CLUSTER == 1) {
        if (c->lane < EMPTY_ARRIVALS) ptx_mbarrier_arrive(empty_of(&c->r, stage));
    } else if (c->empty) {
        ptx_mbarrier_arrive_cluster(c->empty + 16 * stage);
    }
}

/* Returns true if the scale is 0, or if its magnitude is at least 2^-52 and below 2^32. The product
 * of any two such scales is 0 or lies between 2^-104 and 2^64 (is_safe). */
static __device__ __forceinline__ bool is_moderate(float scale) {
    const uint32_t lowest = (127 - 52) << 23, highest = (127 + 32) << 23;
    return (__float_as_uint(scale) & 0x7fffffff) - lowest < highest - lowest || scale == 0;
}

/* Returns true if all scales of the warp's rows of A and of the tile's rows of B (columns of D) are
 * 0 or between 2^-52 and 2^32 in magnitude (is_moderate). Each lane tests its own two rows and four
 * columns. */
static __device__ __forceinline__ bool are_moderate(const consumer *c, const factors *f) {
    static_assert(!CAREFUL || TILE_N == 128, "32 lanes have four columns each");
    uint32_t cols = f->cols - 8 * (c->lane % 4) + 16 * c->lane;
    bool moderate = is_moderate(f->row[0]) && is_moderate(f->row[1]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float col[2];
        ptx_load_shared_f32x2(cols + 8 * i, col);
        moderate = moderate && is_moderate(col[0]) && is_moderate(col[1]);
    }
    return __all_sync(0xffffffff, moderate);
}

/* The columns of a tile of D are rows of B. They may lie in two adjacent scale blocks of B (128 x
 * 128 elements each). Returns 0 if the column of accumulator number `accumulator` lies in the first
 * of these blocks, and 1 if it lies in the second one. If the whole tile lies in one block, returns
 * 0. */
static __device__ __forceinline__ int block_of(const consumer *c, int accumulator) {
    return COL_BLOCKS == 2 && accumulator / (COL_GROUP / 2) >= c->split;
}

static __device__ __forceinline__ factors factors_of(const consumer *c, uint32_t stage) {
    factors f = {{1, 1}, {1, 1}, 0, true};
    if (GEMM_SCALES == GEMM_UNSCALED) return f;
    const uint32_t row = c->r.scales + stage * SCALE_BYTES + c->row_scales;
    if (A_SCALED) {
        f.row[0] = ptx_load_shared_f32(row);
        f.row[1] = ptx_load_shared_f32(row + 32);
    }
    const uint32_t cols = c->r.scales + (COLS_AT - SCALES_AT) + 8 * stage;
    if (GEMM_SCALES == GEMM_ROW_ROW) {
        f.cols = c->r.scales + stage * SCALE_BYTES + 4 * TILE_M + 8 * (c->lane % 4);
        if (CAREFUL) f.moderate = are_moderate(c, &f);
    } else if (COL_BLOCKS == 2) {
        ptx_load_shared_f32x2(cols, f.col);
    } else {
        f.col[0] = ptx_load_shared_f32(cols);
    }
    return f;
}

/* Starts the wgmma instructions that multiply this warpgroup's 64 rows of A in a stage by SUM_COLS
 * rows of B in this stage, i.e. one k block. These rows of B belong to columns [turn * SUM_COLS,
 * (turn + 1) * SUM_COLS) of the tile. If `keep` is 1, the products are added to `sum`. If `keep` is
 * 0, they overwrite `sum`. */
static __device__ __forceinline__ void start_sums(const consumer *c, float *sum, uint32_t stage,
                                                  uint32_t turn, uint32_t keep) {
    uint64_t a_at = c->a + ((stage * STAGE_BYTES) >> 4);
    uint64_t b_at = c->b + ((stage * STAGE_BYTES + turn * SUM_COLS * K_BYTES) >> 4);
    if (GEMM_SCALES != GEMM_UNSCALED) hold(sum);
    ptx_wgmma_fence();
#pragma unroll
    for (int i = 0; i < K_BYTES / 32; i++)
        wgmma_step(sum, a_at + 2 * i, b_at + 2 * i, i > 0 ? 1 : keep);
    ptx_wgmma_commit();
    if (GEMM_SCALES != GEMM_UNSCALED) hold(sum);
}

/* Starts the wgmma instructions for the first SUM_COLS columns of the tile in a stage (start_sums),
 * and returns the scales of A and B for the stage's k block. */
static __device__ __forceinline__ factors start(const consumer *c, float *sum, uint32_t stage,
                                                uint32_t keep) {
    start_sums(c, sum, stage, 0, keep);
    return factors_of(c, stage);
}
