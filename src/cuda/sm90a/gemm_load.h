/* This is the producer of the sm_90a GEMM, i.e. the thread that loads operand tiles into the ring
 * of stages. A work unit is a tile of D and a range of the tile's k blocks (128 bytes along K
 * each). The producer goes through the work units of its thread block and announces each of them to
 * the consumers. It also loads B's block scales, unless another warp does (SCALES_WARP).
 * gemm_body.h includes this file. */

/* Tells which tile of A and which tile of B the kernel loads for a k block. `a` and `b` are
 * positions along K in the packed A and B, in units of 128 bytes. Usually they are equal. They
 * differ if packing splits the elements of A or B into parts, i.e. into up to three bf16 numbers
 * whose sum is the element. Each part of A must then be multiplied by each part of B, and each of
 * these products of parts is a k block of its own. */
typedef struct along_k {
    int32_t a, b;
} along_k;

static __device__ __forceinline__ along_k along_k_of(const bsmm_wgmma_params *p, int32_t k) {
    along_k at = {k, k};
    if (!GEMM_WIDE || p->a_parts * p->b_parts == 1) return at;
    const int32_t group = gemm_divide(k, &p->by_pairs), pair = k - group * p->a_parts * p->b_parts;
    const int32_t of_b = pair * p->a_reciprocal / 32;
    at.a = group * p->a_parts + pair - of_b * p->a_parts;
    at.b = group * p->b_parts + of_b;
    return at;
}

/* Returns the index along K of the 1 x 128 scale block that contains k block number `k`. A k block
 * is 128 bytes along K, so a k block of bf16 is half a scale block. */
static __device__ __forceinline__ int32_t scale_block_of(const bsmm_wgmma_params *p, int32_t k) {
    return GEMM_WIDE ? gemm_divide(k, &p->by_pairs) / 2 : k;
}

/* Starts the loads of one k block into one stage. If several thread blocks of the cluster need the
 * same tile of an operand, the first of them loads it and multicasts it to all. */
static __device__ __forceinline__ void load_stage(const bsmm_wgmma_params *p, const ring *r,
                                                  uint32_t stage, cluster_rank here, corner at,
                                                  int32_t k) {
    const uint32_t full = full_of(r, stage), a = r->tiles + stage * STAGE_BYTES, b = a + A_BYTES;
    const along_k from = along_k_of(p, k);
    const int32_t a_x = from.a * K_ELEMENTS, b_x = from.b * K_ELEMENTS;
    if (CLUSTER_N > 1) {
        uint16_t row_mask = 0;
        for (int j = 0; j < CLUSTER_N; j++)
            row_mask |= (uint16_t)(1 << (here.rank_m + CLUSTER_M * j));
        if (here.rank_n == 0) ptx_tma_load_multicast(a, &p->a, a_x, at.row, full, row_mask);
    } else {
        ptx_tma_load(a, &p->a, a_x, at.row, full);
    }
    if (CLUSTER_M > 1) {
        const uint16_t col_mask = (uint16_t)(((1 << CLUSTER_M) - 1) << (CLUSTER_M * here.rank_n));
        if (here.rank_m == 0) ptx_tma_load_multicast(b, &p->b, b_x, at.col, full, col_mask);
    } else {
        ptx_tma_load(b, &p->b, b_x, at.col, full);
    }
    const uint32_t scales = r->scales + stage * SCALE_BYTES;
    const int32_t block = scale_block_of(p, k);
    if (GEMM_SCALES != GEMM_UNSCALED && A_SCALED)
        ptx_tma_load(scales, &p->a_rows, at.row, block * p->a_rows_step, full);
    if (GEMM_SCALES == GEMM_ROW_ROW)
        ptx_tma_load(scales + 4 * TILE_M, &p->b_rows, at.col, block, full);
}

/* Holds the scales of B that a tile of D needs for one k block. A k block is 128 elements of K
 * here. B has one scale for each block of 128 x 128, and the tile's columns lie in one or two such
 * blocks (COL_BLOCKS). */
typedef struct block_scales {
    float of[COL_BLOCKS];
} block_scales;

/* Loads the scales of B's 128 x 128 blocks for k block `k` (128 elements of K), or for the last k
 * block if `k` lies past the end of K. */
static __device__ __forceinline__ block_scales load_scales(const bsmm_wgmma_params *p, corner at,
                                                           int32_t k) {
    block_scales scales = {};
    if (GEMM_SCALES != GEMM_ROW_BLOCK) return scales;
    const bsmm_wgmma_block_scales *b = &p->b_blocks;
    const uint32_t block = (uint32_t)scale_block_of(p, min(k, p->k_blocks - 1));
#pragma unroll
    for (int i = 0; i < COL_BLOCKS; i++) {
        const uint32_t line = (uint32_t)min(at.col + 128 * i, p->n - 1) / 128 * b->n_step;
        scales.of[i] = b->base ? __ldg(b->base + line + block * b->k_step) : 1;
    }
    return scales;
}

