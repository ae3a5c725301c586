/* This is the body of a kernel that packs elements of BITS bits with e8m0 scales to 8-bit floats.
 * BY_ROWS is 1 for row-major operands and 0 for column-major ones. The build makes a .cu file from
 * pack_fp8.def, which includes this file once for each kernel, after it has defined NAME, BITS,
 * BY_ROWS and ELEM (the format of the elements).
 *
 * In each of ITEMS rows, a thread packs 16 elements along K to 16 bytes. It issues all loads before
 * it computes anything, so that many loads are in flight. */

#define PACKED (BITS == 6 && BY_ROWS)
#define WORDS  (BITS == 4 ? 2 : PACKED ? 3 : 4)
#define ITEMS  (BY_ROWS ? 8 : 4)

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_pack_job job) {
    uint32_t thread = threadIdx.x;
    item_reach reach = reach_nothing();
    /* This call allows the next kernel of the stream to start before this kernel has ended
     * (programmatic dependent launch). This kernel may itself start before the previous kernel has
     * ended. It waits for that kernel only before it updates the header of the packed operand. */
    bsmm_cuda_admit_next_kernel();
#if BY_ROWS
    uint32_t lanes = 1u << job.lanes_log2, row_stride = PACK_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * FOLD_CODES;
    uint32_t row0 = blockIdx.x * row_stride * ITEMS + (thread >> job.lanes_log2);
#else
    __shared__ uint32_t tile[TILE_WORDS];
    uint32_t tile_row = blockIdx.x * TILE_SIDE, chunk = thread % FOLD_LANES;
    uint32_t row_stride = PACK_THREADS / FOLD_LANES, row0 = tile_row + thread / FOLD_LANES;
    uint32_t k = blockIdx.y * TILE_SIDE + chunk * FOLD_CODES;
#endif
    const pack_position place = {row0, row_stride, k,
                                 k < job.cols ? min(job.cols - k, FOLD_CODES) : 0};

#if BY_ROWS
    /* `codes` holds the thread's 16 elements of each row, packed as in memory. */
    uint32_t codes[ITEMS][BITS / 2];
    load_rows(&job, BITS, FOLD_CODES, ITEMS, &place, codes[0]);
#else
    fill_tile(&job, BITS, tile_row, k - chunk * FOLD_CODES, tile);
#endif
    uint32_t row = row0 + (BITS < 8 ? thread & (ITEMS - 1) : fast_row(ITEMS)) * row_stride;
    uint32_t group = scale_word(&job, FOLD_BLOCK, 127, row, k - thread % FOLD_LANES * FOLD_CODES);
    uint32_t first = scale_word(&job, FOLD_BLOCK, 0, row, 0);
#if BITS == 4
    __shared__ uint4 table[16];
    if (thread < 16) table[thread] = fold_entry(&job, (int)thread);
#elif BITS == 6
    const uint4 *table = NULL;
#endif
    if (BITS == 4 || !BY_ROWS) __syncthreads();
#if !BY_ROWS
    uint32_t codes[ITEMS][WORDS];
#    pragma unroll
    for (int i = 0; i < ITEMS; i++)
        tile_codes(BITS, FOLD_CODES, tile, row0 - tile_row + i * row_stride, chunk, codes[i]);
#endif

#if BITS < 8
    fold_items(&job, ELEM, PACKED, ITEMS, table, group, first, codes[0], &place, &reach);
#else
    int row_top = row_top_code(&job, first) - 127;
    if (!fast_items(&job, ELEM, ITEMS, group, row_top, codes[0], &place, &reach)) {
        /* This is the slow path. It loads the elements again, one row at a time. The loop is not
         * unrolled, because it rarely runs and its code should stay small. */
#    pragma unroll 1
        for (int i = 0; i < ITEMS; i++) {
            uint32_t again[WORDS];
#    if BY_ROWS
            load_row_again(&job, BITS, FOLD_CODES, i, &place, again);
#    else
            tile_codes(BITS, FOLD_CODES, tile, row0 - tile_row + i * row_stride, chunk, again);
#    endif
            define_fast(&job, ITEMS, i, group, row_top, again, &place, &reach);
        }
    }
#endif
    if (k % BSMM_PACK_GROUP == 0 && job.group_scales)
        pad_group_scales(&job, row0, row_stride, ITEMS, k);
    bsmm_lane_group all = reach_told(&job, &reach);
    tell_header(job.header, &all);
}

#undef PACKED
#undef WORDS
#undef ITEMS
#undef NAME
#undef BITS
#undef BY_ROWS
#undef ELEM
