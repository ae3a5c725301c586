/* The engine's consumers between a full stage and accumulators: products, scales, the main loop. A
 * part of gemm_body.h, which includes it once, with its macros. */

/* ---- multiply ---- */

/* The scales of one subtile and k block: of this thread's two rows, and of the tile's columns: of
 * blocks (GEMM_ROW_BLOCK), or where they lie (GEMM_ROW_ROW). */
typedef struct factors {
    float row[2], col[2];
    uint32_t cols;
    bool
        moderate; /* GEMM_CAREFUL: no product of the warp's rows' and the columns' leaves is_safe */
} factors;

typedef struct consumer {
    const bsmm_wgmma_params *p;
    ring r;
    int32_t warpgroup, warp, lane;
    uint64_t a, b;        /* descriptors: this warpgroup's first subtile and B, of stage 0 */
    uint32_t row_scales;  /* where in a stage's scales this thread's first row is */
    uint32_t empty;       /* empty_to_tell: of clusters */
    uint32_t staging;     /* of this warpgroup */
    uint32_t chunks;      /* bit i: the parity of the phase that place i for chunks is in */
    bool even;            /* EVENS: each row of A and B has one scale for all of K */
    int32_t split;        /* COL_BLOCKS 2: groups of columns that lie in the first of them */
    uint32_t unsafe;      /* GEMM_CAREFUL, bit 2 s + i: a factor of row i of subtile s is unsafe */
    uint32_t least, most; /* GEMM_ROW_BLOCK: among the bits of factors */
} consumer;

/* Which barrier this lane tells that its warp has read stage 0: that of this block, or of another
 * one whose copies come here. 0: none. */
static __device__ __forceinline__ uint32_t empty_to_tell(const ring *r, int32_t lane) {
    if (lane >= CLUSTER || !feeds(place_of((uint32_t)lane), place_make())) return 0;
    return ptx_mapa(empty_of(r, 0), (uint32_t)lane);
}

/* Tells every block whose copies come here that this warp has read the stage. */
static __device__ __forceinline__ void release(uint32_t stage, const consumer *c) {
#if CLUSTER == 1
    if (c->lane < EMPTY_ARRIVALS) ptx_mbarrier_arrive(empty_of(&c->r, stage));
#else
    if (c->empty) ptx_mbarrier_arrive_cluster(c->empty + 16 * stage);
#endif
}

#include "cuda/sm90a/gemm_factors.h"

/* Loads of factors behind the first product would let the other warpgroup's come between this one's
 * where two take turns: both then end, and promote, together. */
#define FACTORS_FIRST (GEMM_SCALES == GEMM_ROW_BLOCK && SUBTILES == 2)

/* Starts the products of one stage and subtile, and loads their factors meanwhile. */
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

/* ---- promote: total += factors * sum ---- */

/* Two scales become one factor. Below 2^-104 fp32's last place, 2^-149, may be more of a term
 * (e5m2: down to 2^-32 of the factor) than the bound allows, from 2^64 on sums (of 2^31 products of
 * up to 2^32) may be Inf on their way: the row's results in these 128 columns are then made again
 * (store_again). Scales of 0 are harmless. */
#define LOWEST_SAFE  ((uint32_t)(127 - 104) << 23)
#define HIGHEST_SAFE ((uint32_t)(127 + 64) << 23)
static __device__ __forceinline__ bool is_safe(float a, float b) {
    return (__float_as_uint(a * b) & 0x7fffffff) - LOWEST_SAFE < HIGHEST_SAFE - LOWEST_SAFE ||
           a == 0 || b == 0;
}

/* What watch_factors has seen. */
static __device__ __forceinline__ bool are_factors_safe(const consumer *c) {
    return c->least >= LOWEST_SAFE && c->most < HIGHEST_SAFE;
}

#if GEMM_SCALES == GEMM_ROW_BLOCK
/* Two instructions, where asking is_safe takes a dozen: only tiles whose factors' bits leave the
 * range of safe ones, as 0 and negative ones do too, ask it afterwards, of each row. */
