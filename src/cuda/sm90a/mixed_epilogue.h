/* This is the epilogue of the mixed-input kernels (mixed_kernels.h). The thread blocks of a cluster
 * compute the same tile of D. They divide K, and in each thread block groups of warps divide K
 * again. Each group has accumulators for all results of the tile, for its range of K. A result is
 * the sum of these accumulators.
 *
 * For the epilogue, the thread blocks divide the results of the tile. A thread block reads the
 * accumulators of its results from the shared memory of all thread blocks of the cluster. It begins
 * with its own, goes on with those of the next higher ranks, and after the last rank continues with
 * rank 0. A thread computes four adjacent results of a row of D at a time. */
#ifndef BSMM_CUDA_SM90A_MIXED_EPILOGUE_H
#define BSMM_CUDA_SM90A_MIXED_EPILOGUE_H

#include "cuda/ptx/convert.h"
#include "cuda/ptx/prefetch.h"
#include "cuda/sm90a/mixed_stage.h"
#include "cuda/sm90a/small_m_epilogue.h"

enum { MIXED_RUN = BSMM_MIXED_RUN };

/* Returns true if the magnitudes of all four numbers lie between two positive floats. `low` and
 * `high` are the bits of these floats. Positive floats have the same order as their bits, and the
 * bits of NaN are above the bits of all numbers. */
static __device__ __forceinline__ bool mixed_within(const float v[MIXED_RUN], uint32_t low,
                                                    uint32_t high) {
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < MIXED_RUN; i++)
        most = max(most, (__float_as_uint(v[i]) & 0x7fffffffu) - low);
    return most <= high - low;
}

/* Returns log2 of a limit. An accumulator whose magnitude is at least the limit is accurate. A
 * smaller one may have lost terms to underflow and must be computed again. The limit is higher if
 * the kernel multiplies accumulators by scales along K (`grouped`), because a scale of up to 2^62
 * enlarges the error that a lost term leaves. */
static __device__ __forceinline__ int mixed_least_log2(const bool grouped) {
    return grouped ? -60 : -118;
}

/* Returns true if the accumulators of four results are accurate and not 0. */
static __device__ __forceinline__ bool mixed_trusts(const float v[MIXED_RUN], const bool grouped) {
    return mixed_within(v, (uint32_t)(127 + mixed_least_log2(grouped)) << 23, (127 + 127) << 23);
}

/* Tells how the fast path of the epilogue makes results. A result is an accumulator times an fp32
 * factor. */
typedef struct mixed_fast {
    /* `factors` holds the factors of four adjacent results. Decoded weights are smaller than the
     * true weights by a power of two; the factors contain this power, so that it cancels. */
    float factors[MIXED_RUN];
    bool exact; /* `exact` is true if all factors are powers of two, so that products are exact. */
    bool
        whole; /* `whole` is true if a store of 8 or 16 bytes may write all four results at once. */
} mixed_fast;

/* Returns a lower limit of the magnitude of a nonzero number of a row of A, or 2^127 if all are
 * zeros. The kernel mixed_prepare has stored such a limit for each part of the row. */
static __device__ __forceinline__ float mixed_least_of_a(const bsmm_small_m_params *p,
                                                         uint32_t row) {
    uint32_t least = ~0u;
#pragma unroll 8
    for (uint32_t i = 0; i < p->blocks_per_row; i++)
        least = min(least, p->a_image_any[row * p->blocks_per_row + i]);
    return least == ~0u ? 0x1p127f : __uint_as_float((least + 1) << 16);
}

/* A result whose accumulator is 0 may be wrong, because products may have underflowed to 0. To find
 * out, the epilogue needs the smallest magnitude that a nonzero weight in the result's row of B may
 * have. This is the row's smallest scale times the smallest nonzero element of the format. The
 * function computes it for row j of the thread's four rows of B if bit j of `zeros` is set, i.e. if
 * the row's accumulator is 0. All lanes of a warp work together on one row at a time. */
