/* A decode kernel: DECODE_NAME, for weights of DECODE_FORMAT, DECODE_TILES tiles of 8 columns (rows
 * of A, or their parts), and DECODE_GROUPED: partial sums of 128 along K are scaled in fp32; or
 * DECODE_SCALED: A has one fp32 scale for all of a row.
 * DECODE_WGMMA: warpgroups multiply. A warp has 64 bytes of weights for each thread at a time: with
 * 4 bits two tiles of 16 rows, and takes turns at a range's steps with another warp; or, of a
 * warpgroup, one tile and a span of two steps, whose sums stay apart, so that both add alike. */

#ifndef DECODE_SCALED
#    define DECODE_SCALED 0
#endif
#define DECODE_WGMMA (DECODE_TILES * 8 >= BSMM_DECODE_WGMMA_COLUMNS)
#define ROW_TILES    (DECODE_FORMAT <= DECODE_NVFP4 && !DECODE_WGMMA ? 2 : 1)
#define SPAN         (DECODE_FORMAT <= DECODE_NVFP4 && DECODE_WGMMA ? 2 : 1)
#define SUMS         (ROW_TILES * SPAN * DECODE_TILES)
#define WALKERS      (DECODE_FORMAT <= DECODE_NVFP4 ? 2 : 1)
#define STEP_SCALES  (DECODE_FORMAT == DECODE_NVFP4 ? 8 : 4)
/* Steps of a range that A comes for first, so that they need not wait for the rest. For fewer
 * columns and 8 bits asking takes as long as is gained; grouped kernels have no register left. */
#define HEAD (DECODE_FORMAT <= DECODE_NVFP4 && DECODE_TILES == 2 && !DECODE_GROUPED ? WALKERS : 0)

