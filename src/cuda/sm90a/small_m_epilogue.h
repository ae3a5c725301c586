/* This is the epilogue of the small-M kernels (few rows of A). K is split among warps and among the
 * thread blocks of a cluster. The epilogue adds their accumulators in the order of K and stores the
 * results. */
#ifndef BSMM_CUDA_SM90A_SMALL_M_EPILOGUE_H
#define BSMM_CUDA_SM90A_SMALL_M_EPILOGUE_H

#include "cuda/ptx/grid.h"
#include "cuda/sm90a/small_m_params.h"
#include "cuda/sm90a/small_m_stage.h"

/* K is split among up to SMALL_M_TERMS warps of a thread block, so a result is the sum of up to
 * SMALL_M_TERMS accumulators (terms) in each thread block. */
enum { SMALL_M_TERMS = 8 };

/* Loads the accumulators of one result from the shared memory of one thread block. Several warps of
 * the thread block (warps along K) compute different parts of K of the result, and each of them has
 * stored one accumulator. `from` is the address of the first warp's accumulator, and the others
 * follow every `warp_bytes` bytes. */
static __device__ __forceinline__ void small_m_load_terms(const bsmm_small_m_params *p,
                                                          const uint8_t *from, uint32_t warp_bytes,
                                                          float term[SMALL_M_TERMS]) {
#pragma unroll
    for (uint32_t i = 0; i < SMALL_M_TERMS; i++)
        if (i >> p->k_warps_log2 == 0) term[i] = *(const float *)(from + i * warp_bytes);
}

static __device__ __forceinline__ float small_m_add_terms(const bsmm_small_m_params *p, float sum,
                                                          const float term[SMALL_M_TERMS]) {
#pragma unroll
    for (uint32_t i = 0; i < SMALL_M_TERMS; i++)
        if (i >> p->k_warps_log2 == 0) sum += term[i];
    return sum;
}

/* The thread blocks of a cluster and the warps in each of them have divided K, so each has an
 * accumulator for a result. Returns the sum of all of these accumulators, added in the order of K.
 * They lie in the thread blocks' shared memory as [warp along K][column][row of B], where a column
 * is one row of A or one bf16 part of a row. While the accumulators of one thread block are added,
 * those of the next one are already being loaded, which hides the latency of the loads. */
static __device__ __forceinline__ float small_m_collect(const bsmm_small_m_params *p,
                                                        uint32_t offset, uint32_t warp_bytes) {
    const uint8_t *const own = small_m_shared + offset;
    float sum = 0, term[SMALL_M_TERMS], next[SMALL_M_TERMS];
    if (p->splits_log2 == 0) {
        small_m_load_terms(p, own, warp_bytes, term);
        return small_m_add_terms(p, sum, term);
    }
    small_m_load_terms(p, (const uint8_t *)ptx_grid_map(own, 0), warp_bytes, term);
#pragma unroll 1
    for (uint32_t rank = 1; rank < 1u << p->splits_log2; rank++) {
        small_m_load_terms(p, (const uint8_t *)ptx_grid_map(own, rank), warp_bytes, next);
        sum = small_m_add_terms(p, sum, term);
#pragma unroll
        for (uint32_t i = 0; i < SMALL_M_TERMS; i++)
            term[i] = next[i];
    }
    return small_m_add_terms(p, sum, term);
}

/* Sets the accumulators of a row of B to NaN if the main loop may have decoded a weight or a scale
 * of this row to a wrong finite number. The epilogue recomputes results that are NaN. The main loop
 * decodes two things wrongly: NaN weights, and e8m0 scales that bf16 cannot hold.
 *
 * nans[i] has bit 7 of a byte set if this thread has seen a NaN weight in its row i, and `beyond`
 * is true if the thread has seen an e8m0 scale that bf16 cannot hold. Four threads share a row, and
 * each of them has seen a quarter of its weights. A thread has the accumulators of two rows:
 * sums[s][0] and sums[s][1] belong to its row 0, and sums[s][2] and sums[s][3] to its row 1. */