static __device__ __forceinline__ void mixed_least_of_b(const bsmm_small_m_params *p, uint32_t col,
                                                        uint32_t zeros, const bool grouped,
                                                        float least[MIXED_RUN]) {
#pragma unroll
    for (uint32_t j = 0; j < MIXED_RUN; j++) {
        /* An accumulator does not include an fp32 scale that covers a whole row of B, so this scale
         * cannot make a product underflow. */
        least[j] = p->zero_least;
        if (p->b.scale == BSMM_SCALE_F32 && !grouped) continue;
        uint32_t todo = __ballot_sync(0xffffffffu, zeros >> j & 1);
        while (todo) {
            const int lane = __ffs((int)todo) - 1;
            const float scale =
                small_m_least_scale(&p->b, __shfl_sync(0xffffffffu, col + j, lane),
                                    p->b_scale_pitch, p->zero_b_scales, p->k, p->zero_block);
            if ((int)(threadIdx.x % 32) == lane) least[j] = scale * p->zero_least;
            todo &= todo - 1;
        }
    }
}

/* Stores D(row, col), or nothing if `wanted` is false. `sum` is the accumulator of D(row, col). All
 * lanes of a warp call this function together. If the accumulator may be wrong, the function
 * recomputes the result in double. An accumulator of 0 is right if no product of nonzero numbers
 * can have underflowed. `least` is a lower limit of the magnitude of such a product. `factor` is
 * the product of the fp32 scale of A's row and the fp32 scale of B's row. It is exact in double. A
 * row without such a scale counts as having the scale 1. */
static __device__ __noinline__ void mixed_store_slow(const bsmm_small_m_params *p,
                                                     const bsmm_gpu_epilogue_factors factors,
                                                     bool wanted, uint32_t row, uint32_t col,
                                                     float sum, float least, bool grouped,
                                                     double unfold, double factor) {
    /* An accumulator of 0 is right if no product of nonzero numbers has underflowed. `least` is a
     * lower limit of the magnitude of such a product. But decoded weights are smaller than the true
     * weights, and a result is its accumulator times `unfold`, which is at most 2^27. In the
     * accumulator the product may therefore be as small as least / 2^27. It has not underflowed if
     * this is at least `smallest`, the smallest magnitude of a trusted accumulator. With fp32
     * scales along K, `unfold` is 1, and `least` itself is compared. */
    const float smallest = bsmm_pow2(mixed_least_log2(grouped));
    const bool trusts = (fabsf(sum) >= smallest && fabsf(sum) <= 0x1p127f) ||
                        (sum == 0 && least >= smallest * (grouped ? 1 : 0x1p27f));
    /* A negative factor may turn 0 into -0. Adding 0.0 turns -0 into +0. */
    double value = wanted ? sum * unfold * factor + 0.0 : 0;
    const bool doubtful = wanted && (!trusts || !isfinite(factor));
    value = small_m_repair(p, doubtful, row, col, value);
    if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, row, col, value);
}

/* Returns the fp32 scale of row `row` of A, or 1 if A has no scales of whole rows. The kernel
 * mixed_prepare has stored these scales. `may` is a constant, and is false in kernels that never
 * get such an A. */
static __device__ __forceinline__ float mixed_factor_of_a(const bsmm_small_m_params *p,
                                                          const bool may, uint32_t row) {
    return may && p->row_scaled ? p->a_image_scales[row] : 1;
}

/* Returns the fp32 scale of row `row` of B, which applies to all of K. Returns 1 if `row` lies past
 * the last row of B. */
static __device__ __forceinline__ float mixed_row_factor(const bsmm_small_m_params *p,
                                                         uint32_t row) {
    return row < p->n ? bsmm_gpu_scale(&p->b, row, 0) : 1;
}

/* Describes which results a thread stores. It stores runs: MIXED_RUN adjacent columns of D,
 * beginning with column `col`, in some rows of the thread block's tile. These are the rows first,
 * first + step, first + 2 step and so on below `count`. */
