/* These are the loops of a consumer warpgroup in the sm_90a GEMM: the loop over the stages of a
 * work unit, and the loop over work units. A work unit is a tile of D and a range of its k blocks.
 * gemm_body.h includes this file. */

/* Calls step(stage) for stages 0, 1, ... STAGES - 1, 0, ... until it returns 0. `stage` must be a
 * compile-time constant, so that wgmma descriptors are in uniform registers. The compiler does not
 * unroll loops around wgmma, so this macro unrolls the loop by hand. A k block of a 192 x 128 tile
 * would take 12% more cycles in a loop that is not unrolled. */
#define FOR_STAGES(step)                                                                           \
    while ((step(0)) && (step(1)) && (STAGES < 3 || (step(2))) && (STAGES < 4 || (step(3))) &&     \
           (STAGES < 5 || (step(4))) && (STAGES < 6 || (step(5))) && (STAGES < 7 || (step(6))) &&  \
           (STAGES < 8 || (step(7))) && (STAGES < 9 || (step(8))) && (STAGES < 10 || (step(9))) && \
           (STAGES < 11 || (step(10))) && (STAGES < 12 || (step(11)))) {                           \
    }
static_assert(STAGES >= 2 && STAGES <= 12, "as many as FOR_STAGES has");

/* Holds the state of a consumer warpgroup's loop over the k blocks of a tile. */
typedef struct progress {
    /* `left` is the number of k blocks of the work unit that are still to be multiplied. `last` is
     * the stage that was multiplied last. `tested` is nonzero if a test of the next stage's barrier
     * has shown that the stage's operands have arrived. The loop then does not wait for them. */
    int32_t left;
    uint32_t last, tested;
} progress;

/* Multiplies one k block of a GEMM without block scales. `stage` is the stage of the ring buffer
 * that holds the operand tiles of this k block. The function issues the wgmma instructions for
 * `stage` while the wgmma instructions for the previous stage may still run, so the tensor cores
 * always have work. It then waits for the wgmma instructions of the previous stage, and lets the
 * producer refill that stage. */
static __device__ __forceinline__ int unscaled_stage(consumer *c, float *total, progress *now,
                                                     uint32_t stage) {
    if (now->left-- == 0) return 0;
    wait_full(&c->r, stage, 0);
    start(c, total, stage, 1);
    PTX_WGMMA_WAIT(1);
    release(stage_before(stage), c);
    now->last = stage;
    return 1;
}

static __device__ __forceinline__ void multiply_unscaled(consumer *c, float *total,
                                                         const work *unit) {
    progress now;
    now.left = unit->k_end - unit->k_begin - 1;
    now.last = 0;
    hold(total);
    wait_full(&c->r, 0, 0);
    start(c, total, 0, unit->k_begin > 0);
#define STEP(i) unscaled_stage(c, total, &now, (i + 1) % STAGES)
    FOR_STAGES(STEP)
#undef STEP
    PTX_WGMMA_WAIT(0);
    release(now.last, c);
    hold(total);
}

/* Finishes a stage whose first wgmma instructions are already running. Waits for them, multiplies
 * their sums by the scales, and adds the results to the totals over K (promotion). If a wgmma
 * instruction computes only some columns of the tile, does the same for the other columns. Releases
 * the stage to the producer when nobody reads it any more. Usually this is when the stage's scales
 * have been read. But if `even` is set, each row has one scale for all of K, and the scales of the
 * last stage are read only by end_even, which then releases this stage. Returns nonzero if there is
 * another stage. */
static __device__ __forceinline__ int end_stage(consumer *c, float *total, float *sum, factors f,
                                                progress *now, uint32_t stage, bool even) {
    const bool more = --now->left > 0, read = GEMM_SCALES != GEMM_ROW_ROW || even;
    now->last = stage;
#pragma unroll
    for (uint32_t turn = 1; turn < TURNS; turn++) {
        PTX_WGMMA_WAIT(0);
        add_sum(c, total, sum, f, turn - 1, even);
        start_sums(c, sum, stage, turn, 0);
    }
    PTX_WGMMA_WAIT(0);
    if (read && (more || !even)) release(stage, c);
    now->tested = more ? is_full(&c->r, stage_after(stage)) : 0;
    add_sum(c, total, sum, f, TURNS - 1, even);
    if (!read) release(stage, c);
    return more;
}

