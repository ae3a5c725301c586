/* A consumer warpgroup of the sm_90a GEMM multiplies one stage and reads the scales that belong to
 * it. gemm_body.h includes this file. */

/* The scales that one thread applies to a subtile (64 rows) and a k block: those of its two rows of
 * A, and those of the tile's columns. With GEMM_ROW_BLOCK the columns' scales are in `col`. With
 * GEMM_ROW_ROW `cols` is their address in shared memory. */
typedef struct factors {
    float row[2], col[2];
    uint32_t cols;
    /* True if every product of a row scale and a column scale in this warp passes is_safe. It is
     * used with CAREFUL. */
    bool moderate;
} factors;

typedef struct consumer {
    const bsmm_wgmma_params *p;
    ring r;
    int32_t warpgroup, warp, lane;
    /* the wgmma descriptors of this warpgroup's first subtile of A, and of B, in stage 0 */
    uint64_t a, b;
    uint32_t row_scales; /* the offset of this thread's first row in a stage's scales, in bytes */
    uint32_t empty;      /* The result of empty_to_tell in a cluster, else 0. */
    /* The address of this warpgroup's staging buffers, through which it stores D. */
    uint32_t staging;
    uint32_t chunks; /* Bit i is the parity of the current phase of staging buffer i. */
    bool even; /* True if each row of A and B has one scale for all of K. It is used with EVENS. */
    /* The number of column groups that lie in the first block of B. It is used if COL_BLOCKS is
     * 2. */
    int32_t split;
    /* Bit 2 s + i is set if a product of scales in row i of subtile s is unsafe. It is used with
     * CAREFUL. */
    uint32_t unsafe;
    /* The smallest and the largest bits of all products of scales. They are used with
     * GEMM_ROW_BLOCK. */
    uint32_t least, most;
} consumer;

/* Returns the address of the empty barrier of stage 0 in the block that this lane notifies: its own
 * block, or another block of the cluster whose loads arrive here. 0 means that the lane notifies no
 * block. */
static __device__ __forceinline__ uint32_t empty_to_tell(const ring *r, int32_t lane) {
    if (lane >= CLUSTER || !feeds(place_of((uint32_t)lane), place_make())) return 0;
    return ptx_mapa(empty_of(r, 0), (uint32_t)lane);
}

/* Notifies every block whose loads arrive here that this warp has read the stage. */
static __device__ __forceinline__ void release(uint32_t stage, const consumer *c) {
    if (CLUSTER == 1) {
        if (c->lane < EMPTY_ARRIVALS) ptx_mbarrier_arrive(empty_of(&c->r, stage));
    } else if (c->empty) {
        ptx_mbarrier_arrive_cluster(c->empty + 16 * stage);
    }
}

/* Returns true if the scale is 0 or so moderate that the product of two such scales is safe. */
static __device__ __forceinline__ bool is_moderate(float scale) {
    const uint32_t lowest = (127 - 52) << 23, highest = (127 + 32) << 23;
    return (__float_as_uint(scale) & 0x7fffffff) - lowest < highest - lowest || scale == 0;
}

/* Returns true if all scales of the warp's rows and columns are moderate. Each lane tests its rows
 * and four columns. */
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

/* Returns the index of the 128 x 128 block of B, 0 or 1, in which an accumulator's column lies. */
static __device__ __forceinline__ int block_of(const consumer *c, int accumulator) {
    return COL_BLOCKS == 2 && accumulator / (COL_GROUP / 2) >= c->split;
}

static __device__ __forceinline__ factors factors_of(const consumer *c, uint32_t stage,
                                                     uint32_t subtile) {
    factors f = {{1, 1}, {1, 1}, 0, true};
    if (GEMM_SCALES == GEMM_UNSCALED) return f;
    const uint32_t row = c->r.scales + stage * SCALE_BYTES + c->row_scales + 4 * 64 * subtile;
    f.row[0] = ptx_load_shared_f32(row);
    f.row[1] = ptx_load_shared_f32(row + 32);
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

/* Starts the wgmma of one stage and subtile, and loads the scales that belong to it at the same
 * time. */
static __device__ __forceinline__ factors start(const consumer *c, float *sum, uint32_t stage,
                                                uint32_t subtile, uint32_t keep) {
    uint64_t a_at = c->a + ((stage * STAGE_BYTES + subtile * (64 * K_BYTES)) >> 4);
    uint64_t b_at = c->b + ((stage * STAGE_BYTES) >> 4);
    factors f = {};
    if (FACTORS_FIRST) f = factors_of(c, stage, subtile);
    if (GEMM_SCALES != GEMM_UNSCALED) hold(sum);
    ptx_wgmma_fence();
#pragma unroll
    for (int i = 0; i < K_BYTES / 32; i++)
        wgmma_step(sum, a_at + 2 * i, b_at + 2 * i, i > 0 ? 1 : keep);
    ptx_wgmma_commit();
    if (GEMM_SCALES != GEMM_UNSCALED) hold(sum);
    return FACTORS_FIRST ? f : factors_of(c, stage, subtile);
}