typedef struct mixed_runs {
    uint32_t col, first, step, count;
    /* The thread block's accumulators lie in shared memory, row after row of its tile of D, with
     * `row_bytes` bytes from one row to the next. `from` is the address of the accumulators of the
     * thread's MIXED_RUN columns in the first row of the tile. */
    uint32_t from, row_bytes;
    /* A result is the sum of `terms` accumulators, because K is divided among the thread blocks of
     * the cluster, and in each thread block among groups of warps. Each group has one of these
     * accumulators, in the shared memory of its thread block. There, the accumulators of a group
     * begin `group_bytes` bytes after those of the group before. */
    uint32_t terms, group_bytes;
    uint32_t rank; /* `rank` is the number of this thread block in its cluster. */
} mixed_runs;

enum {
    /* MIXED_AT_ONCE is the number of runs (groups of adjacent results in a row of D) that the fast
     * path stores at once. */
    MIXED_AT_ONCE = 4,
    /* MIXED_LOADS is the number of loads of accumulators that a thread has in flight in
     * mixed_collect_most. */
    MIXED_LOADS = 8,
};

/* Loads one accumulator of each result of `count` runs. A run is MIXED_RUN adjacent results of a
 * row of D. Run r lies in row i[r] of the tile, and to[r] receives the accumulators of its results.
 * If row i[r] lies past the thread's last row, to[r] becomes zeros.
 *
 * The thread blocks of a cluster have divided K, so each of them has one or more accumulators of a
 * result. `term` is the number of the accumulator that is loaded. A thread block numbers its own
 * accumulators first, then those of the next rank, and so on. At any time, the thread blocks
 * therefore read from different ranks. If they all began with rank 0, they would wait for the
 * shared memory of rank 0, while that of the other ranks would be idle. */
static __device__ __forceinline__ void mixed_load(const int count, const bsmm_small_m_params *p,
                                                  const mixed_runs *runs, uint32_t term,
                                                  const uint32_t *i, float4 *to) {
    const uint32_t group = term & ((1u << p->k_warps_log2) - 1);
    const uint32_t next = runs->rank + (term >> p->k_warps_log2);
    const uint32_t rank = next < p->splits ? next : next - p->splits;
    const uint32_t from = ptx_grid_mapa(runs->from, rank) + group * runs->group_bytes;
#pragma unroll
    for (int r = 0; r < count; r++) {
        to[r] = make_float4(0, 0, 0, 0);
        if (i[r] < runs->count) to[r] = ptx_grid_load_f32x4(from + i[r] * runs->row_bytes);
    }
}

static __device__ __forceinline__ void mixed_accumulate(const int count, const float4 *term,
                                                        float (*v)[MIXED_RUN]) {
#pragma unroll
    for (int r = 0; r < count; r++) {
        v[r][0] += term[r].x;
        v[r][1] += term[r].y;
        v[r][2] += term[r].z;
        v[r][3] += term[r].w;
    }
}

/* Adds up the accumulators of each result of `count` runs, in rows i[0], i[1] and so on of the
 * tile. A run is MIXED_RUN adjacent results of a row of D. Loads from the shared memory of another
 * thread block have a long latency, so `terms` accumulators of each result are loaded at once. */
static __device__ __forceinline__ void mixed_collect(const int count, const uint32_t terms,
                                                     const bsmm_small_m_params *p,
                                                     const mixed_runs *runs, const uint32_t *i,
                                                     float (*v)[MIXED_RUN]) {
    float4 loaded[MIXED_LOADS][MIXED_AT_ONCE];
#pragma unroll
    for (int r = 0; r < count; r++)
        v[r][0] = v[r][1] = v[r][2] = v[r][3] = 0;
#pragma unroll 1
    for (uint32_t n = 0; n < runs->terms; n += terms) {
#pragma unroll
        for (uint32_t t = 0; t < terms; t++)
            if (n + t < runs->terms) mixed_load(count, p, runs, n + t, i, loaded[t]);
#pragma unroll
        for (uint32_t t = 0; t < terms; t++)
            if (n + t < runs->terms) mixed_accumulate(count, loaded[t], v);
    }
}

