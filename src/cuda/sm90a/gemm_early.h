/* The engine's consumers with GEMM_EARLY: while a warpgroup stages a tile's results, the tensor
 * cores work on its first k block of the next piece. A part of gemm_body.h, which includes it once,
 * with its macros. */
static_assert(GEMM_SCALES != GEMM_UNSCALED && PARTIALS == 1,
              "sums are apart from totals, and there is one");

/* Starts the first products of a piece of work. */
static __device__ __forceinline__ factors begin(consumer *c, float *sum) {
    const uint32_t stage = first_stage(&c->r);
    wait_full(&c->r, stage, 1);
    return start(c, sum, stage, 0, 0);
}

/* Whether a piece ends by copies alone: a function called while products are under way would make
 * the compiler wait for each of them. */
static __device__ __forceinline__ bool ends_by_copies(const consumer *c, const shared *told,
                                                      const work *piece) {
    if (piece->k_end < c->p->k_blocks) return true;
    return c->p->store >= BSMM_WGMMA_STORE_BF16 && told->plain &&
           __all_sync(0xffffffff, !AGAIN || word_of(c) == 0);
}

static __device__ __forceinline__ void
end_by_copies(consumer *c, shared *told, float (*total)[ACCUMULATORS], const work *piece) {
    if (piece->k_end < c->p->k_blocks) {
        hand_over(c, told, total);
        return;
    }
#pragma unroll
    for (int s = 0; s < SUBTILES; s++) {
        const corner mine = {piece->at.row + (c->warpgroup * SUBTILES + s) * 64, piece->at.col};
        store_by_map(c, told, total[s], mine, false);
    }
}

static __device__ __forceinline__ void consume_pieces(consumer *c, shared *told) {
    float total[SUBTILES][ACCUMULATORS], sum[ACCUMULATORS];
    work piece = told_work(c, told, 0);
    if (piece.k_begin == piece.k_end) return;
    factors f = begin(c, sum);
    for (uint32_t number = 1;; number++) {
        begin_totals(c, total, &piece);
        multiply_from(c, total, sum, f, &piece);
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