extern "C" __global__ void __launch_bounds__(BSMM_DECODE_THREADS, 1)
    DECODE_NAME(const __grid_constant__ bsmm_decode_params p) {
    ptx_grid_release_next();
    /* A warpgroup's descriptors are the same for all lanes; the compiler should know. */
    const uint32_t warp =
        DECODE_WGMMA ? __shfl_sync(0xffffffffu, threadIdx.x / 32, 0) : threadIdx.x / 32;
    const uint32_t lane_id = threadIdx.x % 32;
    const uint32_t g = lane_id / 4, t = lane_id % 4;
    const uint32_t row_warps = BSMM_DECODE_WARPS * SPAN >> p.k_warps_log2;
    const uint32_t row_warp = warp & (row_warps - 1), k_warp = warp / row_warps * SPAN;
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
    /* All warps wait for all scales. Where blocks make A they are asked for before weights, but for
     * mxfp4, which gains nothing by that. */
    uint8_t *const scales = decode_shared + p.scales_at;
    const bool first =
        own && p.scale_vector && (DECODE_FORMAT == DECODE_NVFP4 || DECODE_FORMAT == DECODE_MXFP8);
    const bool floats = DECODE_FORMAT == DECODE_FP8_F32;
    float scale_of_b = own && floats ? decode_load_float(&p, &block, threadIdx.x) : 0;
    if (first) {
        decode_copy_scales(&p, &block, STEP_SCALES, scales);
        ptx_copy_commit();
    }
    if (step < end) decode_fetch(2 * ROW_TILES, &lane, lane.ring);
    decode_go_on(2 * ROW_TILES, &lane);
    ptx_copy_commit();
    if (!own) decode_make_barriers(&p, row_warps);
    if (!own && floats) scale_of_b = decode_load_float(&p, &block, threadIdx.x);
    if (!first) {
        decode_stage_scales(DECODE_FORMAT, &p, &block, scale_of_b, scales);
        ptx_copy_commit();
    }

    /* A, then more weights. 4-bit weights keep the arithmetic units busier than memory: nothing may
     * delay A. */
    const bool at_once = own || DECODE_FORMAT >= DECODE_MXFP8;
    __syncthreads(); /* the barriers are there, flags too */
    if (!own) ptx_grid_wait();
    /* A warpgroup's warps are done with a slot together; others may need longer. */
    decode_ring ring =
        decode_find_ring(&p, k_warp, SPAN, WALKERS, DECODE_WGMMA && row_warps == 4 ? 0 : 1);
    const bool fills = row_warp == 0 && lane_id == 0;
    if (!own && threadIdx.x == 0) decode_fetch_whole(&p, &block, HEAD);
    if (!own && fills)
        for (uint32_t i = 0; i < ring.slots && step + i * WALKERS < end; i++)
            decode_fill_slot(&p, &ring, i, step + i * WALKERS, end);
    if (at_once) decode_fetch_ahead(2 * ROW_TILES, &lane, step, WALKERS, end);
    if (own) {
        decode_own_store(&p, narrow, &block, threadIdx.x, raw, decode_shared, flags);
        if (DECODE_GROUPED) decode_own_scales(&p, &block, (float *)(decode_shared + p.a_scales_at));
    }
    if (first)
        ptx_copy_wait(BSMM_DECODE_AHEAD); /* for scales alone: a warp waits for its own weights */
    else if (at_once)
        ptx_copy_wait(BSMM_DECODE_AHEAD - 1);
    else
        ptx_copy_wait(0);

#if DECODE_WGMMA
    const uint32_t chunk_bytes = DECODE_GROUP_CHUNK;
    decode_fragments fragments = {{{0}}};
#else
    const uint32_t chunk_bytes = p.chunk_bytes;
    uint32_t columns[DECODE_TILES];
#    pragma unroll
    for (int n = 0; n < DECODE_TILES; n++)
        columns[n] = (DECODE_TILES > 1 ? n * 8 + g : min(g, p.columns - 1)) * 64 + t * 16;
#endif
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
    if (!at_once) decode_fetch_ahead(2 * ROW_TILES, &lane, step, WALKERS, end);
    const uint32_t first_step = step;
    const uint32_t second = ring.slots ? end : step + HEAD; /* which the rest of A is there for */
    uint32_t slot = 0;                                      /* of the weights, of two */
    uint32_t at = ring.first;
    if (ring.slots == 0) at += (step - block.begin) * 4 * chunk_bytes;
    for (; step < end; step += WALKERS) {
        if (ring.slots)
            while (!ptx_bulk_try_wait(ring.full + ring.slot * 8, ring.parity)) {
            }
        if (HEAD && step == second)
            while (!ptx_bulk_try_wait(decode_address(decode_shared + p.barriers_at) + 8, 0)) {
            }
        decode_words words;
        decode_factors factors;
        ptx_copy_wait(BSMM_DECODE_AHEAD - 1);
        decode_take(lane.ring + slot * BSMM_DECODE_SLOT_BYTES, &words);
        if (SPAN == 1) decode_find_factors(DECODE_FORMAT, scale, p.scale_stride, &factors, &most);
#if DECODE_WGMMA
        if (step != first_step) {
            decode_wait_products(&fragments); /* the last span's: done by now, or soon */
            decode_ring last = ring;
            decode_enter_last(&last);
            if (ring.slots) decode_leave_slot(&p, last, fills, step - WALKERS, first_step, end);
        }
#endif
        /* One tile of rows, or step, after the other: there are no registers for all parts. */
        const int in_turns = DECODE_GROUPED ? ROW_TILES * SPAN : SPAN;
#pragma unroll
        for (int r = 0; r < in_turns; r++) {
            float(*const total)[4] = &sums[r * DECODE_TILES];
#if DECODE_GROUPED
            float parts[DECODE_TILES][4];
#else
            float(*const parts)[4] = total;
#endif
#if DECODE_WGMMA
            if (SPAN == 2 && r == 1 && step + 1 == end) break;
            if (SPAN == 2)
                decode_find_half(DECODE_FORMAT, scale + r * STEP_SCALES, p.scale_stride,
                                 factors.f[r], &most);
            decode_group_step(DECODE_FORMAT, r, &words, &factors,
                              decode_describe(at + r * 4 * chunk_bytes), &fragments, &parts[0][0],
                              !DECODE_GROUPED, nans);
            if (DECODE_GROUPED) {
                decode_wait_products(&fragments);
                decode_hold(&parts[0][0]);
            }
#else
#    pragma unroll
            for (int n = 0; DECODE_GROUPED && n < DECODE_TILES; n++)
                parts[n][0] = parts[n][1] = parts[n][2] = parts[n][3] = 0;
            decode_step(DECODE_FORMAT, DECODE_TILES, r, DECODE_GROUPED ? r + 1 : ROW_TILES, &words,
                        &factors, at, chunk_bytes, columns, parts, nans);
#endif
            if (DECODE_GROUPED)
                decode_add_step(DECODE_FORMAT, DECODE_TILES, &p,
                                step + (SPAN == 2 ? r : 0) - block.begin, t, scale, parts, total);
        }
        /* The slot's words have been decoded. */
        if (step + BSMM_DECODE_AHEAD * WALKERS < end)
            decode_fetch(2 * ROW_TILES, &lane, lane.ring + slot * BSMM_DECODE_SLOT_BYTES);
        decode_go_on(2 * ROW_TILES, &lane);
        ptx_copy_commit();
        slot ^= 1;
        scale += WALKERS * STEP_SCALES;
        at += (ring.slots ? SPAN : WALKERS) * 4 * chunk_bytes;
        if (ring.slots) {
            if (!DECODE_WGMMA) decode_leave_slot(&p, ring, fills, step, first_step, end);
            decode_enter_next(&ring);
            if (ring.slot == 0) at = ring.first;
        }
    }
#if DECODE_WGMMA
    decode_wait_products(&fragments);
#    pragma unroll
    for (int r = 0; r < SPAN; r++)
        decode_hold(&sums[r * DECODE_TILES][0]);
#endif

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
    for (int s = 0; s < SUMS; s++) {
        float *to = mine + s / DECODE_TILES * (SPAN == 2 ? DECODE_TILES * 8 * pitch : 16);
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[(s % DECODE_TILES * 8 + t * 2 + i % 2) * pitch + i / 2 * 8 + g] = sums[s][i];
    }
    decode_finish(&p, &block, rank, DECODE_TILES, pitch,
                  DECODE_FORMAT == DECODE_MXFP4   ? 0x1p27
                  : DECODE_FORMAT == DECODE_MXFP8 ? 0x1p21
                  : DECODE_FORMAT == DECODE_NVFP4 ? 0x1p8
                                                  : 1,
                  DECODE_SCALED);
}

#undef ROW_TILES
#undef SPAN
#undef SUMS
#undef WALKERS
#undef STEP_SCALES
#undef HEAD
#undef DECODE_NAME
#undef DECODE_FORMAT
#undef DECODE_TILES
#undef DECODE_GROUPED
#undef DECODE_SCALED
#undef DECODE_WGMMA