/* Adds up the accumulators of up to MIXED_AT_ONCE runs, in rows i[0], i[1] and so on of the tile.
 * If the cluster has many thread blocks, each of them stores few results, and a thread may have
 * only one run. The thread then loads MIXED_LOADS accumulators of each result of this run at once,
 * and the other runs in `v` become zeros. */
static __device__ __forceinline__ void mixed_collect_most(const bsmm_small_m_params *p,
                                                          const mixed_runs *runs, const uint32_t *i,
                                                          float (*v)[MIXED_RUN]) {
    if (runs->count > runs->step) {
        mixed_collect(MIXED_AT_ONCE, MIXED_LOADS / MIXED_AT_ONCE, p, runs, i, v);
        return;
    }
#pragma unroll
    for (int r = 1; r < MIXED_AT_ONCE; r++)
        v[r][0] = v[r][1] = v[r][2] = v[r][3] = 0;
    mixed_collect(1, MIXED_LOADS, p, runs, i, v);
}

static_assert(256 * 128 / (BSMM_MIXED_THREADS(256) * MIXED_RUN) <= 32,
              "a thread has more runs than mixed_store_most has bits for");
static_assert(BSMM_MIXED_MOST_GROUPS == 2, "mixed_collect_own adds the sums of at most two groups");

/* Adds up the accumulators of MIXED_AT_ONCE runs. A run is MIXED_RUN adjacent results of a row of
 * D, and the runs lie in rows i[0], i[1] and so on of the tile. A result has one or two
 * accumulators, one for each group of warps among which the thread block divides K. The function is
 * used if K is not divided among several thread blocks, so that all accumulators are in this thread
 * block's shared memory. If i[r] is past the thread's last row, run r repeats the last row. */
static __device__ __forceinline__ void mixed_collect_own(const mixed_runs *runs, const uint32_t *i,
                                                         float (*v)[MIXED_RUN]) {
    const uint8_t *const from = small_m_shared + (runs->from - small_m_address(small_m_shared));
#pragma unroll
    for (int r = 0; r < MIXED_AT_ONCE; r++) {
        const uint8_t *const mine = from + min(i[r], runs->count - 1) * runs->row_bytes;
        const float4 sum = *(const float4 *)mine;
        v[r][0] = sum.x, v[r][1] = sum.y, v[r][2] = sum.z, v[r][3] = sum.w;
        if (runs->terms == 1) continue;
        const float4 more = *(const float4 *)(mine + runs->group_bytes);
        v[r][0] += more.x, v[r][1] += more.y, v[r][2] += more.z, v[r][3] += more.w;
    }
}

/* Multiplies the accumulators of MIXED_AT_ONCE runs by their factors. A run is MIXED_RUN adjacent
 * results of a row of D. Result j of run r has the factor fast->factors[j] * row_factor[r], where
 * row_factor[r] is the fp32 scale of the run's row of A, or 1 if A has no such scales.
 *
 * If all factors are powers of two (`inexact` is false or fast->exact is true), the products are
 * exact. Otherwise they are rounded. If D has fp32 elements (`wide` is true), this is the only
 * rounding. If D has 16-bit elements, the products are rounded to odd in fp32. The later rounding
 * to 16 bits then gives the same result as one rounding of the exact product. The function also
 * clears bit r of *fits if the magnitude of a rounded product of run r is below 2^-100 or above
 * 2^126, because the rounding may then be wrong. */
static __device__ __forceinline__ void mixed_scale_runs(const mixed_fast *fast, const bool inexact,
                                                        bool wide, const float *row_factor,
                                                        float (*v)[MIXED_RUN], uint32_t *fits) {
    if (!inexact || fast->exact) {
#pragma unroll
        for (int r = 0; r < MIXED_AT_ONCE; r++)
#pragma unroll
            for (int j = 0; j < MIXED_RUN; j++)
                v[r][j] *= fast->factors[j];
        return;
    }
#pragma unroll
    for (int r = 0; r < MIXED_AT_ONCE; r++) {
#pragma unroll
        for (int j = 0; j < MIXED_RUN; j++) {
            /* If row_factor[r] is a scale of A, fast->factors[j] is a power of two, so this product
             * is exact. */
            const float factor = fast->factors[j] * row_factor[r];
            v[r][j] = wide ? v[r][j] * factor : small_m_times_odd(v[r][j], factor);
        }
        if (!mixed_within(v[r], (127 - 100) << 23, (127 + 126) << 23)) *fits &= ~(1u << r);
    }
}