static __device__ __forceinline__ void watch_factors(consumer *c, const float *by) {
    const uint32_t up = __float_as_uint(by[0]), down = __float_as_uint(by[1]);
    c->least = min(min(up, down), c->least);
    c->most = max(max(up, down), c->most);
}

static __device__ __forceinline__ void promote(consumer *c, uint32_t subtile, float *total,
                                               float *sum, factors f) {
    hold(sum);
    float by[COL_BLOCKS][2];
#    pragma unroll
    for (int i = 0; i < COL_BLOCKS; i++) {
        by[i][0] = f.row[0] * f.col[i];
        by[i][1] = f.row[1] * f.col[i];
        watch_factors(c, by[i]);
    }
#    pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++) {
        const float factor = by[0][i % 4 / 2], other = by[COL_BLOCKS - 1][i % 4 / 2];
        total[i] = fmaf(block_of(c, i) ? other : factor, sum[i], total[i]);
    }
}
#elif GEMM_SCALES == GEMM_ROW_ROW
/* Four values (two rows, two columns) at a time. */
static __device__ __forceinline__ void promote_each(consumer *c, uint32_t subtile, float *total,
                                                    const float *sum, const factors *f,
                                                    bool checked) {
#    pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        ptx_load_shared_f32x2(f->cols + 8 * i, col);
#    pragma unroll
        for (int j = 0; j < 4; j++) {
            float row = f->row[j / 2];
            if (checked && !is_safe(row, col[j % 2])) c->unsafe |= 1 << (2 * subtile + j / 2);
            total[i + j] = fmaf(row * col[j % 2], sum[i + j], total[i + j]);
        }
    }
}

static __device__ __forceinline__ void promote(consumer *c, uint32_t subtile, float *total,
                                               float *sum, factors f) {
    hold(sum);
    if (f.moderate)
        promote_each(c, subtile, total, sum, &f, false);
    else
        promote_each(c, subtile, total, sum, &f, true);
}
#endif

/* ---- the main loop: total += the piece ---- */

/* step(stage) for stage 0, 1, ... STAGES - 1, 0, ... until it returns 0. Written out, because the
 * compiler does not unroll loops around wgmma by itself, and `stage` must be a constant. */
#define FOR_STAGES(step)                                                                           \
    while ((step(0)) && (step(1)) && (STAGES < 3 || (step(2))) && (STAGES < 4 || (step(3))) &&     \
           (STAGES < 5 || (step(4))) && (STAGES < 6 || (step(5))) && (STAGES < 7 || (step(6))) &&  \
           (STAGES < 8 || (step(7))) && (STAGES < 9 || (step(8))) && (STAGES < 10 || (step(9))) && \
           (STAGES < 11 || (step(10))) && (STAGES < 12 || (step(11)))) {                           \
    }
static_assert(STAGES >= 2 && STAGES <= 12, "as many as FOR_STAGES has");

/* What the main loop carries from step to step. */
typedef struct progress {
    int32_t left; /* k blocks to come */
    uint32_t last, tested;
} progress;

#if GEMM_SCALES == GEMM_UNSCALED
/* Sums stay in the tensor cores' accumulators from the first k block to the last; a stage is given
 * back one later, so that the next products are queued before the last are awaited. */
static __device__ __forceinline__ int multiply_stage(consumer *c, float (*total)[ACCUMULATORS],
                                                     progress *now, uint32_t stage) {
    if (now->left-- == 0) return 0;
    wait_full(&c->r, stage, 0);
#    pragma unroll
    for (uint32_t s = 0; s < SUBTILES; s++)
        start(c, total[s], stage, s, 1);
    PTX_WGMMA_WAIT(SUBTILES);
    release(stage_before(stage), c);
    now->last = stage;
    return 1;
}

