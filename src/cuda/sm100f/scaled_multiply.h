/* These functions issue the products of the sm_100f kernels, and the copies of scales to tensor
 * memory before them. scaled_body.h includes this file. */

/* Copies the scales of a stage from shared memory (from address `from` on) to tensor memory (from
 * column `to` on). If a pair of thread blocks computes a tile, the scales are copied in both. A
 * scale tile has 4 scales along K for each of 128 rows, and takes 4 columns of tensor memory. A
 * stage has `tiles` scale tiles along K for one block of 128 rows of A, and as many for each of
 * B_ROW_BLOCKS blocks of 128 rows of B. The descriptors of the scale tiles in shared memory differ
 * only in the address field, which counts units of 16 bytes. */
static __device__ __forceinline__ void copy_scales(uint32_t to, uint32_t from, uint32_t tiles) {
    const uint64_t rows = ptx_tcgen05_rows_16(from), step = SCALE_TILE / 16;
#pragma unroll
    for (int t = 0; t < SCALE_TILES; t++) {
        if ((uint32_t)t >= tiles) break;
        group_copy_scales(to + 4 * t, rows + step * t);
#pragma unroll
        for (int i = 0; i < B_ROW_BLOCKS; i++)
            group_copy_scales(to + A_SCALE_COLUMNS + 4 * (t * B_ROW_BLOCKS + i),
                              rows + step * ((1 + i) * SCALE_TILES + t));
    }
}

/* Issues the tcgen05.mma instructions of a k block. In tensor memory, the scales of a k block form
 * scale tiles of 4 scales along K, and each 32-bit word holds the 4 scales of one row. Instruction
 * number `step` needs the scales that begin with number `first` along K. They lie in scale tile
 * first / 4 and begin with byte first % 4 of each word.
 *
 * If the tile's rows of B begin in the middle of a block of 128 rows, their scales begin two
 * columns later, and `shift` is 2; otherwise it is 0. If TMA spreads elements to bytes, the loading
 * thread waits for single instructions (load_bursts), so their completion is signaled to it. */
static __device__ __forceinline__ void multiply(const bsmm_scaled_params *p, uint32_t d,
                                                uint32_t scales, uint32_t a, uint32_t b,
                                                uint32_t shift, uint32_t left, uint32_t adds,
                                                shared *told, uint32_t stage) {
    const uint64_t a_rows = ptx_tcgen05_rows_128(a), b_rows = ptx_tcgen05_rows_128(b);
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t first = step * STEP_SCALES, tile = first / 4, number = first % 4;
        if (BURSTS > 1 && step > 0 && p->spreads) group_commit(&told->steps[step - 1][stage]);
        if (step * STEP_K >= left) continue;
        group_multiply(d, a_rows + 2 * step, b_rows + 2 * step,
                       SCALED_BLOCK ? p->form | number << 4 | number << 29 : p->form,
                       scales + 4 * tile,
                       scales + A_SCALE_COLUMNS + 4 * B_ROW_BLOCKS * tile + shift, adds | step);
    }
}

/* A thread block numbers its sums from 0, and computes them in two accumulators in tensor memory by
 * turns. Sum number `sums` overwrites the accumulator of sum number `sums` - 2. The function waits
 * until it may be overwritten, i.e. until the warps that store D have read it.
 *
 * The two accumulators may have some columns in common (SHARED_COLUMNS). Sum number `sums` then
 * overwrites the shared columns of sum number `sums` - 1, too. In this case the function waits
 * until the warps have read these shared columns; they signal this by barrier 0. They have then
 * read sum number `sums` - 2 long before. */
static __device__ __forceinline__ void wait_for_accumulator(shared *told, uint32_t sums) {
    if (SHARED_COLUMNS)
        wait_for(&told->available[0], ~sums & 1);
    else
        wait_for(&told->available[sums & 1], ~(sums / 2) & 1);
}

/* Issues all tcgen05.mma instructions for the tiles of this group. A group is one thread block or a
 * pair of them. One thread of the group's first thread block calls this function. */
static __device__ __forceinline__ void multiply_tiles(const bsmm_scaled_params *p, uint32_t base,
                                                      shared *told) {
    const k_range range = k_range_of(p);
    /* The thread reads the address of its tensor memory only once. In each k block, it would
     * otherwise wait until shared memory has time for a read. */
    const uint32_t columns = told->columns;
    /* `count` is the number of k blocks that the thread has multiplied so far, and `sums` is the
     * number of accumulators that it has filled. */
    uint32_t count = 0, sums = 0;
    FOR_TILES(p, tile) {
        const uint32_t shift = tile_at(p, tile).col % SCALE_ROWS / 32;
        uint32_t in_sum = 0;
        for (uint32_t block = range.first; block < range.end; block++, count++) {
            const uint32_t stage = count % STAGES, which = sums & 1,
                           scales = columns + SCALES_AT + (count & 1) * SCALE_COLUMNS;
            if (SCALED_BLOCK && count >= 2)
                wait_for(&told->empty[(count - 2) % STAGES], filled_parity(count - 2));
            if (SCALED_SIGNED) wait_for(&told->read[count & 1], ~(count / 2) & 1);
            wait_for(&told->full[stage], filled_parity(count));
            ptx_tcgen05_fence_after();
            /* Warp 6 reads the columns of all scale tiles, so all are written. It does not test
             * those past the end of K. */
            copy_scales(scales, scales_of(base, stage),
                        SCALED_SIGNED ? SCALE_TILES : scale_tiles_of(p, block));
            if (SCALED_SIGNED) group_commit(&told->copied[count & 1]);
            if (in_sum == 0) {
                wait_for_accumulator(told, sums);
                ptx_tcgen05_fence_after();
            }
            multiply(p, columns + which * SECOND_AT, scales, a_of(base, stage), b_of(base, stage),
                     shift, p->k - block_position_of(p, block).k * BLOCK_K, in_sum++, told, stage);
            group_commit(&told->empty[stage]);
            if (block + 1 < range.end && !(SCALED_GROUPS && in_sum == p->sum_blocks)) continue;
            group_commit(&told->done[which]);
            sums++, in_sum = 0;
        }
    }
}