/* Stores four adjacent results of a row of D. `to` is the address of the first one, and the others
 * follow at a distance of `step` bytes. D has fp32 elements if `wide` is true, else elements of 16
 * bits (bf16 if `bf16` is true, else f16). If `whole` is true, the results are next to each other,
 * and one store may write them. */
static __device__ __forceinline__ void mixed_store_run(uint8_t *to, uint64_t step, bool wide,
                                                       bool bf16, bool whole,
                                                       const float v[MIXED_RUN]) {
    uint2 codes;
    codes.x = bf16 ? bsmm_ptx_cvt_bf16x2(v[1], v[0]) : bsmm_ptx_cvt_f16x2(v[1], v[0]);
    codes.y = bf16 ? bsmm_ptx_cvt_bf16x2(v[3], v[2]) : bsmm_ptx_cvt_f16x2(v[3], v[2]);
    if (whole && !wide) {
        *(uint2 *)to = codes;
    } else if (whole) {
        *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int i = 0; i < MIXED_RUN; i++, to += step)
            if (wide)
                *(float *)to = v[i];
            else
                *(uint16_t *)to = (uint16_t)((i < 2 ? codes.x : codes.y) >> 16 * (i % 2));
    }
}

/* Stores the results that the fast path can store. Returns a mask of the remaining results: bit n
 * is set if the thread's run number n (MIXED_RUN adjacent results of a row of D) is not stored. A
 * thread block takes more time for these instructions than for any other part of the epilogue, so
 * the loop has few of them. It calls no function, because a call would keep the compiler from
 * holding the loop's values in registers. */
static __device__ __forceinline__ uint32_t mixed_store_most(
    const bsmm_small_m_params *p, const mixed_block *block, const mixed_runs *runs,
    const mixed_fast *fast, const bool grouped, const bool rows_of_a, const bool inexact) {
    const bsmm_gpu_epilogue *e = &p->epilogue;
    const bool bf16 = e->d_elem == BSMM_ELEM_BF16, wide = e->d_elem == BSMM_ELEM_F32;
    const uint32_t bytes = wide ? 4 : 2;
    const uint64_t stride = runs->step * e->d_row * bytes;
    uint8_t *to =
        (uint8_t *)e->d + ((block->first + runs->first) * e->d_row + runs->col * e->d_col) * bytes;
    uint32_t left = 0;
#pragma unroll 1
    for (uint32_t n = 0; runs->first + n * runs->step < runs->count; n += MIXED_AT_ONCE) {
        uint32_t i[MIXED_AT_ONCE], fits = 0;
        float v[MIXED_AT_ONCE][MIXED_RUN], row_factor[MIXED_AT_ONCE];
#pragma unroll
        for (int r = 0; r < MIXED_AT_ONCE; r++) {
            i[r] = runs->first + (n + r) * runs->step;
            row_factor[r] =
                mixed_factor_of_a(p, rows_of_a, block->first + min(i[r], runs->count - 1));
        }
        if (p->splits_log2 == 0)
            mixed_collect_own(runs, i, v);
        else
            mixed_collect_most(p, runs, i, v);
#pragma unroll
        for (int r = 0; r < MIXED_AT_ONCE; r++)
            if (mixed_trusts(v[r], grouped)) fits |= 1u << r;
        mixed_scale_runs(fast, inexact, wide, row_factor, v, &fits);
#pragma unroll
        for (int r = 0; r < MIXED_AT_ONCE; r++) {
            if (i[r] < runs->count && (fits >> r & 1))
                mixed_store_run(to, e->d_col * bytes, wide, bf16, fast->whole, v[r]);
            to += stride;
        }
        left |= (~fits & ((1u << MIXED_AT_ONCE) - 1)) << n;
    }
    return left;
}

