/* This is the body of the FP8 small-M kernels (few rows of A). The including file defines three
 * macros. FP8_SMALL_M_NAME is the kernel's name. FP8_SMALL_M_COLUMNS is the largest number of rows
 * of A, which are the columns of wgmma's result. FP8_SMALL_M_SCALE_ROWS is the number of rows of B
 * that share one scale, 16 or 1. */

#define TEXT_OF(x)    #x
#define TEXT(x)       TEXT_OF(x)
#define JOIN_OF(a, b) a##b
#define JOIN(a, b)    JOIN_OF(a, b)

#define MULTIPLY    JOIN(FP8_SMALL_M_NAME, _multiply)
#define HOLD        JOIN(FP8_SMALL_M_NAME, _hold)
#define WGMMA_NAME  MULTIPLY
#define WGMMA_HOLD  HOLD
#define WGMMA_N     FP8_SMALL_M_COLUMNS
#define WGMMA_SHAPE "m64n" TEXT(FP8_SMALL_M_COLUMNS) "k32"
#define WGMMA_TYPES "f32.e4m3.e4m3"
#define WGMMA_TAIL  ", 1, 1"
#include "cuda/ptx/wgmma_one.h"

#define SUMS       (FP8_SMALL_M_COLUMNS / 2) /* SUMS is the number of accumulators of a thread. */
#define B_PASSES   FP8_SMALL_M_MOST_PASSES
#define A_PASSES   (FP8_SMALL_M_COLUMNS > 16 ? 2 : 1)
#define BY_ROW     (FP8_SMALL_M_SCALE_ROWS == 1)
#define SLOTS      BSMM_FP8_SMALL_M_SLOTS
#define SLOT_BYTES BSMM_FP8_SMALL_M_SLOT_BYTES(FP8_SMALL_M_COLUMNS)

