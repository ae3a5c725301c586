/* The engine's feed: one thread fills the ring of stages, piece of work after piece. A part of
 * gemm_body.h, which includes it once, with its macros. */

/* One stage: this block's parts of the shared tiles, to every block that uses them. */
static __device__ __forceinline__ void load_stage(const bsmm_wgmma_params *p, const ring *r,
                                                  uint32_t stage, place here, corner at,
                                                  int32_t k) {
    const int32_t a_rows = TILE_M / CLUSTER_N, b_rows = TILE_N / CLUSTER_M;
    uint32_t full = full_of(r, stage);
    uint32_t a = r->tiles + stage * STAGE_BYTES + here.rank_n * a_rows * K_BYTES;
    uint32_t b = r->tiles + stage * STAGE_BYTES + A_BYTES + here.rank_m * b_rows * K_BYTES;
    int32_t a_row = at.row + here.rank_n * a_rows, b_row = at.col + here.rank_m * b_rows;
    int32_t x = k * K_ELEMENTS;
#if CLUSTER_N > 1
    uint16_t row_mask = 0;
    for (int j = 0; j < CLUSTER_N; j++)
        row_mask |= (uint16_t)(1 << (here.rank_m + CLUSTER_M * j));
    ptx_tma_load_multicast(a, &p->a, x, a_row, full, row_mask);
#else
    ptx_tma_load(a, &p->a, x, a_row, full);
#endif
#if CLUSTER_M > 1
    uint16_t col_mask = (uint16_t)(((1 << CLUSTER_M) - 1) << (CLUSTER_M * here.rank_n));
    ptx_tma_load_multicast(b, &p->b, x, b_row, full, col_mask);
#else
    ptx_tma_load(b, &p->b, x, b_row, full);
#endif
#if GEMM_SCALES != GEMM_UNSCALED
    uint32_t scales = r->scales + stage * SCALE_BYTES;
    ptx_tma_load(scales, &p->a_rows, at.row, k, full);
#endif
#if GEMM_SCALES == GEMM_ROW_ROW
    ptx_tma_load(scales + 4 * TILE_M, &p->b_rows, at.col, k, full);
#endif
}

/* B's scale for k block k. */
static __device__ __forceinline__ float block_scale(const bsmm_wgmma_params *p, corner at,
                                                    int32_t k) {
#if GEMM_SCALES == GEMM_ROW_BLOCK
    const bsmm_wgmma_block_scales *b = &p->b_blocks;
    uint32_t line = (uint32_t)min(at.col, p->n - 1) / 128 * b->n_step;
    return __ldg(b->base + line + (uint32_t)min(k, p->k_blocks - 1) * b->k_step);
#else
    return 1;
#endif
}

static __device__ __forceinline__ void put_block_scale(const ring *r, uint32_t stage, float scale) {
    if (GEMM_SCALES == GEMM_ROW_BLOCK)
        ptx_store_shared_f32(r->scales + (COLS_AT - SCALES_AT) + 4 * stage, scale);
}

/* What this thread itself writes to shared memory precedes its arrival, which completes the stage
 * together with the copies' bytes. B's scale of a stage is asked for a stage before, for the copies
 * must not wait for it. */
static __device__ __forceinline__ void feed_piece(const bsmm_wgmma_params *p, ring *r, place here,
                                                  const work *piece) {
    int32_t k = piece->k_begin;
    uint32_t stage = 0;
    wait_empty(r, 0);
    load_stage(p, r, 0, here, piece->at, k);
    float scale = block_scale(p, piece->at, k);
    for (;;) {
        float next = block_scale(p, piece->at, k + 1);
        put_block_scale(r, stage, scale);
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
    ptx_mbarrier_arrive(full_of(&r, 0));
}