/* A thread stores up to 32 runs, each of which is MIXED_RUN adjacent results of a row of D. Returns
 * a mask whose lowest bits are set, one for each run of this thread. */
static __device__ __forceinline__ uint32_t mixed_run_bits(const mixed_runs *runs) {
    if (runs->first >= runs->count) return 0;
    const uint32_t count = (runs->count - runs->first + runs->step - 1) / runs->step;
    return ~0u >> (32 - count);
}

/* A run is MIXED_RUN adjacent results of a row of D, and run n of the thread is in row first + n *
 * step of its tile. All runs of a thread have the same columns of D, i.e. the same MIXED_RUN rows
 * of B. Returns a mask of these rows: bit j is set if a result for row j is an accumulator of 0.
 * Only runs whose bits are set in `left` count. */
static __device__ __forceinline__ uint32_t mixed_find_zeros(const bsmm_small_m_params *p,
                                                            const mixed_runs *runs, uint32_t left) {
    uint32_t zeros = 0;
#pragma unroll 1
    for (uint32_t n = 0; n < 32 && left >> n != 0; n++) {
        const uint32_t row = runs->first + (left >> n & 1 ? n : 0) * runs->step;
        float v[1][MIXED_RUN];
        mixed_collect(1, 2, p, runs, &row, v);
#pragma unroll
        for (uint32_t j = 0; j < MIXED_RUN; j++)
            if ((left >> n & 1) && v[0][j] == 0 && runs->col + j < p->n) zeros |= 1u << j;
    }
    return zeros;
}

/* Stores the results that the fast path of the epilogue has not stored, through the general
 * epilogue. A thread's results are runs of four adjacent results of a row of D. Bit n of `left` is
 * set if the thread's run number n is not stored yet. The four results of a run belong to the same
 * four rows of B in all runs of the thread; `scales` are the fp32 scales of these rows. All lanes
 * of a warp call this function together. */
static __device__ __forceinline__ void
mixed_store_left(const bsmm_small_m_params *p, const mixed_block *block, const mixed_runs *runs,
                 const bsmm_gpu_epilogue_factors *factors, const float scales[MIXED_RUN],
                 double unfold, const bool grouped, const bool rows_of_a, uint32_t left) {
    float least[MIXED_RUN];
    mixed_least_of_b(p, runs->col, mixed_find_zeros(p, runs, left), grouped, least);
#pragma unroll 1
    for (uint32_t n = 0; n < 32 && __any_sync(0xffffffffu, left >> n != 0); n++) {
        const bool here = left >> n & 1;
        const uint32_t i = runs->first + (here ? n : 0) * runs->step, row = block->first + i;
        float v[1][MIXED_RUN];
        mixed_collect(1, 2, p, runs, &i, v);
        const bool zero = v[0][0] == 0 || v[0][1] == 0 || v[0][2] == 0 || v[0][3] == 0;
        const float least_of_a = here && zero ? mixed_least_of_a(p, row) : 0;
        const double row_factor = mixed_factor_of_a(p, rows_of_a && here, row);
#pragma unroll
        for (uint32_t j = 0; j < MIXED_RUN; j++)
            mixed_store_slow(p, *factors, here && runs->col + j < p->n, row, runs->col + j, v[0][j],
                             least_of_a * least[j], grouped, unfold, scales[j] * row_factor);
    }
}

/* Prefetches into L2 the second-level scales of A, B and D and, if `scaled` is true, the fp32
 * scales of the thread block's rows of B. Only the epilogue needs these numbers, and it would
 * otherwise wait for device memory. */
static __device__ __forceinline__ void
mixed_prefetch_factors(const bsmm_small_m_params *p, const mixed_block *block, const bool scaled) {
    if (threadIdx.x < 3 && p->plain != BSMM_SMALL_M_PLAIN) {
        const float *const global = p->epilogue.globals[threadIdx.x];
        if (global) ptx_prefetch_l2(global);
    }
    const uint32_t row = block->row + threadIdx.x * 8;
    if (scaled && threadIdx.x * 8 < block->rows && row < p->n)
        ptx_prefetch_l2((const float *)p->b.scales + bsmm_axis_at(&p->b.row_map, row));
}