static __device__ __forceinline__ void end_even(consumer *c, float *total, const progress *now,
                                                const work *unit) {
    if (unit->k_end == c->p->k_blocks || c->p->splits > 1) scale_even(c, now->last, total);
    release(now->last, c);
}

/* Waits until a stage of the ring buffer is full, and starts the wgmma instructions that multiply
 * its k block. Then loads to *f the scales by which the sums of this k block will be multiplied. If
 * `even` is set, each row of A and B has one scale for all of K. The function then loads no scales.
 * At the end of the tile, scale_even takes them from the tile's last stage and multiplies the
 * totals. */
static __device__ __forceinline__ void start_stage(consumer *c, float *sum, factors *f,
                                                   const progress *now, uint32_t stage, bool even) {
    wait_full(&c->r, stage, now->tested);
    if (even)
        start_sums(c, sum, stage, 0, 0);
    else
        *f = start(c, sum, stage, 0);
}

/* Multiplies one stage (the operand tiles of one k block), scales its sums, and adds them to the
 * totals, i.e. to the sums over all k blocks. Returns 0 if this was the last k block. Without
 * GEMM_EARLY, the function starts the stage's wgmma instructions and waits for them. With
 * GEMM_EARLY, the caller or the call before has already started them. The function then waits for
 * them, and starts the wgmma instructions of the next stage before it returns. */
static __device__ __forceinline__ int go_on(consumer *c, float *total, float *sum, factors *f,
                                            progress *now, uint32_t stage, bool even) {
    if (!GEMM_EARLY) {
        start_stage(c, sum, f, now, stage, even);
        return end_stage(c, total, sum, *f, now, stage, even);
    }
    if (!end_stage(c, total, sum, *f, now, stage, even)) return 0;
    start_stage(c, sum, f, now, stage_after(stage), even);
    return 1;
}

/* Returns the stage of the current k block, and advances r->next to the stage of the next k block.
 * Only kernels with GEMM_SHORT call this function: a work unit begins there with the stage after
 * the previous work unit's last stage. In all other kernels, every work unit begins with stage 0.
 * The shuffle tells the compiler that the stage is the same in all lanes, so that addresses stay in
 * uniform registers. */
static __device__ __forceinline__ uint32_t next_stage(ring *r) {
    const uint32_t stage = __shfl_sync(0xffffffff, r->next, 0);
    r->next = stage_after(stage);
    return stage;
}

/* Multiplies a work unit, i.e. a range of k blocks of one tile. With GEMM_EARLY the wgmma
 * instructions of the first stage have already been started, while the results of the previous work
 * unit were stored. These instructions write to `sum`, and `f` holds the stage's scales. */
static __device__ __forceinline__ void multiply_from(consumer *c, float *total, float *sum,
                                                     factors f, const work *unit) {
    progress now;
    now.left = unit->k_end - unit->k_begin;
    now.tested = 1;
#define STEP(i) go_on(c, total, sum, &f, &now, i, false)
#define EVEN(i) go_on(c, total, sum, &f, &now, i, true)
    if (EVENS && c->even) {
        FOR_STAGES(EVEN)
        end_even(c, total, &now, unit);
    } else if (GEMM_SHORT) {
        while (STEP(next_stage(&c->r))) {
        }
    } else {
        FOR_STAGES(STEP)
    }
#undef STEP
#undef EVEN
}

static_assert(PARTIALS < 2 || STAGES % 2 == 0, "a stage always meets the same sum");
static_assert(PARTIALS < 2 || TURNS == 1, "a second set of sums is for all columns of the tile");

static __device__ __forceinline__ void promote_stage(consumer *c, float *total, float *sum,
                                                     uint32_t stage, factors f) {
    if (GEMM_SCALES != GEMM_ROW_ROW) release(stage, c);
    promote(c, total, sum, f, 0);
    if (GEMM_SCALES == GEMM_ROW_ROW) release(stage, c);
}

/* Starts the wgmma instructions of a stage, which write to `sum`, and then promotes the sums of the
 * previous stage, `sum_before`. Promotion multiplies the sums of one k block by their scales and
 * adds the products to `total`, which holds the sums over all k blocks. */