/* Writes B's scales of one k block to a stage in shared memory. The warps that multiply wait for
 * the stage's "full" mbarrier, which counts the bytes that arrive. In a cluster, st.async writes
 * the scales and adds their bytes to this count, as TMA does for tiles. Without a cluster, plain
 * stores write them. */
static __device__ __forceinline__ void put_scales(const ring *r, uint32_t stage,
                                                  block_scales scales) {
    if (GEMM_SCALES != GEMM_ROW_BLOCK) return;
    const uint32_t to = r->scales + (COLS_AT - SCALES_AT) + 8 * stage;
#pragma unroll
    for (uint32_t i = 0; i < COL_BLOCKS; i++)
        if (CLUSTER > 1)
            ptx_store_async_f32(to + 4 * i, scales.of[i], full_of(r, stage));
        else
            ptx_store_shared_f32(to + 4 * i, scales.of[i]);
    if (FULL_ARRIVALS > 1) ptx_mbarrier_arrive(full_of(r, stage));
}

/* Loads the operand tiles of one work unit to the stages in shared memory. A work unit is a range
 * of k blocks of one tile of D. If no other warp loads B's scales, this thread loads them one stage
 * ahead, so that the TMA loads do not wait for the latency of the scales. */
static __device__ __forceinline__ void produce_unit(const bsmm_wgmma_params *p, ring *r,
                                                    cluster_rank here, const work *unit) {
    int32_t k = unit->k_begin;
    uint32_t stage = first_stage(r);
    wait_empty(r, stage);
    load_stage(p, r, stage, here, unit->at, k);
    block_scales scales = {};
    if (!SCALES_WARP) scales = load_scales(p, unit->at, k);
    for (;;) {
        block_scales next = {};
        if (!SCALES_WARP) next = load_scales(p, unit->at, k + 1);
        if (!SCALES_WARP) put_scales(r, stage, scales);
        ptx_mbarrier_arrive_expect(full_of(r, stage), STAGE_BYTES + SCALE_BYTES_LOADED + COL_BYTES);
        r->phases ^= 1u << stage;
        if (GEMM_SHORT) r->next = stage_after(stage);
        if (++k == unit->k_end) return;
        if (++stage == STAGES) stage = 0;
        wait_empty(r, stage);
        load_stage(p, r, stage, here, unit->at, k);
        scales = next;
    }
}

/* The producer announces each work unit (a tile of D and a range of its k blocks) to the consumers
 * by an entry of the array shared.units. Returns the index of this entry. In kernels for short K
 * (GEMM_SHORT), the index is the number of the first stage that the work unit fills. The function
 * must therefore be called before the first stage of the work unit is loaded. In other kernels
 * there are two entries, which are used in turn; `number` counts the work units of this thread
 * block. */
static __device__ __forceinline__ uint32_t unit_slot(const ring *r, uint32_t number) {
    return GEMM_SHORT ? first_stage(r) : number % 2;
}

/* Returns the next work unit of this thread block. A work unit is a tile of D and a range of its k
 * blocks. */
static __device__ __forceinline__ work next_work(const bsmm_wgmma_params *p, cluster_rank here,
                                                 gemm_schedule *s) {
    gemm_work_unit unit;
    work none = {{0, 0}, 0, 0};
    if (!gemm_schedule_next(s, &unit)) return none;
    work next = {corner_of(p, unit.tile, here), unit.k_begin, unit.k_end};
    return next;
}

static __device__ __forceinline__ void produce_tiles(const bsmm_wgmma_params *p, ring r,
                                                     cluster_rank here, gemm_schedule s, work next,
                                                     shared *told) {
    uint32_t number = 0;
    for (; next.k_begin < next.k_end; number++) {
        if (GEMM_SHORT || number > 0) wait_empty(&r, first_stage(&r));
        told->units[unit_slot(&r, number)] = next;
        produce_unit(p, &r, here, &next);
        next = next_work(p, here, &s);
    }
    wait_empty(&r, first_stage(&r));
    told->units[unit_slot(&r, number)] = next;
    for (int i = 0; i < FULL_ARRIVALS; i++)
        ptx_mbarrier_arrive(full_of(&r, first_stage(&r)));
}

/* Runs the loop of the warp that loads B's scales. A consumer finishes a k block in less time than
 * a load from memory takes, so the warp loads the scales of 32 k blocks at once. Lane i loads the
 * scales of k block i and writes them to a stage when that stage is empty. */
static __device__ __forceinline__ void
produce_scales(const bsmm_wgmma_params *p, ring r, cluster_rank here, gemm_schedule s, work next) {
    for (; next.k_begin < next.k_end; next = next_work(p, here, &s)) {
        uint32_t stage = 0;
        for (int32_t k = next.k_begin; k < next.k_end; k += 32) {
            const block_scales mine = load_scales(p, next.at, k + (int32_t)threadIdx.x % 32);
#pragma unroll 1
            for (uint32_t lane = 0; lane < (uint32_t)min(32, next.k_end - k); lane++) {
                wait_empty(&r, stage);
                if (threadIdx.x % 32 == lane) put_scales(&r, stage, mine);
                r.phases ^= 1u << stage;
                if (++stage == STAGES) stage = 0;
            }
        }
    }
}
