/* This is the body of the small-M kernels (few rows of A). A file that includes this file defines
 * these macros:
 *
 *     SMALL_M_NAME     name of the kernel
 *     SMALL_M_FORMAT   format of the weights
 *     SMALL_M_TILES    number of tiles of 8 columns. A column is one row of A, or one of the bf16
 *                      numbers into which an f16 or f32 row is split
 *     SMALL_M_GROUPED  1: the partial dot products of each 128 elements of K are scaled in fp32
 *
 * K is divided into steps of 128 elements. A warp handles SPAN steps at once. WALKERS warps share a
 * range of steps and take its steps round-robin. A thread loads 64 bytes of weights at a time, or
 * 48 bytes of 6-bit weights. With 4-bit weights and mma.sync, the 64 bytes belong to two tiles of
 * 16 rows and one step. With 4-bit weights and wgmma, the 64 bytes belong to one tile of 16 rows
 * and two steps, and each of the two steps has its own accumulators. The accumulators hold the same
 * sums with mma.sync and with wgmma, and the epilogue adds them in the same order. */

#define SMALL_M_WGMMA (SMALL_M_TILES * 8 >= BSMM_SMALL_M_WGMMA_COLUMNS)
#define FOUR          (SMALL_M_FORMAT <= SMALL_M_NVFP4)
#define SIX           (SMALL_M_FORMAT >= SMALL_M_MXFP6_E2M3)
#define ROW_TILES     (FOUR && !SMALL_M_WGMMA ? 2 : 1)
/* SPAN is the number of steps of K (128 elements each) that a warp multiplies in one pass of its
 * loop. In such a pass, a thread should load 64 bytes of weights. With wgmma a warp has only one
 * tile of 16 rows, for which a thread loads 32 bytes of 4-bit weights in a step, so the warp takes
 * two steps. With SPAN = 1 these kernels would be smaller (those for 32 columns, i.e. rows of A or
 * bf16 parts of rows, by 6 to 9% of the instructions). But the loop with its waits would run twice
 * as often. */
#define SPAN (FOUR && SMALL_M_WGMMA ? 2 : 1)
/* With SPAN = 2, a warp loads weights of two steps of K at once. IN_HALVES is nonzero if it then
 * decodes and multiplies one step after the other, and 0 if it decodes both steps at once. With
 * more than four tiles of 8 columns, the accumulators leave too few registers to decode both at
 * once: small_m_mxfp4_8 would need all 128 registers and spill one of them. */
#define IN_HALVES (SPAN == 2 && SMALL_M_TILES > 4)
#define SUMS      (ROW_TILES * SPAN * SMALL_M_TILES)
/* WALKERS is the number of warps that share a range of steps of K and take its steps in turn. For
 * 4-bit weights it is 2. If it were 1, the kernels would have 1 to 3% more instructions. K would
 * also be divided into twice as many ranges, which would change the order of sums. */
#define WALKERS (FOUR ? 2 : 1)
#define STEP_SCALES                                                                                \
    (SMALL_M_FORMAT == SMALL_M_NVFP4 ? 8 : SMALL_M_FORMAT == SMALL_M_FP8_ROWS ? p.scale_step : 4)
/* FLOAT_ROWS is the number of rows of B that share one fp32 scale. */
#define FLOAT_ROWS (SMALL_M_FORMAT == SMALL_M_FP8_ROWS ? 1 : 16)
/* The kernel can load A in two parts, so that the warps begin to multiply early. The first part has
 * HEAD steps (of 128 elements) of each range of K, and the second part has the rest. If HEAD is 0,
 * the kernel loads A at once. With 9 to 16 rows of A, mxfp8 x mxfp4 with N = K = 8192 takes 16.8 us
 * on an H200. It would take 17.4 us if HEAD were 0. HEAD is 0 with up to 8 rows of A: there,
 * loading A in two parts made products by 4-bit weights 2% slower. It is also 0 in kernels that
 * scale each step separately (SMALL_M_GROUPED), because it would add 13% of instructions to them.
 */
