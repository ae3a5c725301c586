/* The epilogues of the sm_100f kernels share these functions, which encode results, find
 * accumulators that may be wrong, and recompute results.
 *
 * An fp32 accumulator may be wrong if it is Inf or NaN, or so small that products may have been
 * lost to underflow. The warp then recomputes the result in double. An accumulator of 0 is right if
 * all elements of its row of A or of its row of B are 0. For any other accumulator of 0, the warp
 * recomputes the result too. */
#include "cuda/ptx/convert.h"
#include "cuda/sm100f/zero_row.h"

/* Returns the number of bytes of an element of D. `store` must not be BSMM_SCALED_STORE_ANY. */
static __device__ __forceinline__ uint32_t bytes_of(uint32_t store) {
    return store == BSMM_SCALED_STORE_F32 ? 4 : store <= BSMM_SCALED_STORE_F16 ? 2 : 1;
}

/* Rounds two fp32 numbers to elements of D of 16 or 8 bits. The element of `low` has the lower bits
 * of the result. */
static __device__ __forceinline__ uint32_t pack_pair(uint32_t store, float low, float high) {
    return store == BSMM_SCALED_STORE_BF16   ? bsmm_ptx_cvt_bf16x2(high, low)
           : store == BSMM_SCALED_STORE_F16  ? bsmm_ptx_cvt_f16x2(high, low)
           : store == BSMM_SCALED_STORE_E4M3 ? bsmm_ptx_cvt_e4m3x2(high, low)
                                             : bsmm_ptx_cvt_e5m2x2(high, low);
}

enum { ZERO_UNKNOWN, ZERO_YES, ZERO_NO };

/* LEAST has the fp32 bits of the smallest magnitude of an accumulator that is surely accurate. A
 * sum of products may have lost terms of up to 2^-149 to underflow. Without fp32 scales, LEAST is
 * 2^-118, i.e. 2^31 times such a term. In kernels for fp32 scales of 16-bit elements, a factor of
 * up to 2^46 multiplies the sum and thus its error, so LEAST is 2^-72. With 8-bit elements it is 0.
 * Sums of FP8 products lose no terms, and a nonzero sum times the scales that the kernel accepts
 * (2^-46 to 2^46) is a normal fp32 number. */
enum { LEAST = SCALED_GROUPS == 8 ? 0 : SCALED_GROUPS == 16 ? 0x1b800000 : 0x04800000 };

/* Returns true if an accumulator may be wrong, so that its result must be computed again in double.
 * An accumulator is accurate if it is finite and its magnitude is at least LEAST. `magnitude` has
 * the accumulator's bits without the sign. */
static __device__ __forceinline__ bool is_doubtful(uint32_t magnitude) {
    return magnitude - LEAST >= 0x7f800000u - LEAST;
}

/* Forgets which rows of A and B are known to have only zeros, because the next tile has other rows.
 * Warps 0 to 3 call this function when they begin a tile of D. */
static __device__ __forceinline__ void forget_zeros(shared *told) {
    told->zero_rows[threadIdx.x] = ZERO_UNKNOWN;
    for (uint32_t i = threadIdx.x % 32; i < TILE_N; i += 32)
        told->zero_columns[threadIdx.x / 32][i] = ZERO_UNKNOWN;
    __syncwarp();
}

/* Returns true if all elements of a row of A or B are 0. The function remembers its answer in
 * *known (ZERO_YES or ZERO_NO), so that later calls need not read the row again. */
static __device__ __forceinline__ bool is_known_zero(const bsmm_gpu_operand *o, uint32_t row,
                                                     uint32_t k, uint8_t *known) {
    uint32_t zero = *known;
    if (zero == ZERO_UNKNOWN) {
        zero = is_zero_row(o, row, k) ? ZERO_YES : ZERO_NO;
        __syncwarp();
        if (threadIdx.x % 32 == 0) *known = (uint8_t)zero;
        __syncwarp();
    }
    return zero == ZERO_YES;
}

/* Returns an accurate sum for D(row, col), whose fp32 accumulator may be wrong. If the accumulator
 * is 0 (`zero`) and the row of A or the row of B has only zeros, the sum is 0. Otherwise all lanes
 * of the warp recompute the sum together in double. */
static __device__ __forceinline__ double sum_of(const bsmm_scaled_params *p, shared *told,
                                                uint32_t row, uint32_t col, bool zero) {
    if (zero && (is_known_zero(&p->sides[0], row, p->k,
                               &told->zero_rows[threadIdx.x / TILE_M * TILE_M + row % TILE_M]) ||
                 is_known_zero(&p->sides[1], col, p->k,
                               &told->zero_columns[threadIdx.x / 32][col % TILE_N])))
        return 0;
    return bsmm_gpu_epilogue_sum_again(&p->sides[0], &p->sides[1], row, col, p->k);
}
