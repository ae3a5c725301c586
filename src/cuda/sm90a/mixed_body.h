/* This is the body of a mixed-input kernel (mixed_kernels.h). A file that includes this file
 * defines these macros:
 *
 *     MIXED_NAME     name of the kernel
 *     MIXED_FORMAT   format of the weights, for example SMALL_M_MXFP4
 *     MIXED_COLUMNS  number of columns of a tile: 32, 64, 96, 128 or 256. A column is one row of A
 *     MIXED_HALF     1 if A is f16 and weights are decoded to f16, 0 if both become bf16
 */

#define TILES (MIXED_COLUMNS / 8)
/* THREADS is the number of threads of the thread block. */
#define THREADS BSMM_MIXED_THREADS(MIXED_COLUMNS)
/* SLOT_CHUNKS is the number of chunks (32 elements along K) that a slot of A's ring buffer holds.
 */
#define SLOT_CHUNKS (MIXED_CHUNKS / BSMM_MIXED_STEP_SLOTS(MIXED_COLUMNS))
/* LATE is 1 if a warp releases a slot of A's ring buffer only after it has started the first wgmma
 * instructions of the next slot, so that the tensor cores always have work. With narrower tiles,
 * other warpgroups keep the tensor cores busy. It is then 1% to 3% faster to wait for the wgmma
 * instructions of each step before the slot is released. */
#define LATE (MIXED_COLUMNS > 128)
/* GROUPED is 1 if B has fp32 scales that change along K. */
#define GROUPED (MIXED_FORMAT == SMALL_M_FP8_F32)
/* ROWS_OF_A is 1 if A may have one fp32 scale per row. A kernel for an f16 A (MIXED_HALF) does not
 * support such scales. */
#define ROWS_OF_A (MIXED_FORMAT == SMALL_M_MXFP4 && !MIXED_HALF)
/* REFERRED is 1 if each row of B has a reference code, i.e. the lowest scale code with which f16
 * holds the row's weights (mixed_half.h). */
#define REFERRED (MIXED_HALF && small_m_has_e8m0(MIXED_FORMAT))