extern "C" __global__ void __launch_bounds__(BSMM_SMALL_M_THREADS, 1)
    FP8_SMALL_M_NAME(const __grid_constant__ bsmm_small_m_params p) {
    ptx_grid_release_next();
    /* All lanes of a warp have the same warp number and therefore the same wgmma descriptors. The
     * shuffle tells the compiler so, and the compiler then keeps the descriptors in uniform
     * registers. */
    const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4;
    const uint32_t g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t rank = ptx_grid_cluster_rank();
    small_m_block block;
    block.first_range = rank;
    block.ranges = 1;
    block.begin = small_m_begin(&p, rank);
    block.end = small_m_begin(&p, rank + 1);
    block.rows = BSMM_FP8_SMALL_M_ROWS;
    block.row = (blockIdx.x >> p.splits_log2) * BSMM_FP8_SMALL_M_ROWS;
    uint32_t step = block.begin + group;
    const uint32_t first_ring = (small_m_address(small_m_shared) + BSMM_FP8_SMALL_M_ALIGNMENT - 1) &
                                ~(uint32_t)(BSMM_FP8_SMALL_M_ALIGNMENT - 1);
    const uint32_t ring = first_ring + group * (SLOTS * SLOT_BYTES);
    fp8_small_m_copies weights = fp8_small_m_find_copies(p.b.data, (uint64_t)p.b_pitch8 * 8,
                                                         p.b_bytes, p.n, block.row, step);
    fp8_small_m_copies columns = fp8_small_m_find_copies(p.a.data, p.a_pitch, p.k, p.m, 0, step);
    const bool copies_a = threadIdx.x % BSMM_FP8_SMALL_M_GROUP < FP8_SMALL_M_COLUMNS * 8;
    uint32_t *const flags = (uint32_t *)(small_m_shared + p.flags_at);
    if (threadIdx.x < BSMM_SMALL_M_COLUMNS) flags[threadIdx.x] = 0;
    const uint32_t meetings = small_m_address(small_m_shared + p.barriers_at);
    const uint32_t meeting = meetings + group * 8;
    if (threadIdx.x == 0) fp8_small_m_make_meetings(meetings);

    ptx_grid_wait();
    /* One scale of B is loaded before the copies of A and B begin. The time of the copies then
     * hides the latency of the load. */
    const float b_first = small_m_load_float(&p, &block, FP8_SMALL_M_SCALE_ROWS, threadIdx.x);
#pragma unroll
    for (int i = 0; i < SLOTS - 1; i++) {
        const uint32_t to = ring + i * SLOT_BYTES;
        if (step + i * BSMM_FP8_SMALL_M_GROUPS < block.end) {
            fp8_small_m_copy(&weights, B_PASSES, to);
            if (copies_a) fp8_small_m_copy(&columns, A_PASSES, to + BSMM_FP8_SMALL_M_WEIGHT_BYTES);
        }
        ptx_copy_commit();
    }
    uint8_t *const b_scales = small_m_shared + p.scales_at;
    float *const a_scales = (float *)(small_m_shared + p.a_scales_at);
    small_m_stage_floats(&p, &block, FP8_SMALL_M_SCALE_ROWS, b_first, b_scales);
    fp8_small_m_stage_a_scales(&p, &block, FP8_SMALL_M_COLUMNS, a_scales);
    /* After this barrier B's and A's scales are in shared memory, and the mbarriers are
     * initialized. */
    __syncthreads();

    /* These are the thread's fp32 accumulators for D^T, whose columns are the rows of A. Let t =
     * lane % 4 and g = lane / 4. Accumulator i belongs to column 8 (i / 4) + 2 t + i % 2. Its row
     * of D^T is row g of the warp's 16 rows of B, or row g + 8 if i % 4 is 2 or 3. */
    float total[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        total[i] = 0;
    const float *const b_scale =
        (const float *)(b_scales + (BY_ROW ? warp % 4 * 16 + g : warp % 4) * p.scale_stride);
    uint32_t slot = 0, parity = 0, any[A_PASSES] = {0};
    for (; step < block.end; step += BSMM_FP8_SMALL_M_GROUPS) {
        const uint32_t at = ring + slot * SLOT_BYTES, a_at = at + BSMM_FP8_SMALL_M_WEIGHT_BYTES;
        ptx_copy_wait(SLOTS - 2);
#pragma unroll
        /* The epilogue must know which rows of A are zero. This thread looks only at the bytes of A
         * that it has copied itself: it sets any[i] to a nonzero value if one of the bytes of its
         * copy number i is nonzero. */
        for (int i = 0; i < A_PASSES; i++) {
            if (!copies_a) break;
            const uint4 v = *(const uint4 *)__cvta_shared_to_generic(a_at + columns.to +
                                                                     i * 16 * BSMM_SMALL_M_K);
            any[i] |= v.x | v.y | v.z | v.w;
        }
        ptx_fence_proxy_async();
        fp8_small_m_meet(meeting, parity);
        parity ^= 1;
        /* Load a later step of K (128 elements) into the stage that this warpgroup multiplied in
         * its previous step. All warps of the warpgroup have passed the barrier fp8_small_m_meet,
         * so none of them still reads that stage. */
        if (step + (SLOTS - 1) * BSMM_FP8_SMALL_M_GROUPS < block.end) {
            const uint32_t to = ring + (slot == 0 ? SLOTS - 1 : slot - 1) * SLOT_BYTES;
            fp8_small_m_copy(&weights, B_PASSES, to);
            if (copies_a) fp8_small_m_copy(&columns, A_PASSES, to + BSMM_FP8_SMALL_M_WEIGHT_BYTES);
        }
        ptx_copy_commit();
        const uint64_t b = ptx_wgmma_descriptor(at), a = ptx_wgmma_descriptor(a_at);
        float part[SUMS];
        ptx_wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++) /* Each wgmma multiplies 32 elements along K. */
            MULTIPLY(part, b + 2 * i, a + 2 * i, i > 0);
        ptx_wgmma_commit();
        const uint32_t scale_at = BY_ROW && p.scale_step == 0 ? 0 : step - block.begin;
        const float low = b_scale[scale_at];
        /* Load the scale of the thread's second row of B, which lies 8 rows below its first row. */
        const float high = BY_ROW ? b_scale[scale_at + 2 * p.scale_stride] : low;
        const float *const column = a_scales + (step - block.begin) * FP8_SMALL_M_COLUMNS + t * 2;
        PTX_WGMMA_WAIT(0);
        HOLD(part);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            total[i] =
                fmaf(part[i], (i % 4 < 2 ? low : high) * column[i / 4 * 8 + i % 2], total[i]);
        slot = slot == SLOTS - 1 ? 0 : slot + 1;
    }

    __syncthreads();
#pragma unroll
    for (int i = 0; i < A_PASSES; i++)
        if (any[i] & 0x7f7f7f7fu) flags[threadIdx.x % BSMM_FP8_SMALL_M_GROUP / 8 + i * 16] = 1;
    /* Shared memory holds the sums by columns, one column for each row of A. Each column has 4
     * floats of padding, so that the stores of a warp go to different banks. */
    const uint32_t pitch = BSMM_FP8_SMALL_M_ROWS + 4;
    float *const sums =
        (float *)small_m_shared + group * FP8_SMALL_M_COLUMNS * pitch + warp % 4 * 16 + g;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[(i / 4 * 8 + t * 2 + i % 2) * pitch + i % 4 / 2 * 8] = total[i];
    small_m_epilogue(&p, &block, rank, FP8_SMALL_M_COLUMNS / 8, pitch, 1, false, true);
}

#undef TEXT_OF
#undef TEXT
#undef JOIN_OF
#undef JOIN
#undef MULTIPLY
#undef HOLD
#undef SUMS
#undef B_PASSES
#undef A_PASSES
#undef BY_ROW
#undef SLOTS
#undef SLOT_BYTES
#undef FP8_SMALL_M_NAME
#undef FP8_SMALL_M_COLUMNS
#undef FP8_SMALL_M_SCALE_ROWS