static __device__ __forceinline__ void small_m_mark_nans(const int format, const int count,
                                                         const uint32_t nans[2], bool beyond,
                                                         float (*sums)[4]) {
    if (format == SMALL_M_NVFP4) return;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t any = (nans[i] & 0x80808080u) | beyond;
        any |= __shfl_xor_sync(0xffffffffu, any, 1);
        any |= __shfl_xor_sync(0xffffffffu, any, 2);
#pragma unroll
        for (int s = 0; s < count; s++)
            if (any) sums[s][2 * i] = sums[s][2 * i + 1] = __uint_as_float(0x7fc00000u);
    }
}

/* Returns true if an fp32 accumulator is accurate. A sum of a magnitude below 2^-118 may have lost
 * terms to underflow, and one above 2^127 may have overflowed. A NaN may come from a value that the
 * main loop cannot multiply. The epilogue checks such sums or computes them again in double. */
static __device__ __forceinline__ bool small_m_trusts(float sum) {
    return fabsf(sum) >= 0x1p-118f && fabsf(sum) <= 0x1p127f;
}

/* Returns true if all values of a row of A are 0. Whoever converts A to bf16 sets a flag for each
 * row that has a nonzero value. If the kernel small_m_prepare converts A, the flags are in the
 * workspace, one for each part of a row. If the thread blocks convert A themselves (a_image is
 * NULL), each thread block of the cluster converts a part of K, and its flags are in its shared
 * memory. A row is zero if all its flags are 0. */
static __device__ __forceinline__ bool small_m_row_is_zero(const bsmm_small_m_params *p,
                                                           uint32_t row) {
    uint32_t any = 0, flag = small_m_address(small_m_shared) + p->flags_at + row * 4;
    for (uint32_t rank = 0; !p->a_image && rank < 1u << p->splits_log2; rank++)
        any |= ptx_grid_load_u32(ptx_grid_mapa(flag, rank));
    for (uint32_t i = 0; p->a_image && i < p->blocks_per_row; i++)
        any |= p->a_image_any[row * p->blocks_per_row + i];
    return any == 0;
}

/* Returns the smallest nonzero magnitude of the scales of one row of an operand, or 2^127 if all
 * scales are 0. If `count` is not 0, the row has `count` scale codes of one byte, one after
 * another, and the codes of the next row begin `pitch` bytes later. If `count` is 0, the scales
 * have any layout, and each scale covers `block` of the row's k elements. Each lane of a warp reads
 * some of the scales, and all lanes return the minimum over the warp. */
static __device__ __noinline__ float small_m_least_scale(const bsmm_gpu_operand *o, uint32_t row,
                                                         uint64_t pitch, uint32_t count, uint32_t k,
                                                         uint32_t block) {
    const uint32_t lane = threadIdx.x % 32;
    const uint8_t *const codes = o->scales + row * pitch;
    /* The magnitude of a scale grows with its code, so the loop looks for the least code. An e4m3
     * code of 0 is a scale of 0, which must be ignored. The loop therefore subtracts 1 from each
     * e4m3 code in unsigned arithmetic, so that the code 0 becomes the largest number. The e8m0
     * code 0 means 2^-127, so nothing is subtracted from e8m0 codes. */
    const uint32_t skip = o->scale == BSMM_SCALE_E4M3, magnitude = skip ? 0x7f : 0xff;
    uint32_t code = ~0u, least = 0x7f000000u; /* 0x7f000000 has the bits of 2^127. */
#pragma unroll 2
    for (uint32_t i = lane; i < count; i += 32)
        code = min(code, (codes[i] & magnitude) - skip);
    if (code != ~0u)
        least = skip ? __float_as_uint(bsmm_e4m3_scale(code + 1)) : code ? code << 23 : 0x00400000u;
#pragma unroll 1
    for (uint32_t i = count ? k : lane * block; i < k; i += 32 * block) {
        const uint32_t bits = __float_as_uint(fabsf(bsmm_gpu_scale(o, row, i)));
        if (bits) least = min(least, bits);
    }
    /* Positive floats have the same order as their bits, so the minimum of the bits is the bits of
     * the smallest float. */
#pragma unroll 1
    for (int distance = 16; distance > 0; distance /= 2)
        least = min(least, __shfl_xor_sync(0xffffffffu, least, distance));
    return __uint_as_float(least);
}