#define HEAD (FOUR && SMALL_M_TILES == 2 && !SMALL_M_GROUPED ? WALKERS : 0)

/* An A in e2m1 is converted to bf16 either by each thread block of this kernel or by
 * small_m_prepare, in a launch of its own. The first way is used for one or two rows of A. E2M1 is
 * nonzero if the kernel has the code for it. This code takes 7% of the instructions of a kernel for
 * 8 columns. If all kernels for 8 columns had it, they would have 7 to 10% more instructions. */
#define E2M1 (FOUR && !SMALL_M_GROUPED)

extern "C" __global__ void __launch_bounds__(BSMM_SMALL_M_THREADS, 1)
    SMALL_M_NAME(const __grid_constant__ bsmm_small_m_params p) {
    ptx_grid_release_next();
    /* All lanes of a warp have the same warp number and therefore the same wgmma descriptors. The
     * shuffle tells the compiler so, and the compiler then keeps the descriptors in uniform
     * registers. */
    const uint32_t warp =
        SMALL_M_WGMMA ? __shfl_sync(0xffffffffu, threadIdx.x / 32, 0) : threadIdx.x / 32;
    const uint32_t lane_id = threadIdx.x % 32;
    const uint32_t g = lane_id / 4, t = lane_id % 4;
    const uint32_t row_warps = BSMM_SMALL_M_WARPS * SPAN >> p.k_warps_log2;
    const uint32_t row_warp = warp & (row_warps - 1), k_warp = warp / row_warps * SPAN;
    const uint32_t rank = ptx_grid_cluster_rank();
    small_m_block block;
    block.ranges = (1u << p.k_warps_log2) / WALKERS;
    block.first_range = rank * block.ranges;
    block.begin = small_m_begin(&p, block.first_range);
    block.end = small_m_begin(&p, block.first_range + block.ranges);
    block.rows = row_warps * ROW_TILES * 16;
    block.row = (blockIdx.x >> p.splits_log2) * block.rows;

    /* `own` is true if this thread block converts A to bf16 itself. An earlier kernel of the stream
     * may then still be writing A, the weights or the scales, so the thread block waits for it
     * before it reads any of them. If `own` is false, the kernel small_m_prepare runs directly
     * before this one and writes A as bf16 to global memory. It has itself waited for all earlier
     * kernels, and it writes neither weights nor scales of B. This kernel may therefore read
     * weights and scales at once, and waits for small_m_prepare only before it reads A. */
    const bool own = SMALL_M_TILES == 1 && !p.a_image, narrow = FOUR || SIX;
    uint32_t *const flags = (uint32_t *)(small_m_shared + p.flags_at);
    /* `row` is the thread's first row of B, counted from the first row of the thread block. */
    const uint32_t row = row_warp * ROW_TILES * 16 + g;
    const uint32_t range = block.first_range + k_warp / WALKERS;
    const uint32_t range_begin = small_m_begin(&p, range), end = small_m_begin(&p, range + 1);
    uint32_t step = range_begin + k_warp % WALKERS;
    small_m_lane lane;
    if (SIX)
        small_m_find_six(&p, block.row + row_warp * 16, step, &lane);
    else
        small_m_find_rows(SMALL_M_FORMAT, 2 * ROW_TILES, &p, block.row + row, step, &lane);
    small_m_raw raw[BSMM_SMALL_M_OWN_CHUNKS];
    if (own) {
        if (threadIdx.x < BSMM_SMALL_M_COLUMNS) flags[threadIdx.x] = 0;
        ptx_grid_wait();
        /* Issue the loads of A from global memory first. The set-up code after them then hides the
         * latency of the loads. */
        small_m_own_load(&p, narrow, E2M1, &block, threadIdx.x, raw);
    }
    /* Copy B's scales to shared memory for all warps. Usually the copies of weights are issued
     * first and those of scales after them. If this thread block converts A itself (`own`), the
     * copies of scales are issued first for some formats, because that was faster in measurements.
     */
    uint8_t *const scales = small_m_shared + p.scales_at;
    const bool first = own && p.scale_vector &&
                       (SMALL_M_FORMAT == SMALL_M_NVFP4 || SMALL_M_FORMAT == SMALL_M_MXFP8 || SIX);
    const bool floats = small_m_has_floats(SMALL_M_FORMAT);
    float scale_of_b = own && floats ? small_m_load_float(&p, &block, FLOAT_ROWS, threadIdx.x) : 0;
    if (first) {
        small_m_copy_scales(&p, &block, STEP_SCALES, scales);
        ptx_copy_commit();
    }
    if (step < end) small_m_fetch(SMALL_M_FORMAT, 2 * ROW_TILES, &lane, 0);
    small_m_go_on(SMALL_M_FORMAT, 2 * ROW_TILES, &lane);
    ptx_copy_commit();
    if (!own) small_m_make_barriers(&p, row_warps);
    if (!own && floats) scale_of_b = small_m_load_float(&p, &block, FLOAT_ROWS, threadIdx.x);
    if (!first) {
        small_m_stage_scales(SMALL_M_FORMAT, &p, &block, scale_of_b, scales);
        ptx_copy_commit();
    }

    /* `at_once` is true if the copies of the second step's weights start before the copies of A.
     * This is best if memory bandwidth limits the speed. With 4-bit weights, arithmetic limits the
     * speed, so the weights of the second step are not urgent and must not delay the copies of A.
     * The copies of the second step's weights then start after those of A. If the thread block
     * converts A itself (`own`), there are no copies of A to delay, and `at_once` is true. */
    const bool at_once = own || !FOUR;
    __syncthreads(); /* After this barrier the mbarriers and flags are initialized. */
    if (!own) ptx_grid_wait();
    /* `ring` is the ring buffer in shared memory that holds a few steps of A. One warp refills a
     * slot after all warps have read it. With lag 0, this warp refills a slot as soon as it has
     * read the slot itself. That is best if all warps read a slot at the same time, as the four
     * warps of one warpgroup do with wgmma. With lag 1, the warp first multiplies the next slot,
     * and by then slower warps have usually read the older slot. With wgmma, a warp releases a slot
     * one iteration late, so lag 1 needs a third slot. With only two slots, the warp would wait
     * forever. */
    const bool refills_at_once = SMALL_M_WGMMA && (row_warps == 4 || p.a_slots < 3);
    small_m_ring ring = small_m_find_ring(&p, k_warp, SPAN, WALKERS, refills_at_once ? 0 : 1);
    const bool fills = row_warp == 0 && lane_id == 0;
    if (!own && threadIdx.x == 0) small_m_fetch_whole(&p, &block, HEAD);
    if (!own && fills)
        for (uint32_t i = 0; i < ring.slots && step + i * WALKERS < end; i++)
            small_m_fill_slot(&p, &ring, i, step + i * WALKERS, end);
    if (at_once) small_m_fetch_ahead(SMALL_M_FORMAT, 2 * ROW_TILES, &lane, step, WALKERS, end);
    if (own) {
        small_m_own_store(&p, narrow, E2M1, &block, threadIdx.x, raw, small_m_shared, flags);
        if (SMALL_M_GROUPED)
            small_m_own_scales(&p, &block, (float *)(small_m_shared + p.a_scales_at));
    }
    /* Wait until this thread's copies of B's scales have arrived. The main loop waits for the
     * copies of weights. */
    if (first)
        ptx_copy_wait(BSMM_SMALL_M_AHEAD);
    else if (at_once)
        ptx_copy_wait(BSMM_SMALL_M_AHEAD - 1);
    else
        ptx_copy_wait(0);
    if (!floats) small_m_end_scales(&p, &block, STEP_SCALES, scales);

#if SMALL_M_WGMMA
    const uint32_t chunk_bytes = SMALL_M_GROUP_CHUNK(SMALL_M_TILES);
    small_m_fragments fragments = {{{0}}};
#else
    const uint32_t chunk_bytes = p.chunk_bytes;
    uint32_t columns[SMALL_M_TILES];
#    pragma unroll
    for (int n = 0; n < SMALL_M_TILES; n++)
        columns[n] = (SMALL_M_TILES > 1 ? n * 8 + g : min(g, p.columns - 1)) * 64 + t * 16;
#endif
    float sums[SUMS][4];
    uint32_t nans[2] = {0, 0}, most = 0;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;

    uint32_t scale = small_m_address(scales) +
                     (SMALL_M_FORMAT == SMALL_M_FP8_F32 ? row_warp : row) * p.scale_stride +
                     (step - block.begin) * STEP_SCALES +
                     (floats ? 0 : small_m_code_shift(&p, &block, STEP_SCALES)) +
                     (SMALL_M_FORMAT == SMALL_M_MXFP4 || SIX ? t
                      : SMALL_M_FORMAT == SMALL_M_NVFP4      ? t * 2
                      : SMALL_M_FORMAT == SMALL_M_MXFP8      ? t / 2
                                                             : 0);
    /* After this barrier B's scales are in shared memory. If this thread block converts A itself, A
     * is also there, converted to bf16. */
    __syncthreads();
    if (!own)
        while (!ptx_bulk_try_wait(small_m_address(small_m_shared + p.barriers_at), 0)) {
        }
    if (!at_once) small_m_fetch_ahead(SMALL_M_FORMAT, 2 * ROW_TILES, &lane, step, WALKERS, end);
    const uint32_t first_step = step;
    /* The kernel loads A in two parts, and the first part has HEAD steps. `second` is the first
     * step of the second part. If a ring buffer holds A, there is no second part. */
    const uint32_t second = ring.slots ? end : step + HEAD;
    /* `slot` is the current slot of the ring of weights in shared memory, 0 or 1. */
    uint32_t slot = 0;
    uint32_t at = ring.first;
    if (ring.slots == 0) at += (step - block.begin) * 4 * chunk_bytes;
    for (; step < end; step += WALKERS) {
        if (ring.slots)
            while (!ptx_bulk_try_wait(ring.full + ring.slot * 8, ring.parity)) {
            }
        if (HEAD && step == second)
            while (!ptx_bulk_try_wait(small_m_address(small_m_shared + p.barriers_at) + 8, 0)) {
            }
        small_m_words words;
        small_m_factors factors;
        ptx_copy_wait(BSMM_SMALL_M_AHEAD - 1);
        if (!IN_HALVES) small_m_take(SMALL_M_FORMAT, &lane, slot, &words);
        if (SPAN == 1) small_m_find_factors(SMALL_M_FORMAT, scale, p.scale_stride, &factors, &most);
#if SMALL_M_WGMMA
        if (step != first_step) {
            /* The wgmma instructions of the previous iteration read a slot of the ring buffer of A.
             * Wait until they have finished. Only then may the slot be refilled. */
            small_m_wait_products(&fragments);
            small_m_ring last = ring;
            small_m_enter_last(&last);
            if (ring.slots) small_m_leave_slot(&p, last, fills, step - WALKERS, first_step, end);
        }
#endif
        /* A thread has 64 bytes of weights, and too few registers to decode all of them at once.
         * Each iteration of this loop decodes and multiplies a part of them: the weights of one
         * tile of 16 rows, or those of one step of K. */
        const int passes = SMALL_M_GROUPED ? ROW_TILES * SPAN : SPAN;
#pragma unroll
        for (int r = 0; r < passes; r++) {
            float(*const total)[4] = &sums[r * SMALL_M_TILES];
#if SMALL_M_GROUPED
            float parts[SMALL_M_TILES][4];
#else
            float(*const parts)[4] = total;
#endif
#if SMALL_M_WGMMA
            if (SPAN == 2 && r == 1 && step + 1 == end) break;
            if (SPAN == 2)
                small_m_find_half(SMALL_M_FORMAT, scale + r * STEP_SCALES, p.scale_stride,
                                  factors.f[r], &most);
            if (IN_HALVES) small_m_take_half(&lane, slot, r, &words);
            small_m_group_step(SMALL_M_FORMAT, SMALL_M_TILES, r, &words, &factors,
                               small_m_describe(SMALL_M_TILES, at + r * 4 * chunk_bytes),
                               &fragments, &parts[0][0], !SMALL_M_GROUPED, nans);
            if (SMALL_M_GROUPED) {
                small_m_wait_products(&fragments);
                small_m_hold(SMALL_M_TILES, &parts[0][0]);
            }
#else
#    pragma unroll
            for (int n = 0; SMALL_M_GROUPED && n < SMALL_M_TILES; n++)
                parts[n][0] = parts[n][1] = parts[n][2] = parts[n][3] = 0;
            small_m_step(SMALL_M_FORMAT, SMALL_M_TILES, r, SMALL_M_GROUPED ? r + 1 : ROW_TILES,
                         &words, &factors, at, chunk_bytes, columns, parts, nans);
#endif
            if (SMALL_M_GROUPED)
                small_m_add_step(SMALL_M_FORMAT, SMALL_M_TILES, &p,
                                 step + (SPAN == 2 ? r : 0) - block.begin, t, scale, parts, total);
        }
        /* All weights in this slot of shared memory are decoded, so the copy of a later step's
         * weights may overwrite the slot. */
        if (step + BSMM_SMALL_M_AHEAD * WALKERS < end)
            small_m_fetch(SMALL_M_FORMAT, 2 * ROW_TILES, &lane, slot);
        small_m_go_on(SMALL_M_FORMAT, 2 * ROW_TILES, &lane);
        ptx_copy_commit();
        slot ^= 1;
        scale += WALKERS * STEP_SCALES;
        at += (ring.slots ? SPAN : WALKERS) * 4 * chunk_bytes;
        if (ring.slots) {
            if (!SMALL_M_WGMMA) small_m_leave_slot(&p, ring, fills, step, first_step, end);
            small_m_enter_next(&ring);
            if (ring.slot == 0) at = ring.first;
        }
    }
#if SMALL_M_WGMMA
    small_m_wait_products(&fragments);
#    pragma unroll
    for (int r = 0; r < SPAN; r++)
        small_m_hold(SMALL_M_TILES, &sums[r * SMALL_M_TILES][0]);
#endif

    small_m_mark_nans(SMALL_M_FORMAT, SUMS, nans, bsmm_e8m0_beyond(most), sums);

    __syncthreads();
    /* Each column of accumulators in shared memory has 4 floats of padding, so that the stores of a
     * warp go to different banks. */
    const uint32_t pitch = block.rows + 4;
    float *mine =
        (float *)small_m_shared + k_warp * SMALL_M_TILES * 8 * pitch + row_warp * ROW_TILES * 16;
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        float *to = mine + s / SMALL_M_TILES * (SPAN == 2 ? SMALL_M_TILES * 8 * pitch : 16);
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[(s % SMALL_M_TILES * 8 + t * 2 + i % 2) * pitch + i / 2 * 8 + g] = sums[s][i];
    }
    small_m_epilogue(&p, &block, rank, SMALL_M_TILES, pitch, small_m_unfold(SMALL_M_FORMAT),
                     !SMALL_M_GROUPED && p.row_scaled, !SMALL_M_GROUPED);
}

#undef E2M1
#undef FOUR
#undef SIX
#undef ROW_TILES
#undef SPAN
#undef IN_HALVES
#undef SUMS
#undef WALKERS
#undef STEP_SCALES
#undef FLOAT_ROWS
#undef HEAD
#undef SMALL_M_NAME
#undef SMALL_M_FORMAT
#undef SMALL_M_TILES
#undef SMALL_M_GROUPED
#undef SMALL_M_WGMMA
