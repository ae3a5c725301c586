/* A decode kernel: DECODE_NAME, for weights of DECODE_FORMAT, DECODE_TILES tiles of 8 columns (rows
 * of A, or their parts), and DECODE_GROUPED: partial sums of 128 along K are scaled in fp32. */

enum { DECODE_JOIN(DECODE_NAME, _row_tiles) = DECODE_FORMAT <= DECODE_NVFP4 ? 2 : 1 };
#define ROW_TILES   DECODE_JOIN(DECODE_NAME, _row_tiles)
#define SUMS        (ROW_TILES * DECODE_TILES)
#define WALKERS     (DECODE_FORMAT <= DECODE_NVFP4 ? 2 : 1)
#define STEP_SCALES (DECODE_FORMAT == DECODE_NVFP4 ? 8 : 4)

extern "C" __global__ void __launch_bounds__(BSMM_DECODE_THREADS, 1)
    DECODE_NAME(const __grid_constant__ bsmm_decode_params p) {
    ptx_grid_release_next();
    const uint32_t warp = threadIdx.x / 32, lane_id = threadIdx.x % 32;
    const uint32_t g = lane_id / 4, t = lane_id % 4;
    const uint32_t row_warps = BSMM_DECODE_WARPS >> p.k_warps_log2;
    const uint32_t row_warp = warp & (row_warps - 1), k_warp = warp / row_warps;
    const uint32_t rank = ptx_grid_cluster_rank();
    decode_block block;
    block.ranges = (1u << p.k_warps_log2) / WALKERS;
    block.first_range = rank * block.ranges;
    block.begin = decode_begin(&p, block.first_range);
    block.end = decode_begin(&p, block.first_range + block.ranges);
    block.rows = row_warps * ROW_TILES * 16;
    block.row = (blockIdx.x >> p.splits_log2) * block.rows;

    /* The first weights and the scales: nothing that the grid before this one writes. */
    const uint32_t row = row_warp * ROW_TILES * 16 + g; /* in the block */
    const uint32_t range = block.first_range + k_warp / WALKERS;
    const uint32_t range_begin = decode_begin(&p, range), end = decode_begin(&p, range + 1);
    uint32_t step = range_begin + k_warp % WALKERS;
    decode_lane lane;
    const uint32_t first_byte = step * (DECODE_FORMAT <= DECODE_NVFP4 ? 64 : 128) + t * 16;
    lane.left = (int32_t)(p.b_bytes - first_byte);
    lane.ring = decode_address(decode_shared + p.ring_at) + threadIdx.x * 16;
#pragma unroll
    for (int i = 0; i < 2 * ROW_TILES; i++)
        lane.weights[i] = p.b.data + first_byte +
                          (uint64_t)min(block.row + row + i * 8, p.n - 1) * p.b_pitch16 * 16;
    if (step < end) decode_fetch(DECODE_FORMAT, &lane, 0);
    decode_go_on(DECODE_FORMAT, &lane);
    ptx_copy_commit();
    const uint32_t barriers = decode_address(decode_shared + p.barriers_at);
    if (threadIdx.x == 0) {
        ptx_bulk_init(barriers, 1);
        ptx_bulk_init(barriers + 8, 1);
        ptx_bulk_fence_init();
    }
    uint8_t *const scales = decode_shared + p.scales_at;
    decode_stage_scales(DECODE_FORMAT, &p, &block, scales);
    ptx_copy_commit();

    /* A, then more weights. 4-bit weights keep the arithmetic units busier than memory: nothing may
     * delay A. */
    const bool at_once = DECODE_FORMAT >= DECODE_MXFP8;
    __syncthreads(); /* the barriers are there */
    ptx_grid_wait();
    if (threadIdx.x == 0) decode_fetch_a(&p, &block, 0, barriers);
    if (at_once) decode_fetch_ahead(DECODE_FORMAT, &lane, step, end);
    ptx_copy_wait(at_once ? BSMM_DECODE_AHEAD - 1 : 0);

    uint32_t columns[DECODE_TILES];
#pragma unroll
    for (int n = 0; n < DECODE_TILES; n++)
        columns[n] = (DECODE_TILES > 1 ? n * 8 + g : min(g, p.columns - 1)) * 64 + t * 16;
    const uint32_t chunk_bytes = p.columns * 64;
    float sums[SUMS][4];
    uint32_t nans[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;

    uint32_t scale = decode_address(scales) +
                     (DECODE_FORMAT == DECODE_FP8_F32 ? row_warp : row) * p.scale_stride +
                     (step - block.begin) * STEP_SCALES +
                     (DECODE_FORMAT == DECODE_MXFP4   ? t
                      : DECODE_FORMAT == DECODE_NVFP4 ? t * 2
                      : DECODE_FORMAT == DECODE_MXFP8 ? t / 2
                                                      : 0);
    uint32_t slot = 0;
    for (uint32_t turn = 0; turn < p.phases; turn++) {
        if (turn == 0) __syncthreads(); /* scales, barriers */
        while (!ptx_bulk_try_wait(barriers + turn % 2 * 8, turn / 2 % 2)) {
        }
        if (turn == 0 && !at_once) decode_fetch_ahead(DECODE_FORMAT, &lane, step, end);
        if (turn > 0) __syncthreads(); /* none is behind in the phase before the last */
        if (threadIdx.x == 0 && turn + 1 < p.phases) decode_fetch_a(&p, &block, turn + 1, barriers);
        const uint32_t first = range_begin + turn * p.phase_steps;
        const uint32_t stop = min(first + p.phase_steps, end);
        uint32_t at =
            decode_address(decode_shared) + (decode_phase_place(&p, &block, turn) +
                                             k_warp / WALKERS * p.phase_steps + step - first) *
                                                4 * chunk_bytes;
        for (; step < stop; step += WALKERS) {
            decode_words words;
            decode_factors factors;
            ptx_copy_wait(BSMM_DECODE_AHEAD - 1);
            decode_take(&lane, slot, &words);
            decode_find_factors(DECODE_FORMAT, scale, p.scale_stride, &factors);
#if DECODE_GROUPED
            const float *const a_scales = (const float *)(decode_shared + p.a_scales_at);
            float row_scales[2] = {1, 1};
            if (DECODE_FORMAT == DECODE_FP8_F32)
                row_scales[0] = row_scales[1] = *(const float *)__cvta_shared_to_generic(scale);
                /* One tile of rows after the other: there are no registers for both. */
#    pragma unroll
            for (int r = 0; r < ROW_TILES; r++) {
                if (DECODE_TILES > 2) __syncwarp(); /* no load of A may move up */
                float parts[DECODE_TILES][4];
#    pragma unroll
                for (int n = 0; n < DECODE_TILES; n++)
                    parts[n][0] = parts[n][1] = parts[n][2] = parts[n][3] = 0;
                decode_step(DECODE_FORMAT, DECODE_TILES, r, r + 1, &words, &factors, at,
                            chunk_bytes, columns, parts, nans);
#    pragma unroll
                for (int n = 0; n < DECODE_TILES; n++) {
                    float column_scales[2];
#    pragma unroll
                    for (uint32_t c = 0; c < 2; c++)
                        column_scales[c] =
                            a_scales[(step - block.begin) * p.scale_columns +
                                     (DECODE_TILES > 1 ? n * 8 + t * 2 + c
                                                       : min(t * 2 + c, p.columns - 1))];
                    decode_add_scaled(sums[r * DECODE_TILES + n], parts[n], row_scales,
                                      column_scales);
                }
            }
#else
            decode_step(DECODE_FORMAT, DECODE_TILES, 0, ROW_TILES, &words, &factors, at,
                        chunk_bytes, columns, sums, nans);
#endif
            /* The slot's words are in registers: what they were multiplied by has been waited for.
             */
            if (step + BSMM_DECODE_AHEAD * WALKERS < end) decode_fetch(DECODE_FORMAT, &lane, slot);
            decode_go_on(DECODE_FORMAT, &lane);
            ptx_copy_commit();
            slot = slot == BSMM_DECODE_AHEAD - 1 ? 0 : slot + 1;
            at += WALKERS * 4 * chunk_bytes;
            scale += WALKERS * STEP_SCALES;
        }
    }

    /* Elements that are NaN were taken for 480. The four threads of a row have seen all of it. */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (DECODE_FORMAT < DECODE_MXFP8) break;
        uint32_t any = nans[i] & 0x80808080u;
        any |= __shfl_xor_sync(0xffffffffu, any, 1);
        any |= __shfl_xor_sync(0xffffffffu, any, 2);
#pragma unroll
        for (int s = 0; s < SUMS; s++)
            if (any) sums[s][2 * i] = sums[s][2 * i + 1] = __uint_as_float(0x7fc00000u);
    }

    __syncthreads();
    const uint32_t pitch = block.rows + 4; /* no two threads of a warp in one bank */
    float *mine =
        (float *)decode_shared + k_warp * DECODE_TILES * 8 * pitch + row_warp * ROW_TILES * 16;
#pragma unroll
    for (int s = 0; s < SUMS; s++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            mine[(s % DECODE_TILES * 8 + t * 2 + i % 2) * pitch + s / DECODE_TILES * 16 +
                 i / 2 * 8 + g] = sums[s][i];
    decode_finish(&p, &block, rank, DECODE_TILES, pitch,
                  DECODE_FORMAT == DECODE_MXFP4   ? 0x1p27
                  : DECODE_FORMAT == DECODE_MXFP8 ? 0x1p21
                  : DECODE_FORMAT == DECODE_NVFP4 ? 0x1p8
                                                  : 1);
}

#undef ROW_TILES
#undef SUMS
#undef WALKERS
#undef STEP_SCALES
#undef DECODE_NAME
#undef DECODE_FORMAT
#undef DECODE_TILES
#undef DECODE_GROUPED
