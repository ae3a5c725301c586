/* The engine's consumers from piece of work to piece of work. A part of gemm_body.h, which includes
 * it once, with its macros. */

/* The piece that the next stage, once full, begins. Read by the lane that gives this block's stages
 * back (release), so that its word for the stage is its word for the piece too. */
static __device__ __forceinline__ work told_work(consumer *c, const shared *told, uint32_t number) {
    const int32_t reader = CLUSTER > 1 ? (int32_t)ptx_cluster_rank() : 0;
    work next = {{0, 0}, 0, 0};
#if GEMM_SHORT
    wait_for(full_of(&c->r, c->r.next), c->r.phases >> c->r.next & 1);
    if (c->lane == reader) next = told->pieces[c->r.next];
#else
    wait_for(full_of(&c->r, 0), c->r.phases & 1);
    if (c->lane == reader) next = told->pieces[number % 2];
#endif
    next.at.row = __shfl_sync(0xffffffff, next.at.row, reader);
    next.at.col = __shfl_sync(0xffffffff, next.at.col, reader);
    next.k_begin = __shfl_sync(0xffffffff, next.k_begin, reader);
    next.k_end = __shfl_sync(0xffffffff, next.k_end, reader);
    return next;
}

/* What a piece's products are added to. */
static __device__ __forceinline__ void begin_totals(consumer *c, float (*total)[ACCUMULATORS],
                                                    const work *piece) {
    c->unsafe = c->most = 0;
    c->least = HIGHEST_SAFE - 1;
    c->split = COL_BLOCKS == 2 ? (128 - piece->at.col % 128) / COL_GROUP : 0;
    if (piece->k_begin > 0) {
        take_over(c, total);
        return;
    }
#pragma unroll
    for (int i = 0; i < SUBTILES * ACCUMULATORS; i++)
        total[i / ACCUMULATORS][i % ACCUMULATORS] = 0;
}

static __device__ __forceinline__ void end_piece(consumer *c, shared *told,
                                                 float (*total)[ACCUMULATORS], const work *piece) {
    if (piece->k_end < c->p->k_blocks)
        hand_over(c, told, total);
    else
        store(c, told, total, piece->at);
}

#if GEMM_EARLY
#    include "cuda/sm90a/gemm_early.h"
#else
static __device__ __forceinline__ void consume_pieces(consumer *c, shared *told) {
    for (uint32_t number = 0;; number++) {
        float total[SUBTILES][ACCUMULATORS];
        const work piece = told_work(c, told, number);
        if (piece.k_begin == piece.k_end) return;
        begin_totals(c, total, &piece);
        multiply(c, total, piece);
        end_piece(c, told, total, &piece);
    }
}
#endif