extern "C" __global__ void __launch_bounds__(BSMM_MIXED_THREADS(MIXED_COLUMNS), 1)
    MIXED_NAME(const __grid_constant__ bsmm_small_m_params p) {
    /* The shuffle tells the compiler that all lanes of a warp have the same warp number, so that it
     * keeps wgmma descriptors in uniform registers. */
    const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    const uint32_t g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const mixed_block block = mixed_find_block(&p, MIXED_COLUMNS);
    const uint32_t row_warps = block.rows / 16, row_warp = warp % row_warps;
    const uint32_t k_group = warp / row_warps;
    const uint32_t range = (block.rank << p.k_warps_log2) + k_group;
    const uint32_t begin = mixed_begin_of(&p, range), end = mixed_begin_of(&p, range + 1);

    /* Start the copies of weights and the loads of their scales now, before the wait for the kernel
     * mixed_prepare. No earlier kernel can still be writing the weights or scales: mixed_prepare
     * itself does not write them, and it has waited for all kernels before it. */
    const uint32_t row = block.row + row_warp * 16 + g;
    const mixed_scales scales = mixed_find_scales(&p, row);
    mixed_groups groups = {};
    if (GROUPED) groups = mixed_find_groups(&p, row, min(begin, p.steps - 1));
    small_m_lane lane;
    if (small_m_is_6bit(MIXED_FORMAT))
        small_m_find_six(&p, block.row + row_warp * 16, begin, &lane);
    else
        small_m_find_rows(MIXED_FORMAT, 2, &p, row, begin, &lane);
    mixed_stream stream = {lane,  {{{0}}}, mixed_last_slot(MIXED_FORMAT, THREADS),
                           begin, end,     {0, 0}};
    mixed_begin(MIXED_FORMAT, THREADS, &p, &scales, &stream);
    mixed_prefetch_factors(&p, &block, MIXED_FORMAT == SMALL_M_FP8_ROWS);
    const mixed_rows rows = {row, begin, end};

    mixed_ring ring = mixed_find_ring(&p, MIXED_COLUMNS, k_group, row_warps, begin, end);
    mixed_make_barriers(&p, row_warps);
    __syncthreads();
    /* If there is a second launch (p.first_row > 0), it begins when all thread blocks of the first
     * launch have waited for mixed_prepare. The second launch need not wait for mixed_prepare. */
    if (p.first_row == 0) ptx_grid_wait();
    ptx_grid_release_next();
    if (row_warp == 0 && threadIdx.x % 32 == 0) mixed_fill_first(&ring, block.image);
    if (REFERRED) mixed_find_references(MIXED_FORMAT, THREADS, &p, &scales, &stream);

    float sums[TILES][4];
    uint32_t nans[2] = {0, 0}, most = 0;
#pragma unroll
    for (int i = 0; i < TILES; i++)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;
    /* Without this compiler barrier, ptxas may insert a wait after each wgmma. */
    small_m_hold(TILES, &sums[0][0]);
    small_m_fragments fragments = {{{0}}};
    small_m_words words;
    small_m_factors factors;
    mixed_next(MIXED_FORMAT, THREADS, MIXED_HALF, &stream, &words, &factors, &most);
    if (GROUPED) mixed_group_factors(MIXED_HALF, &groups, &factors);
    mixed_decode(MIXED_FORMAT, MIXED_HALF, 0, &words, &factors, fragments.f[0], nans);
#pragma unroll 1
    for (uint32_t i = 0; begin + i < end; i++) {
        mixed_load_codes(MIXED_FORMAT, &p, &scales, stream.step, &stream.codes);
        const bool last = begin + i + 1 == end;
        if (GROUPED && !last) mixed_load_groups(&groups);
        uint64_t a = 0;
#pragma unroll
        for (int chunk = 0; chunk < MIXED_CHUNKS; chunk++) {
            const int in_slot = chunk % SLOT_CHUNKS;
            const uint32_t use = i * (MIXED_CHUNKS / SLOT_CHUNKS) + chunk / SLOT_CHUNKS;
            if (in_slot == 0) {
                /* The wgmma descriptor is computed before the wait for the slot. If it is computed
                 * after the wait, ptxas keeps it in vector registers in some kernels, and each
                 * wgmma then waits for copies to uniform registers. */
                a = small_m_describe(TILES, mixed_slot(&ring, use));
                mixed_wait_slot(&ring, use);
            }
            mixed_multiply_chunk(MIXED_HALF, TILES, &sums[0][0], fragments.f[chunk % 2],
                                 a + (in_slot * SMALL_M_GROUP_CHUNK(TILES) >> 4),
                                 i > 0 || chunk > 0);
            /* After the last chunk (32 elements along K) of a step, the first chunk of the next
             * step is decoded. */
            const int next = (chunk + 1) % MIXED_CHUNKS;
            if (next == 0)
                mixed_next(MIXED_FORMAT, THREADS, MIXED_HALF, &stream, &words, &factors, &most);
            if (GROUPED && next == 0) mixed_group_factors(MIXED_HALF, &groups, &factors);
            if (in_slot == 1 && use > 0) mixed_refill(&ring, block.image, use - 1, row_warp);
            if (next == 2) mixed_second_half(MIXED_FORMAT, THREADS, &stream, &words);
            PTX_WGMMA_WAIT(1);
            if (LATE && in_slot == 0 && use > 0) mixed_leave_slot(&ring, use - 1);
            small_m_hold_fragment(fragments.f[next % 2]);
            mixed_decode(MIXED_FORMAT, MIXED_HALF, next, &words, &factors, fragments.f[next % 2],
                         nans);
        }
        if (!LATE || GROUPED) small_m_wait_products(&fragments);
        if (!LATE) mixed_leave_slot(&ring, i);
        if (GROUPED) small_m_hold(TILES, &sums[0][0]);
        if (GROUPED && !last) mixed_enter_group(TILES, &groups, sums);
    }
    if (LATE) small_m_wait_products(&fragments);
    small_m_hold(TILES, &sums[0][0]);
    if (GROUPED) mixed_multiply_rows(TILES, groups.current, sums);
    if (!MIXED_HALF) small_m_mark_nans(MIXED_FORMAT, TILES, nans, bsmm_e8m0_beyond(most), sums);
    if (REFERRED) mixed_apply_references(MIXED_FORMAT, TILES, stream.reference, sums);

    /* The epilogue reuses the memory of the ring buffers. The last copies to the ring buffers,
     * which write zeros, must therefore have ended. */
    ptx_copy_wait(0);
    __syncthreads();
    /* In shared memory, the accumulators of a column are contiguous, and 4 floats of padding follow
     * them. Without padding, the stores of a warp would go to the same banks. */
    const uint32_t pitch = block.rows + 4;
    float *mine = (float *)small_m_shared + k_group * MIXED_COLUMNS * pitch + row_warp * 16;
#pragma unroll
    for (int s = 0; s < TILES; s++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            mine[(s * 8 + t * 2 + i % 2) * pitch + i / 2 * 8 + g] = sums[s][i];
    const mixed_sums own = {mine, pitch, block.first, block.count};
    if (REFERRED && __any_sync(0xffffffffu, most > mixed_half_range(MIXED_FORMAT).span))
        mixed_add_left_out(MIXED_FORMAT, &p, rows, stream.reference[0], stream.reference[1], own);
    mixed_epilogue(&p, &block, MIXED_COLUMNS, pitch,
                   MIXED_HALF ? mixed_half_unfold(MIXED_FORMAT) : small_m_unfold(MIXED_FORMAT),
                   MIXED_FORMAT == SMALL_M_FP8_ROWS, GROUPED, ROWS_OF_A,
                   MIXED_FORMAT == SMALL_M_FP8_ROWS || MIXED_FORMAT == SMALL_M_NVFP4 || ROWS_OF_A);
    /* The next kernel of the stream waits only for the second launch. The second launch must
     * therefore not end before the first one. */
    if (p.first_row) ptx_grid_wait();
}

#undef TILES
#undef THREADS
#undef SLOT_CHUNKS
#undef LATE
#undef GROUPED
#undef REFERRED
#undef ROWS_OF_A
#undef MIXED_NAME
#undef MIXED_FORMAT
#undef MIXED_COLUMNS
#undef MIXED_HALF
#undef MIXED_STEP_NS
