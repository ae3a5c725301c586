/* The engine's consumers with GEMM_EARLY: while a warpgroup stages a tile's results, the tensor
 * cores work on its first k block of the next piece. A part of gemm_body.h, which includes it once,
 * with its macros. */
static_assert(GEMM_SCALES == GEMM_ROW_BLOCK && PARTIALS == 1 && SUBTILES == 1,
              "sums are apart from totals, and there is one");

/* Starts a piece of work. */
static __device__ __forceinline__ factors begin(consumer *c, float *sum) {
    wait_full(&c->r, 0, 1);
    return start(c, sum, 0, 0, 0);
}

/* Ends the products of a stage, and starts the next one's. */
static __device__ __forceinline__ int go_on(consumer *c, float *total, float *sum, factors *f,
                                            progress *now, uint32_t stage) {
    PTX_WGMMA_WAIT(0);
    now->left--;
    release(stage, c);
    now->tested = now->left > 0 ? is_full(&c->r, stage_after(stage)) : 0;
    promote(c, 0, total, sum, *f);
    if (now->left == 0) return 0;
    wait_full(&c->r, stage_after(stage), now->tested);
    *f = start(c, sum, stage_after(stage), 0, 0);
    return 1;
}

static __device__ __forceinline__ void multiply_begun(consumer *c, float *total, float *sum,
                                                      factors f, const work *piece) {
    progress now;
    now.left = piece->k_end - piece->k_begin;
    now.tested = 0;
#define STEP(i) go_on(c, total, sum, &f, &now, i)
    FOR_STAGES(STEP)
#undef STEP
}

/* Whether a piece ends by copies alone: a function called while products are under way would make
 * the compiler wait for each of them. */
static __device__ __forceinline__ bool ends_by_copies(const consumer *c, const shared *told,
                                                      const work *piece) {
    if (piece->k_end < c->p->k_blocks) return true;
    return c->p->store >= BSMM_WGMMA_STORE_BF16 && told->plain &&
           __all_sync(0xffffffff, are_factors_safe(c));
}

static __device__ __forceinline__ void
end_by_copies(consumer *c, shared *told, float (*total)[ACCUMULATORS], const work *piece) {
    const corner mine = {piece->at.row + c->warpgroup * 64, piece->at.col};
    if (piece->k_end < c->p->k_blocks)
        hand_over(c, told, total);
    else
        store_by_map(c, told, total[0], mine, false);
}

static __device__ __forceinline__ void consume_pieces(consumer *c, shared *told) {
    float total[1][ACCUMULATORS], sum[ACCUMULATORS];
    work piece = told_work(c, told, 0);
    if (piece.k_begin == piece.k_end) return;
    factors f = begin(c, sum);
    for (uint32_t number = 1;; number++) {
        begin_totals(c, total, &piece);
        multiply_begun(c, total[0], sum, f, &piece);
        const work next = told_work(c, told, number);
        const bool more = next.k_begin != next.k_end;
        if (more && __shfl_sync(0xffffffff, ends_by_copies(c, told, &piece), 0)) {
            f = begin(c, sum);
            end_by_copies(c, told, total, &piece);
        } else {
            end_piece(c, told, total, &piece);
            if (!more) return;
            f = begin(c, sum);
        }
        piece = next;
    }
}