static __device__ __forceinline__ void multiply(consumer *c, float (*total)[ACCUMULATORS],
                                                work piece) {
    progress now;
    now.left = piece.k_end - piece.k_begin - 1;
    now.last = 0;
#    pragma unroll
    for (int s = 0; s < SUBTILES; s++)
        hold(total[s]);
    wait_full(&c->r, 0, 0);
#    pragma unroll
    for (uint32_t s = 0; s < SUBTILES; s++)
        start(c, total[s], 0, s, piece.k_begin > 0);
#    define STEP(i) multiply_stage(c, total, &now, (i + 1) % STAGES)
    FOR_STAGES(STEP)
#    undef STEP
    PTX_WGMMA_WAIT(0);
    release(now.last, c);
#    pragma unroll
    for (int s = 0; s < SUBTILES; s++)
        hold(total[s]);
}
#elif PARTIALS == 1
/* What a step does with the sum of a subtile and k block: scale and add, or, with `even`, add as it
 * is. Where a row's scale is the same everywhere that gives the same bits, and leaves the
 * multiprocessor half of the instructions; the scales of the last k block are those of all. */
static __device__ __forceinline__ void add_sum(consumer *c, uint32_t subtile, float *total,
                                               float *sum, factors f, bool even) {
    if (!even) {
        promote(c, subtile, total, sum, f);
        return;
    }
    hold(sum);
#    pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++)
        total[i] += sum[i];
}

/* The scales at last, where a tile ends. */
static __device__ __forceinline__ void scale_even(const consumer *c, uint32_t subtile,
                                                  uint32_t stage, float *total) {
    const factors f = factors_of(c, stage, subtile);
#    pragma unroll
    for (int i = 0; i < ACCUMULATORS; i += 4) {
        float col[2];
        ptx_load_shared_f32x2(f.cols + 8 * i, col);
#    pragma unroll
        for (int j = 0; j < 4; j++)
            total[i + j] *= f.row[j / 2] * col[j % 2];
    }
}

/* Ends the products of a stage, of which the first subtile's are under way, and gives it back once
 * its scales have been read; but not the last one of an even piece, whose are to come. Whether
 * there is another stage. */
static __device__ __forceinline__ int end_stage(consumer *c, float (*total)[ACCUMULATORS],
                                                float *sum, factors f, progress *now,
                                                uint32_t stage, bool even) {
    const bool more = --now->left > 0, read = GEMM_SCALES != GEMM_ROW_ROW || even;
    now->last = stage;
#    pragma unroll
    for (int s = 0; s < SUBTILES; s++) {
        const bool all = s + 1 == SUBTILES;
        PTX_WGMMA_WAIT(0);
        if (all && read && (more || !even)) release(stage, c);
        if (all) now->tested = more ? is_full(&c->r, stage_after(stage)) : 0;
        add_sum(c, (uint32_t)s, total[s], sum, f, even);
        if (!all) f = start(c, sum, stage, (uint32_t)s + 1, 0);
    }
    if (!read) release(stage, c);
    return more;
}

static __device__ __forceinline__ void end_even(consumer *c, float (*total)[ACCUMULATORS],
                                                const progress *now, const work *piece) {
#    pragma unroll
    for (int s = 0; s < SUBTILES && piece->k_end == c->p->k_blocks; s++)
        scale_even(c, (uint32_t)s, now->last, total[s]);
    release(now->last, c);
}

#    if GEMM_EARLY
/* Ends the stage that is under way and starts the next one. */
static __device__ __forceinline__ int go_on(consumer *c, float (*total)[ACCUMULATORS], float *sum,
                                            factors *f, progress *now, uint32_t stage, bool even) {
    if (!end_stage(c, total, sum, *f, now, stage, even)) return 0;
    wait_full(&c->r, stage_after(stage), now->tested);
    *f = start(c, sum, stage_after(stage), 0, 0);
    return 1;
}
#    else
static __device__ __forceinline__ int go_on(consumer *c, float (*total)[ACCUMULATORS], float *sum,
                                            factors *f, progress *now, uint32_t stage, bool even) {
    wait_full(&c->r, stage, now->tested);
    *f = start(c, sum, stage, 0, 0);
    return end_stage(c, total, sum, *f, now, stage, even);
}
#    endif