/* Adds the accumulators of all warpgroups and thread blocks that split K, and stores the results of
 * this thread block. `scaled` means that each row of B has one fp32 scale. `grouped` means that
 * fp32 scales of B along K have multiplied the accumulators. `rows_of_a` means that the kernel also
 * takes an A with one fp32 scale per row. `inexact` means that the epilogue often multiplies
 * results by numbers that are no powers of two, so that the fast path has code for such
 * multiplications. */
static __device__ __forceinline__ void
mixed_epilogue(const bsmm_small_m_params *p, const mixed_block *block, const uint32_t columns,
               uint32_t pitch, const double unfold, const bool scaled, const bool grouped,
               const bool rows_of_a, const bool inexact) {
    /* A run is MIXED_RUN adjacent results of a row of D. Each row of the tile has several runs, and
     * each thread block of a cluster stores p->run_width of them; the last thread block stores the
     * runs that are left. Each thread stores one run of a row, so the thread block stores
     * p->run_step rows at a time. Threads that this leaves without a run have no results. */
    mixed_runs runs;
    runs.first = threadIdx.x * p->run_inverse >> 16;
    runs.step = p->run_step;
    const uint32_t inner = ((block->rank - runs.first) * p->run_width + threadIdx.x) * MIXED_RUN;
    runs.col = block->row + inner;
    runs.count =
        inner < block->rows && runs.col < p->n && runs.first < runs.step ? block->count : 0;
    runs.from = small_m_address(small_m_shared) + inner * 4;
    runs.row_bytes = pitch * 4;
    runs.group_bytes = columns * pitch * 4;
    runs.terms = p->splits << p->k_warps_log2;
    runs.rank = block->rank;

    const bsmm_gpu_epilogue *e = &p->epilogue;
    bsmm_gpu_epilogue_factors factors = {1, 1};
    if (p->plain != BSMM_SMALL_M_PLAIN) factors = bsmm_gpu_epilogue_begin(e);
    /* Besides powers of two, a result of the fast path is multiplied by one fp32 number. Depending
     * on the product, this is alpha times the second-level scales of A and B, the fp32 scale of the
     * result's row of B, or that of its row of A. If a product needs two of these numbers, the
     * general epilogue stores its results. */
    const float factor = (float)factors.factor;
    const bool rows_scaled = rows_of_a && p->row_scaled;
    const bool plain = p->plain != BSMM_SMALL_M_GENERAL && (double)factor == factors.factor &&
                       ((!scaled && !rows_scaled) || factor == 1) && runs.col + MIXED_RUN <= p->n;
    float scales[MIXED_RUN];
    mixed_fast fast;
    fast.exact = !scaled && !rows_scaled && factor == 1;
    fast.whole = e->d_col == 1 && e->d_row % MIXED_RUN == 0 &&
                 (uint64_t)e->d % (e->d_elem == BSMM_ELEM_F32 ? 16 : 8) == 0;
#pragma unroll
    for (int i = 0; i < MIXED_RUN; i++) {
        scales[i] = scaled ? mixed_row_factor(p, runs.col + i) : 1;
        fast.factors[i] = (scaled ? scales[i] : factor) * (float)unfold;
    }
    small_m_sync(p);
    uint32_t left = ~0u;
    if (plain && (inexact || fast.exact))
        left = mixed_store_most(p, block, &runs, &fast, grouped, rows_of_a, inexact);
    left &= mixed_run_bits(&runs);
    if (__any_sync(0xffffffffu, left))
        mixed_store_left(p, block, &runs, &factors, scales, unfold, grouped, rows_of_a, left);
    if (p->splits_log2 == 0) return;
    /* Other thread blocks of the cluster read the accumulators in this thread block's shared
     * memory. This thread block must therefore not exit before they have read them. */
    ptx_grid_cluster_arrive_relaxed();
    ptx_grid_cluster_wait();
}

#endif