static __device__ __forceinline__ factors paired_stage(consumer *c, float *total, float *sum,
                                                       float *sum_before, factors before,
                                                       progress *now, uint32_t stage) {
    wait_full(&c->r, stage, now->tested);
    factors f = start(c, sum, stage, 0);
    PTX_WGMMA_WAIT(1);
    now->left--;
    now->tested = now->left > 0 ? is_full(&c->r, stage_after(stage)) : 0;
    promote_stage(c, total, sum_before, now->last, before);
    now->last = stage;
    return f;
}

/* Multiplies two stages, i.e. two k blocks of a tile. While wgmma instructions compute the sums of
 * one k block, the warpgroup multiplies the sums of the k block before it by their scales. It
 * therefore has two sets of sums, which it uses alternately: the first stage goes to `odd` and the
 * second one to `even`. When the function begins and when it returns, wgmma instructions that write
 * to `even` are still running. Returns 0 and does nothing if fewer than two k blocks are left, else
 * 1. */
static __device__ __forceinline__ int multiply_pair(consumer *c, float *total, float *even,
                                                    float *odd, factors *f, progress *now,
                                                    uint32_t stage) {
    if (now->left < 2) return 0;
    now->last = stage_before(stage);
    factors g = paired_stage(c, total, odd, even, *f, now, stage);
    *f = paired_stage(c, total, even, odd, g, now, stage_after(stage));
    return 1;
}

static __device__ __forceinline__ void multiply_pairs(consumer *c, float *total, const work *unit) {
    float even[ACCUMULATORS], odd[ACCUMULATORS];
    progress now;
    now.left = unit->k_end - unit->k_begin - 1;
    now.last = now.tested = 0;
    wait_full(&c->r, 0, 0);
    factors f = start(c, even, 0, 0);
#define STEP(i) (2 * (i) >= STAGES || multiply_pair(c, total, even, odd, &f, &now, 2 * (i) + 1))
    FOR_STAGES(STEP)
#undef STEP
    if (now.left) {
        factors g = paired_stage(c, total, odd, even, f, &now, stage_after(now.last));
        PTX_WGMMA_WAIT(0);
        promote_stage(c, total, odd, now.last, g);
    } else {
        PTX_WGMMA_WAIT(0);
        promote_stage(c, total, even, now.last, f);
    }
}

static __device__ __forceinline__ void multiply(consumer *c, float *total, const work *unit) {
    if (GEMM_SCALES == GEMM_UNSCALED) {
        multiply_unscaled(c, total, unit);
    } else if (PARTIALS == 2) {
        multiply_pairs(c, total, unit);
    } else {
        float sum[SUMS];
        const factors none = {{1, 1}, {1, 1}, 0, true};
        multiply_from(c, total, sum, none, unit);
    }
}

/* Waits until the next stage is full, and returns the work unit (a tile and a range of its k
 * blocks) that begins with this stage. The producer has written the work unit to shared memory. One
 * lane of the warp reads it and passes it to the other lanes. The same lane later tells the
 * producer of this thread block that the warp has read the stage. The producer then also knows that
 * the work unit has been read, and may overwrite it. There are two versions of the code, for
 * GEMM_SHORT and without it, because with one common expression nvcc makes 5% slower code for the
 * 128 x 96 tile. */
static __device__ __forceinline__ work told_work(consumer *c, const shared *told, uint32_t number) {
    const int32_t reader = CLUSTER > 1 ? (int32_t)ptx_cluster_rank() : 0;
    work next = {{0, 0}, 0, 0};
    if (GEMM_SHORT) {
        wait_for(full_of(&c->r, c->r.next), c->r.phases >> c->r.next & 1);
        if (c->lane == reader) next = told->units[c->r.next];
    } else {
        wait_for(full_of(&c->r, 0), c->r.phases & 1);
        if (c->lane == reader) next = told->units[number % 2];
    }
    next.at.row = __shfl_sync(0xffffffff, next.at.row, reader);
    next.at.col = __shfl_sync(0xffffffff, next.at.col, reader);
    next.k_begin = __shfl_sync(0xffffffff, next.k_begin, reader);
    next.k_end = __shfl_sync(0xffffffff, next.k_end, reader);
    return next;
}

