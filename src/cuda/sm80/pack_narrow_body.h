/* This is the body of a kernel that packs elements of BITS bits to OUT bits, from row-major
 * (BY_ROWS 1) or column-major operands (BY_ROWS 0). pack_narrow.cu and sm90a/pack_fp8_kernels.h
 * include it with NAME, BITS, OUT, BY_ROWS and E8M0, which is 1 in kernels that are specialized for
 * e8m0 scales.
 *
 * A thread packs 128 / OUT elements along K, which become 16 bytes, in each of ITEMS rows. The
 * thread issues all loads before it computes anything, so that many loads are in flight. */

#define CODES       (128 / OUT)
#define WORDS       (BITS == 4 ? CODES / 8 : CODES / 4)
#define GROUP_LANES (BSMM_PACK_GROUP / CODES)
#define RAW_BYTES   (BITS * CODES / 8)
#define ITEMS       (OUT == 16 ? 8 : 4)
#define SCALE       (E8M0 ? 1 : job.scale)

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_pack_job job) {
    uint32_t scales[ITEMS], thread = threadIdx.x;
    item_reach reach = reach_nothing();
    /* Allows the stream's next kernel to start now, before this kernel ends. This kernel itself
     * waits for the end of the previous kernel only before it updates the header of the packed
     * operand. */
    bsmm_cuda_admit_next_kernel();

#if BY_ROWS
    uint32_t lanes = 1u << job.lanes_log2, row_stride = PACK_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * CODES;
    uint32_t row0 = blockIdx.x * row_stride * ITEMS + (thread >> job.lanes_log2);
#else
    __shared__ uint32_t tile[TILE_WORDS];
    uint32_t tile_row = blockIdx.x * TILE_SIDE, tile_k = blockIdx.y * TILE_SIDE;
    uint32_t row_stride = PACK_THREADS / GROUP_LANES, chunk = thread % GROUP_LANES;
    uint32_t row0 = tile_row + thread / GROUP_LANES, k = tile_k + chunk * CODES;
#endif
    uint32_t n = k < job.cols ? min(job.cols - k, CODES) : 0;

    /* Load the block scales. Past the end of K, use the code of a scale of 1. */
    uint64_t column = SCALE ? bsmm_axis_at(&job.col_map, min(k, job.cols - 1)) : 0;
    uint32_t one = SCALE == 2 ? 0x38 : 127;
    bool within = (k & ~(job.scale_lanes * CODES - 1)) < job.cols;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        scales[i] = one;
    if (SCALE) load_scales(&job, E8M0, ITEMS, row0, row_stride, column, within, one, scales);

#if BY_ROWS
    const pack_position position = {row0, row_stride, k, n};
    uint32_t raw[ITEMS][(RAW_BYTES + 3) / 4];
    load_rows(&job, BITS, CODES, ITEMS, &position, raw[0]);
#else
    fill_tile(&job, BITS, tile_row, tile_k, tile);
    __syncthreads();
#endif

    uint32_t codes[ITEMS][WORDS], code[ITEMS];
    bool rare = false, leads = k % BSMM_PACK_GROUP == 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#if BY_ROWS
        item_codes(BITS, CODES, raw[i], codes[i]);
#else
        tile_codes(BITS, CODES, tile, row0 - tile_row + i * row_stride, chunk, codes[i]);
#endif
        code[i] = scale_of(&job, scales, i);
        code[i] = n ? code[i] : one;
        rare |= is_rare(&job, BITS, OUT, SCALE, code[i], codes[i]);
    }

    uint8_t *to = (uint8_t *)job.elements + row0 * job.element_pitch + (uint64_t)k * (OUT / 8);
    uint64_t to_step = row_stride * job.element_pitch;
    uint64_t group = job.group_scales ? k / BSMM_PACK_GROUP * job.group_pitch + row0 : 0;
    if (!__any_sync(0xffffffffu, rare)) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            uint32_t out[4];
            bool there = row0 + i * row_stride < job.rows;
            bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
            if (OUT == 16) g = item_to_bf16(&job, BITS, SCALE, code[i], codes[i], &reach, out);
            for (int j = 0; j < 4 && OUT == 8; j++)
                out[j] = codes[i][j];
            if (!E8M0 && leads && there) g = leading_group(&job, code[i], &reach);
            if (there) *(uint4 *)(to + i * to_step) = make_uint4(out[0], out[1], out[2], out[3]);
            if (there && leads && job.group_scales)
                job.group_scales[group + i * row_stride] = g.scale;
        }
    } else {
        /* This is the slow path. It loads the elements again, one row at a time. The loop is not
         * unrolled, because it rarely runs and its code should stay small. */
#pragma unroll 1
        for (int i = 0; i < ITEMS; i++) {
            uint32_t row = row0 + i * row_stride, again[WORDS], scale = one, out[4];
            bool there = row < job.rows;
#if BY_ROWS
            load_row_again(&job, BITS, CODES, i, &position, again);
#else
            tile_codes(BITS, CODES, tile, row - tile_row, chunk, again);
#endif
            if (SCALE && n && there) scale = load_scale(&job, E8M0, row, column);
            bsmm_lane_group g = define_item(&job, BITS, OUT, scale, 0, again, out);
            if (there) extend(&reach.told, &g);
            if (!E8M0 && leads && there) g = leading_group(&job, scale, &reach);
            if (there) *(uint4 *)(to + i * to_step) = make_uint4(out[0], out[1], out[2], out[3]);
            if (there && leads && job.group_scales)
                job.group_scales[group + i * row_stride] = g.scale;
        }
    }
    if (leads && job.group_scales) pad_group_scales(&job, row0, row_stride, ITEMS, k);
    bsmm_lane_group all = reach_told(&job, &reach);
    tell_header(job.header, &all);
}

#undef CODES
#undef WORDS
#undef GROUP_LANES
#undef RAW_BYTES
#undef ITEMS
#undef NAME
#undef BITS
#undef OUT
#undef BY_ROWS
#undef E8M0
#undef SCALE