/* GEMM_SHORT: of the consumers; shuffled, for addresses in uniform registers. */
static __device__ __forceinline__ uint32_t next_stage(ring *r) {
    const uint32_t stage = __shfl_sync(0xffffffff, r->next, 0);
    r->next = stage_after(stage);
    return stage;
}

/* With GEMM_EARLY the first products are under way, into `sum`; f: their factors. */
static __device__ __forceinline__ void multiply_from(consumer *c, float (*total)[ACCUMULATORS],
                                                     float *sum, factors f, const work *piece) {
    progress now;
    now.left = piece->k_end - piece->k_begin;
    now.tested = 1;
#    define STEP(i) go_on(c, total, sum, &f, &now, i, false)
#    define EVEN(i) go_on(c, total, sum, &f, &now, i, true)
#    if EVENS
    if (c->even) {
        FOR_STAGES(EVEN)
        end_even(c, total, &now, piece);
        return;
    }
#    endif
#    if GEMM_SHORT
    while (go_on(c, total, sum, &f, &now, next_stage(&c->r), false)) {
    }
#    else
    FOR_STAGES(STEP)
#    endif
#    undef STEP
#    undef EVEN
}

#    if !GEMM_EARLY
static __device__ __forceinline__ void multiply(consumer *c, float (*total)[ACCUMULATORS],
                                                work piece) {
    float sum[ACCUMULATORS];
    const factors none = {{1, 1}, {1, 1}, 0, true};
    multiply_from(c, total, sum, none, &piece);
}
#    endif
#else
/* Two sums alternate: while one is promoted the tensor cores work on the other. */
static_assert(SUBTILES == 1 && STAGES % 2 == 0, "a stage always meets the same sum");

static __device__ __forceinline__ void promote_stage(consumer *c, float *total, float *sum,
                                                     uint32_t stage, factors f) {
    if (GEMM_SCALES != GEMM_ROW_ROW) release(stage, c);
    promote(c, 0, total, sum, f);
    if (GEMM_SCALES == GEMM_ROW_ROW) release(stage, c);
}

/* Queues a stage into `sum`, then promotes the one before it. */
static __device__ __forceinline__ factors multiply_stage(consumer *c, float *total, float *sum,
                                                         float *sum_before, factors before,
                                                         progress *now, uint32_t stage) {
    wait_full(&c->r, stage, now->tested);
    factors f = start(c, sum, stage, 0, 0);
    PTX_WGMMA_WAIT(1);
    now->left--;
    now->tested = now->left > 0 ? is_full(&c->r, stage_after(stage)) : 0;
    promote_stage(c, total, sum_before, now->last, before);
    now->last = stage;
    return f;
}

/* Two stages, an odd and an even one, so that the loop is left with one and the same sum under way.
 */
static __device__ __forceinline__ int multiply_pair(consumer *c, float *total, float *even,
                                                    float *odd, factors *f, progress *now,
                                                    uint32_t stage) {
    if (now->left < 2) return 0;
    now->last = stage_before(stage);
    factors g = multiply_stage(c, total, odd, even, *f, now, stage);
    *f = multiply_stage(c, total, even, odd, g, now, stage_after(stage));
    return 1;
}

static __device__ __forceinline__ void multiply(consumer *c, float (*total)[ACCUMULATORS],
                                                work piece) {
    float even[ACCUMULATORS], odd[ACCUMULATORS];
    progress now;
    now.left = piece.k_end - piece.k_begin - 1;
    now.last = now.tested = 0;
    wait_full(&c->r, 0, 0);
    factors f = start(c, even, 0, 0, 0);
#    define STEP(i)                                                                                \
        (2 * (i) >= STAGES || multiply_pair(c, total[0], even, odd, &f, &now, 2 * (i) + 1))
    FOR_STAGES(STEP)
#    undef STEP
    if (now.left) {
        factors g = multiply_stage(c, total[0], odd, even, f, &now, stage_after(now.last));
        PTX_WGMMA_WAIT(0);
        promote_stage(c, total[0], odd, now.last, g);
    } else {
        PTX_WGMMA_WAIT(0);
        promote_stage(c, total[0], even, now.last, f);
    }
}
#endif