/* Initializes the totals of a work unit, i.e. the fp32 accumulators for a range of k blocks of one
 * tile. They usually begin with zero. There is one exception: if `splits` is 1 and the range begins
 * inside a tile, another cluster has summed the k blocks of the tile before the range. The totals
 * then begin with the accumulators of that cluster. */
static __device__ __forceinline__ void begin_totals(consumer *c, float *total, const work *unit) {
    c->unsafe = c->most = 0;
    c->least[0] = c->least[1] = HIGHEST_SAFE - 1;
    c->split = COL_BLOCKS == 2 ? (128 - unit->at.col % 128) / COL_GROUP : 0;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] = 0;
    if (unit->k_begin > 0 && c->p->splits == 1) take_over(c, total, 1);
}

static __device__ __forceinline__ void end_unit(consumer *c, shared *told, float *total,
                                                const work *unit) {
    if (unit->k_end < c->p->k_blocks) {
        hand_over(c, told, total, unit);
        return;
    }
#pragma unroll 1
    for (int32_t i = 1; i < c->p->splits; i++)
        take_over(c, total, i * c->p->tiles_m * c->p->tiles_n);
    store(c, told, total, unit->at);
}

static __device__ __forceinline__ void consume_each(consumer *c, shared *told) {
    for (uint32_t number = 0;; number++) {
        float total[ACCUMULATORS];
        const work unit = told_work(c, told, number);
        if (unit.k_begin == unit.k_end) return;
        begin_totals(c, total, &unit);
        multiply(c, total, &unit);
        scale_by_cols(c, total, &unit);
        end_unit(c, told, total, &unit);
    }
}

static_assert(!GEMM_EARLY || (GEMM_SCALES != GEMM_UNSCALED && PARTIALS == 1),
              "sums are apart from totals, and there is one");

/* Starts the wgmma instructions for the first k block of a work unit, i.e. of a range of k blocks
 * of one tile. Returns the scales of this k block. */
static __device__ __forceinline__ factors begin(consumer *c, float *sum) {
    const uint32_t stage = first_stage(&c->r);
    wait_full(&c->r, stage, 1);
    return start(c, sum, stage, 0);
}

/* Returns true if the results of a work unit (a range of k blocks of one tile) can be stored
 * without a function call. The warpgroup starts the wgmma instructions of the next work unit before
 * it stores the results of this one. A function call would lose this overlap, because the compiler
 * inserts a wait for all running wgmma instructions before each call. */
static __device__ __forceinline__ bool ends_by_copies(const consumer *c, const shared *told,
                                                      const work *unit) {
    if (unit->k_end < c->p->k_blocks) return true;
    bool safe = !AGAIN || word_of(c, unit) == 0;
    if (BY_COLS && c->p->col_factors) {
        const int32_t row = unit->at.row + c->warpgroup * 64 + c->warp * 16;
        safe = !(unsafe_by_cols(c->p, row, unit->at.col) || !safe);
    }
    return c->p->store >= BSMM_WGMMA_STORE_BF16 && told->plain && __all_sync(0xffffffff, safe);
}

static __device__ __forceinline__ void end_by_copies(consumer *c, shared *told, float *total,
                                                     const work *unit) {
    if (unit->k_end < c->p->k_blocks) {
        hand_over(c, told, total, unit);
        return;
    }
    const corner mine = {unit->at.row + c->warpgroup * 64, unit->at.col};
    store_by_map(c, told, total, mine, false, false);
}

static __device__ __forceinline__ void consume_early(consumer *c, shared *told) {
    float total[ACCUMULATORS], sum[SUMS];
    work unit = told_work(c, told, 0);
    if (unit.k_begin == unit.k_end) return;
    factors f = begin(c, sum);
    for (uint32_t number = 1;; number++) {
        begin_totals(c, total, &unit);
        multiply_from(c, total, sum, f, &unit);
        scale_by_cols(c, total, &unit);
        const work next = told_work(c, told, number);
        const bool more = next.k_begin != next.k_end;
        if (more && __shfl_sync(0xffffffff, ends_by_copies(c, told, &unit), 0)) {
            f = begin(c, sum);
            end_by_copies(c, told, total, &unit);
        } else {
            end_unit(c, told, total, &unit);
            if (!more) return;
            f = begin(c, sum);
        }
        unit = next;
    }
}
