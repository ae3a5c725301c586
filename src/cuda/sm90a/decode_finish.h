/* The last part of a decode kernel: the sums of the warps along K, of all blocks of the cluster,
 * are added in the order of K, and stored. */
#ifndef BSMM_CUDA_DECODE_FINISH_H
#define BSMM_CUDA_DECODE_FINISH_H

#include "cuda/decode_params.h"
#include "cuda/ptx/grid.h"
#include "cuda/sm90a/decode_stage.h"

static __device__ __forceinline__ float decode_load_term(const bsmm_decode_params *p, uint32_t at,
                                                         uint32_t warp_bytes, uint32_t index) {
    uint32_t rank = index >> p->k_warps_log2, warp = index & ((1u << p->k_warps_log2) - 1);
    if (p->splits_log2 == 0) return decode_shared_f32(at + warp * warp_bytes);
    return ptx_grid_load_f32(ptx_grid_mapa(at, rank) + warp * warp_bytes);
}

/* The sum of a column (a row of A or a part of one), [warp along K][column][row] in every block of
 * the cluster, in the order of K. */
static __device__ __forceinline__ float decode_collect(const bsmm_decode_params *p, uint32_t at,
                                                       uint32_t warp_bytes) {
    float sum = 0;
    uint32_t count = 1u << (p->splits_log2 + p->k_warps_log2);
    for (uint32_t i = 0; i < count; i += 8) {
        float term[8];
#pragma unroll
        for (uint32_t j = 0; j < 8; j++)
            if (i + j < count) term[j] = decode_load_term(p, at, warp_bytes, i + j);
#pragma unroll
        for (uint32_t j = 0; j < 8; j++)
            if (i + j < count) sum += term[j];
    }
    return sum;
}

/* Below it, terms may have been lost; above, something overflowed. NaN is neither. */
static __device__ __forceinline__ bool decode_trusts(float sum) {
    return fabsf(sum) >= 0x1p-118f && fabsf(sum) <= 0x1p127f;
}

/* Whether A's row has no value other than 0: as the blocks of the cluster saw in making its image,
 * or as the kernel before did. */
static __device__ __forceinline__ bool decode_row_is_zero(const bsmm_decode_params *p,
                                                          uint32_t row) {
    uint32_t any = 0, flag = decode_address(decode_shared) + p->flags_at + row * 4;
    for (uint32_t rank = 0; !p->a_image && rank < 1u << p->splits_log2; rank++)
        any |= ptx_grid_load_u32(ptx_grid_mapa(flag, rank));
    for (uint32_t i = 0; p->a_image && i < p->blocks_per_row; i++)
        any |= p->a_image_any[row * p->blocks_per_row + i];
    return any == 0;
}

/* What the warp's lanes cannot trust is summed again, one after the other. */
static __device__ __forceinline__ double decode_repair(const bsmm_decode_params *p, bool doubtful,
                                                       uint32_t row, uint32_t col, double sum) {
    uint32_t left = __ballot_sync(0xffffffffu, doubtful);
    while (left) {
        int lane = __ffs((int)left) - 1;
        double again = bsmm_epilogue_sum_again(&p->a, &p->b, __shfl_sync(0xffffffffu, row, lane),
                                               __shfl_sync(0xffffffffu, col, lane), p->k);
        if ((int)(threadIdx.x % 32) == lane) sum = again;
        left &= left - 1;
    }
    return sum;
}

/* Sums are seen by who adds them. A cluster's barrier waits for all of a thread's memory traffic:
 * 1 us that a block by itself need not spend. */
static __device__ __forceinline__ void decode_sync(const bsmm_decode_params *p) {
    if (p->splits_log2 == 0) {
        __syncthreads();
    } else {
        ptx_grid_cluster_arrive();
        ptx_grid_cluster_wait();
    }
}

static __device__ __forceinline__ void decode_finish(const bsmm_decode_params *p,
                                                     const decode_block *block, uint32_t rank,
                                                     const int tiles, uint32_t pitch,
                                                     const double unfold) {
    decode_sync(p);
    const uint32_t sums = decode_address(decode_shared), rows = block->rows >> p->splits_log2;
    const uint32_t warp_bytes = tiles * 8 * pitch * 4;
    const bsmm_epilogue_factors factors = bsmm_epilogue_begin(&p->epilogue);
    for (uint32_t base = 0; base < rows * p->m; base += BSMM_DECODE_THREADS) {
        uint32_t i = base + threadIdx.x, inner = rank * rows + (i & (rows - 1));
        uint32_t row = i >> (31 - __clz((int)rows)), col = block->row + inner; /* of D */
        bool wanted = row < p->m && col < p->n;
        double sum = 0;
        bool doubtful = false;
        if (wanted) {
            float total = 0;
            for (uint32_t part = 0; part < p->parts; part++)
                total += decode_collect(p, sums + ((row * p->parts + part) * pitch + inner) * 4,
                                        warp_bytes);
            float scale = p->row_scaled ? bsmm_cuda_scale(&p->a, row, 0) : 1;
            bool zero = total == 0 && decode_row_is_zero(p, row); /* NaN in B would show */
            doubtful = !(decode_trusts(total) || zero) || !isfinite(scale);
            sum = total * unfold * (double)scale;
        }
        sum = decode_repair(p, doubtful, row, col, sum);
        if (wanted) bsmm_epilogue_store(&p->epilogue, &factors, row, col, sum);
    }
    if (p->splits_log2 == 0) return;
    ptx_grid_cluster_arrive_relaxed(); /* shared memory lives until the others have read it */
    ptx_grid_cluster_wait();
}

#endif