/* Returns true if no nonzero product of row `row` of A and row `col` of B can have underflowed in
 * fp32. An accumulator of 0 then has lost nothing. All lanes of a warp call this function together
 * and return the same answer. */
static __device__ __forceinline__ bool small_m_keeps_products(const bsmm_small_m_params *p,
                                                              uint32_t row, uint32_t col) {
    const float a = p->row_scaled ? 1
                                  : small_m_least_scale(&p->a, row, p->a_scale_pitch,
                                                        p->zero_a_scales, p->k, p->zero_block);
    const float b =
        small_m_least_scale(&p->b, col, p->b_scale_pitch, p->zero_b_scales, p->k, p->zero_block);
    /* Accumulators are smaller than results by a factor of up to 2^27, which the epilogue applies
     * later. A product of 2^-91 or more is therefore at least 2^-118 in an accumulator, far above
     * the smallest fp32 number. */
    return p->zero_least * b * a >= 0x1p-91f;
}

/* Returns true in each lane whose accumulator must be recomputed in double. These are the lanes
 * with `doubtful` set, except those whose accumulator is 0 (`zero`) and has lost no product to
 * underflow. */
static __device__ __forceinline__ bool small_m_doubts_zero(const bsmm_small_m_params *p,
                                                           bool doubtful, bool zero, uint32_t row,
                                                           uint32_t col) {
    uint32_t left = p->zero_block ? __ballot_sync(0xffffffffu, doubtful && zero) : 0;
    while (left) {
        const int lane = __ffs((int)left) - 1;
        const bool exact = small_m_keeps_products(p, __shfl_sync(0xffffffffu, row, lane),
                                                  __shfl_sync(0xffffffffu, col, lane));
        if (exact && (int)(threadIdx.x % 32) == lane) doubtful = false;
        left &= left - 1;
    }
    return doubtful;
}

/* Recomputes results in double from A and B. The calling lane's result is D(row, col). `doubtful`
 * says that this result must be recomputed. All lanes of the warp work together on one result at a
 * time. */
static __device__ __forceinline__ double small_m_repair(const bsmm_small_m_params *p, bool doubtful,
                                                        uint32_t row, uint32_t col, double sum) {
    uint32_t left = __ballot_sync(0xffffffffu, doubtful);
    while (left) {
        int lane = __ffs((int)left) - 1;
        double again =
            bsmm_gpu_epilogue_sum_again(&p->a, &p->b, __shfl_sync(0xffffffffu, row, lane),
                                        __shfl_sync(0xffffffffu, col, lane), p->k);
        if ((int)(threadIdx.x % 32) == lane) sum = again;
        left &= left - 1;
    }
    return sum;
}

/* Waits until all accumulators of the cluster are in shared memory and visible to the threads that
 * add them. If K is not divided among thread blocks, a thread block adds only its own accumulators,
 * so __syncthreads() is enough. A cluster barrier would take 1 us longer on an H200, because it
 * also waits for all memory accesses of the calling thread. */
static __device__ __forceinline__ void small_m_sync(const bsmm_small_m_params *p) {
    if (p->splits_log2 == 0) {
        __syncthreads();
    } else {
        ptx_grid_cluster_arrive();
        ptx_grid_cluster_wait();
    }
}

/* Stores a result whose epilogue has no alpha, C or bias. `value` is an accurate accumulator
 * (small_m_trusts) times a power of two. fp32 holds this product exactly unless it overflows. A
 * product that overflows fp32 is infinite in every format of D. */
