/* The engine's feed: one thread fills the ring of stages, piece of work after piece. A part of
 * gemm_body.h, which includes it once, with its macros. */

/* One stage. A tile that blocks of the cluster share comes to all of them from the first's copy. */
static __device__ __forceinline__ void load_stage(const bsmm_wgmma_params *p, const ring *r,
                                                  uint32_t stage, place here, corner at,
                                                  int32_t k) {
    const uint32_t full = full_of(r, stage), a = r->tiles + stage * STAGE_BYTES, b = a + A_BYTES;
    const int32_t x = k * K_ELEMENTS;
#if CLUSTER_N > 1
    uint16_t row_mask = 0;
    for (int j = 0; j < CLUSTER_N; j++)
        row_mask |= (uint16_t)(1 << (here.rank_m + CLUSTER_M * j));
    if (here.rank_n == 0) ptx_tma_load_multicast(a, &p->a, x, at.row, full, row_mask);
#else
    ptx_tma_load(a, &p->a, x, at.row, full);
#endif
#if CLUSTER_M > 1
    const uint16_t col_mask = (uint16_t)(((1 << CLUSTER_M) - 1) << (CLUSTER_M * here.rank_n));
    if (here.rank_m == 0) ptx_tma_load_multicast(b, &p->b, x, at.col, full, col_mask);
#else
    ptx_tma_load(b, &p->b, x, at.col, full);
#endif
#if GEMM_SCALES != GEMM_UNSCALED
    uint32_t scales = r->scales + stage * SCALE_BYTES;
    ptx_tma_load(scales, &p->a_rows, at.row, k, full);
#endif
#if GEMM_SCALES == GEMM_ROW_ROW
    ptx_tma_load(scales + 4 * TILE_M, &p->b_rows, at.col, k, full);
#endif
}

/* ---- B's scales ---- */

/* That of k block k and of a tile's first block of B, or of its second. */
static __device__ __forceinline__ const float *scale_at(const bsmm_wgmma_params *p, corner at,
                                                        int32_t k, int32_t block) {
    const bsmm_wgmma_block_scales *b = &p->b_blocks;
    uint32_t line = (uint32_t)min(at.col + 128 * block, p->n - 1) / 128 * b->n_step;
    return b->base + line + (uint32_t)min(k, p->k_blocks - 1) * b->k_step;
}

static __device__ __forceinline__ float load_scale(const bsmm_wgmma_params *p, corner at,
                                                   int32_t k) {
    if (GEMM_SCALES != GEMM_ROW_BLOCK || FEED_COPIES) return 1;
    return __ldg(scale_at(p, at, k, 0));
}

static __device__ __forceinline__ uint32_t place_of_scales(const ring *r, uint32_t stage) {
    return r->scales + (COLS_AT - SCALES_AT) + 8 * stage;
}

/* The one that was loaded; or, with FEED_COPIES, copies, which arrive at the stage's barrier by
 * themselves. */
static __device__ __forceinline__ void put_scales(const bsmm_wgmma_params *p, const ring *r,
                                                  uint32_t stage, corner at, int32_t k,
                                                  float scale) {
#if FEED_COPIES
#    pragma unroll
    for (int i = 0; i < COL_BLOCKS; i++)
        ptx_copy4(place_of_scales(r, stage) + 4 * i, scale_at(p, at, k, i));
    ptx_mbarrier_arrive_copies(full_of(r, stage));
#elif GEMM_SCALES == GEMM_ROW_BLOCK
    ptx_store_shared_f32(place_of_scales(r, stage), scale);
#endif
}

/* What this thread itself writes to shared memory precedes its arrival, which completes the stage
 * together with the copies' bytes. Where it loads B's scale it asks for it a stage before, for the
 * copies must not wait for it. */
static __device__ __forceinline__ void feed_piece(const bsmm_wgmma_params *p, ring *r, place here,
                                                  const work *piece) {
    int32_t k = piece->k_begin;
    uint32_t stage = 0;
    wait_empty(r, 0);
    load_stage(p, r, 0, here, piece->at, k);
    float scale = load_scale(p, piece->at, k);
    for (;;) {
        const float next = load_scale(p, piece->at, k + 1);
        put_scales(p, r, stage, piece->at, k, scale);
        ptx_mbarrier_arrive_expect(full_of(r, stage), STAGE_BYTES + SCALE_BYTES);
        r->phases ^= 1u << stage;
        if (++k == piece->k_end) return;
        if (++stage == STAGES) stage = 0;
        wait_empty(r, stage);
        load_stage(p, r, stage, here, piece->at, k);
        scale = next;
    }
}

/* The next piece of work of this block. */
static __device__ __forceinline__ work next_work(const bsmm_wgmma_params *p, place here,
                                                 gemm_schedule *s) {
    gemm_piece piece;
    work none = {{0, 0}, 0, 0};
    if (!gemm_schedule_next(s, &piece)) return none;
    work next = {corner_of(p, piece.tile, here), piece.k_begin, piece.k_end};
    return next;
}

static __device__ __forceinline__ void feed_tiles(const bsmm_wgmma_params *p, ring r, place here,
                                                  gemm_schedule s, work next, shared *told) {
    uint32_t number = 0;
    for (; next.k_begin < next.k_end; number++) {
        if (number > 0) wait_empty(&r, 0);
        told->pieces[number % 2] = next;
        feed_piece(p, &r, here, &next);
        next = next_work(p, here, &s);
    }
    wait_empty(&r, 0);
    told->pieces[number % 2] = next;
    for (int i = 0; i < FULL_ARRIVALS; i++)
        ptx_mbarrier_arrive(full_of(&r, 0));
}
