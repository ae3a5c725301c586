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

    /* With an image, the grid before this one has made it, and waited for all before: it writes
     * neither weights nor scales. Otherwise any may be written still. */
    const bool own = DECODE_TILES == 1 && !p.a_image, narrow = DECODE_FORMAT <= DECODE_NVFP4;
    uint32_t *const flags = (uint32_t *)(decode_shared + p.flags_at);
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
    decode_raw raw[BSMM_DECODE_OWN_CHUNKS];
    if (own) {
        if (threadIdx.x < BSMM_DECODE_COLUMNS) flags[threadIdx.x] = 0;
        ptx_grid_wait();
        decode_own_load(&p, narrow, &block, threadIdx.x, raw); /* behind nothing else */
    }
    if (step < end) decode_fetch(DECODE_FORMAT, &lane, lane.ring);
    decode_go_on(DECODE_FORMAT, &lane);
    ptx_copy_commit();
    if (!own) decode_make_barriers(&p, row_warps);
    uint8_t *const scales = decode_shared + p.scales_at;
    decode_stage_scales(DECODE_FORMAT, &p, &block, scales);
    ptx_copy_commit();

    /* A, then more weights. 4-bit weights keep the arithmetic units busier than memory: nothing may
     * delay A. */
    const bool at_once = own || DECODE_FORMAT >= DECODE_MXFP8;
    __syncthreads(); /* the barriers are there, flags too */
    if (!own) ptx_grid_wait();
    decode_ring ring = decode_find_ring(&p, k_warp);
    const bool fills = row_warp == 0 && lane_id == 0;
    if (!own && threadIdx.x == 0) decode_fetch_whole(&p, &block);
    if (!own && fills)
        for (uint32_t i = 0; i < ring.slots && step + i * WALKERS < end; i++)
            decode_fill_slot(&p, &ring, i, step + i * WALKERS);
    if (at_once) decode_fetch_ahead(DECODE_FORMAT, &lane, step, end);
    if (own) {
        decode_own_store(&p, narrow, &block, threadIdx.x, raw, decode_shared, flags);
        if (DECODE_GROUPED) decode_own_scales(&p, &block, (float *)(decode_shared + p.a_scales_at));
    }
    if (at_once)
        ptx_copy_wait(BSMM_DECODE_AHEAD - 1);
    else
        ptx_copy_wait(0);

    uint32_t columns[DECODE_TILES];
#pragma unroll
    for (int n = 0; n < DECODE_TILES; n++)
        columns[n] = (DECODE_TILES > 1 ? n * 8 + g : min(g, p.columns - 1)) * 64 + t * 16;
    const uint32_t chunk_bytes = p.chunk_bytes;
    float sums[SUMS][4];
    uint32_t nans[2] = {0, 0}, most = 0;
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
    __syncthreads(); /* scales, and A if it was made here */
    if (!own)
        while (!ptx_bulk_try_wait(decode_address(decode_shared + p.barriers_at), 0)) {
        }
    if (!at_once) decode_fetch_ahead(DECODE_FORMAT, &lane, step, end);
    const uint32_t first_step = step;
    uint32_t slot = 0; /* of the weights, of two */
    uint32_t at = ring.first;
    if (ring.slots == 0) at += (step - block.begin) * 4 * chunk_bytes;
    for (; step < end; step += WALKERS) {
        if (ring.slots)
            while (!ptx_bulk_try_wait(ring.full + ring.slot * 8, ring.parity)) {
            }
        decode_words words;
        decode_factors factors;
        ptx_copy_wait(BSMM_DECODE_AHEAD - 1);
        decode_take(lane.ring + slot * BSMM_DECODE_SLOT_BYTES, &words);
        decode_find_factors(DECODE_FORMAT, scale, p.scale_stride, &factors, &most);
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
            decode_step(DECODE_FORMAT, DECODE_TILES, r, r + 1, &words, &factors, at, chunk_bytes,
                        columns, parts, nans);
#    pragma unroll
            for (int n = 0; n < DECODE_TILES; n++) {
                float column_scales[2];
#    pragma unroll
                for (uint32_t c = 0; c < 2; c++)
                    column_scales[c] = a_scales[(step - block.begin) * p.scale_columns +
                                                (DECODE_TILES > 1 ? n * 8 + t * 2 + c
                                                                  : min(t * 2 + c, p.columns - 1))];
                decode_add_scaled(sums[r * DECODE_TILES + n], parts[n], row_scales, column_scales);
            }
        }
#else
        decode_step(DECODE_FORMAT, DECODE_TILES, 0, ROW_TILES, &words, &factors, at, chunk_bytes,
                    columns, sums, nans);
#endif
        /* The slot's words are in registers: what they were multiplied by has been waited for.
         */
        if (step + BSMM_DECODE_AHEAD * WALKERS < end)
            decode_fetch(DECODE_FORMAT, &lane, lane.ring + slot * BSMM_DECODE_SLOT_BYTES);
        decode_go_on(DECODE_FORMAT, &lane);
        ptx_copy_commit();
        slot ^= 1;
        scale += WALKERS * STEP_SCALES;
        at += (ring.slots ? 1 : WALKERS) * 4 * chunk_bytes;
        if (ring.slots) {
            decode_leave_slot(&p, &ring, fills, WALKERS, step, first_step, end);
            if (++ring.slot == ring.slots) ring.slot = 0, ring.parity ^= 1, at = ring.first;
        }
    }

    /* Elements that are NaN were taken for 480, scales out of range for anything. The four threads
     * of a row have seen all of it. */
    const bool beyond = bsmm_e8m0_beyond(most);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (DECODE_FORMAT == DECODE_NVFP4) break;
        uint32_t any = (nans[i] & 0x80808080u) | beyond;
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