static __device__ __forceinline__ void small_m_store_plain(const bsmm_gpu_epilogue *e, uint32_t row,
                                                           uint32_t col, float value) {
    uint64_t index = row * e->d_row + col * e->d_col;
    if (e->d_elem == BSMM_ELEM_F32)
        ((float *)e->d)[index] = value;
    else
        ((uint16_t *)e->d)[index] =
            (uint16_t)(e->d_elem == BSMM_ELEM_BF16 ? bsmm_gpu_epilogue_bf16(value)
                                                   : bsmm_gpu_epilogue_f16(value));
}

/* Returns the fp32 scale of one row of A, which applies to all of K. The row's index is `first`
 * plus the number of the lane. Returns 1 if the index lies past the last row. */
static __device__ __forceinline__ float small_m_row_scale(const bsmm_small_m_params *p,
                                                          const uint32_t first) {
    const uint32_t row = first + threadIdx.x % 32;
    return row < p->m ? bsmm_gpu_scale(&p->a, row, 0) : 1;
}

/* Returns a * b in fp32, rounded to odd: the exact product is truncated to fp32, and if this loses
 * bits, the last bit of the mantissa is set to 1. Rounding the result to bf16, f16 or an 8-bit
 * format then gives the same as rounding the exact product once. The product must lie well inside
 * the range of fp32, so that its rounding error is a normal number. */
static __device__ __forceinline__ float small_m_times_odd(float a, float b) {
    float toward_zero = __fmul_rz(a, b);
    uint32_t inexact = fmaf(a, b, -toward_zero) != 0;
    return __uint_as_float(__float_as_uint(toward_zero) | inexact);
}

/* Returns true if small_m_times_odd(value, scale) gives the right result, i.e. if the product lies
 * so far from the ends of fp32's range that its rounding error is a normal number. `value` is an
 * accumulator, and `scale` is the fp32 scale of a row of A. */
static __device__ __forceinline__ bool small_m_is_inside(float value, float scale) {
    return fabsf(value) <= 0x1p127f && fabsf(value * scale) >= 0x1p-100f &&
           fabsf(value * scale) <= 0x1p126f;
}

/* Stores the product of an accumulator and the fp32 scale of A's row in D. If D has 16-bit
 * elements, the product is rounded twice: first to fp32, then to D's format. To avoid a wrong
 * result, the first rounding is to odd (small_m_times_odd). The second rounding then gives the same
 * result as one rounding of the exact product. If D is fp32, there is only one rounding. */
static __device__ __forceinline__ void small_m_store_scaled(const bsmm_gpu_epilogue *e,
                                                            uint32_t row, uint32_t col, float value,
                                                            float scale) {
    const bool wide = e->d_elem == BSMM_ELEM_F32;
    small_m_store_plain(e, row, col, wide ? value * scale : small_m_times_odd(value, scale));
}

/* Stores the results of a whole warp by the fast path for an A with one fp32 scale per row. Returns
 * false and stores nothing if one of the warp's results needs the general epilogue. */
static __device__ __forceinline__ bool
small_m_epilogue_scaled(const bsmm_small_m_params *p, bool plain, bool wanted, uint32_t row,
                        uint32_t col, float total, float scale, const double unfold) {
    const float value = total * (float)unfold;
    const bool inside = plain && small_m_trusts(total) && small_m_is_inside(value, scale);
    if (!__all_sync(0xffffffffu, inside || !wanted)) return false;
    if (wanted) small_m_store_scaled(&p->epilogue, row, col, value, scale);
    return true;
}

/* Stores D(row, col) by the general epilogue. `total` is the sum of the accumulators of D(row,
 * col). All lanes of a warp call this function together. `scaled` is true if A has one fp32 scale
 * per row and the fast path (small_m_epilogue_scaled) could not store the result. A total of 0 may
 * be wrong because of underflow. If `zeros` is true, small_m_doubts_zero decides whether such a
 * result must be computed again. If `zeros` is false, every such result is computed again. `zeros`
 * is a constant in each kernel, so a kernel with `zeros` = false does not contain the code of
 * small_m_doubts_zero. */
static __device__ __forceinline__ void
small_m_epilogue_one(const bsmm_small_m_params *p, const bsmm_gpu_epilogue_factors *factors,
                     bool plain, bool wanted, uint32_t row, uint32_t col, float total,
                     const double unfold, const bool scaled, const bool zeros) {
    const bool trusts = !scaled && plain && (small_m_trusts(total) || !wanted);
    if (__all_sync(0xffffffffu, trusts)) {
        if (wanted) small_m_store_plain(&p->epilogue, row, col, total * (float)unfold);
        return;
    }
    double sum = 0;
    bool doubtful = false, empty = false;
    if (wanted) {
        float scale = p->row_scaled ? bsmm_gpu_scale(&p->a, row, 0) : 1;
        /* If all values of A's row are 0, an accumulator of 0 is exact. B cannot have a NaN or an
         * Inf then, because 0 times NaN or Inf is NaN, and the accumulator would be NaN. */
        bool zero = total == 0 && small_m_row_is_zero(p, row);
        doubtful = !(small_m_trusts(total) || zero) || !isfinite(scale);
        empty = total == 0 && isfinite(scale);
        /* A negative scale may turn 0 into -0. Adding 0.0 turns -0 into +0. */
        sum = total * unfold * (double)scale + 0.0;
    }
    if (zeros) doubtful = small_m_doubts_zero(p, doubtful, empty, row, col);
    sum = small_m_repair(p, doubtful, row, col, sum);
    if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, factors, row, col, sum);
}

static __device__ __forceinline__ void small_m_epilogue(const bsmm_small_m_params *p,
                                                        const small_m_block *block, uint32_t rank,
                                                        const int tiles, uint32_t pitch,
                                                        const double unfold, const bool scaled,
                                                        const bool zeros) {
    /* Load the scale of A's row before the barrier, so that the wait at the barrier hides the
     * latency of the load. */
    const float row_scale = scaled ? small_m_row_scale(p, 0) : 1;
    const float later_scale = scaled && tiles > 4 ? small_m_row_scale(p, 32) : 1;
    bsmm_gpu_epilogue_factors factors = {1, 1};
    if (p->plain != BSMM_SMALL_M_PLAIN) factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    const bool plain = p->plain != BSMM_SMALL_M_GENERAL && factors.factor == 1;
    small_m_sync(p);
    const uint32_t rows = block->rows >> p->splits_log2, rows_log2 = 31 - __clz((int)rows);
    const uint32_t warp_bytes = tiles * 8 * pitch * 4;
    for (uint32_t base = 0; base < rows * p->m; base += BSMM_SMALL_M_THREADS) {
        uint32_t i = base + threadIdx.x, inner = rank * rows + (i & (rows - 1));
        /* This thread computes the element of D in this row and column. */
        uint32_t row = i >> rows_log2, col = block->row + inner;
        bool wanted = row < p->m && col < p->n;
        float total = 0;
        for (uint32_t part = 0; part < p->parts && wanted; part++)
            total += small_m_collect(p, ((row * p->parts + part) * pitch + inner) * 4, warp_bytes);
        if (scaled) {
            float scale = __shfl_sync(0xffffffffu, row_scale, (int)(row % 32));
            if (tiles > 4) {
                const float later = __shfl_sync(0xffffffffu, later_scale, (int)(row % 32));
                scale = row < 32 ? scale : later;
            }
            if (small_m_epilogue_scaled(p, plain, wanted, row, col, total, scale, unfold)) continue;
        }
        small_m_epilogue_one(p, &factors, plain, wanted, row, col, total, unfold, scaled, zeros);
    }
    if (p->splits_log2 == 0) return;
    /* Other thread blocks of the cluster read the accumulators in this thread block's shared
     * memory. This thread block must therefore not exit before they have read them. */
    ptx_grid_cluster_arrive_relaxed();
    ptx_grid_cluster_wait();
}

#endif
