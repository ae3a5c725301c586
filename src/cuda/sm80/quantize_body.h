/* This is the body of a kernel that quantizes rows of f32, f16 or bf16 values to elements of BITS
 * bits. quantize.cu includes this file once for each kernel. Before, it defines the macros NAME,
 * BITS, TILE, ELEM (the type of the values) and TYPE (an unsigned integer type of the same size).
 *
 * A thread quantizes 16 values along a row in each of ITEMS rows. If a scale block has one row
 * (TILE 0), several neighboring threads have its values, and find its largest magnitude (amax) by
 * shuffles. If a scale block has 128 x 128 values (TILE 1), the whole thread block has them, and
 * finds the amax in shared memory. Every value is loaded once and stays in registers. */

/* SPAN is the number of 4-byte words of a thread's 16 values of one row. */
#define SPAN  (16 * (int)sizeof(TYPE) / 4)
#define ITEMS (TILE || sizeof(TYPE) == 2 ? 4 : 2)

extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS, TILE ? 2 : 3)
    NAME(const __grid_constant__ bsmm_quantize_job job) {
    uint32_t raw[ITEMS][SPAN], amax[ITEMS], thread = threadIdx.x;
#if TILE
    uint32_t row_stride = QUANTIZE_THREADS / 8, k = blockIdx.y * 128 + thread % 8 * 16;
    uint32_t row0 = blockIdx.x * 128 + thread / 8;
#else
    uint32_t lanes = 1u << job.lanes_log2, row_stride = QUANTIZE_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * 16;
    uint32_t row0 = blockIdx.x * row_stride * ITEMS + (thread >> job.lanes_log2);
#endif
    uint32_t n = k < job.cols ? min(job.cols - k, 16) : 0;
    const TYPE *from = (const TYPE *)job.src + row0 * job.src_lines.row_step + k;
    uint64_t step = row_stride * job.src_lines.row_step;
    uint64_t line = job.dst_lines.row_step / 8 * BITS + job.dst_lines.row_step % 8 * BITS / 8;

    if (job.aligned_src && n == 16 && row0 + (ITEMS - 1) * row_stride < job.rows) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_item(SPAN, from + i * step, raw[i]);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_part(sizeof(TYPE), from + i * step, row0 + i * row_stride < job.rows ? n : 0,
                      raw[i]);
    }

    uint8_t *to = job.dst + row0 * line + k / 8 * BITS;
    uint64_t to_step = row_stride * line;
#if BITS == 4
    __shared__ quantize_level level;
    if (thread < LEVEL_FACTORS) make_level(&job, thread, &level);
    __syncthreads();
#else
    bsmm_tensor_step tensor = job.tensor;
    if (job.amax) tensor = bsmm_lane_tensor(&job.tensor, &job.steps, __ldg(job.amax));
    const float multiplier = tensor.multiplier, divisor = tensor.divisor;
#endif

#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        amax[i] = job.steps.skips_nan ? item_amax_below(ELEM, raw[i], 0x7f800000u)
                                      : item_amax(ELEM, raw[i]);
#if TILE
    __shared__ uint32_t of_warps[QUANTIZE_THREADS / 32];
    uint32_t most =
        __reduce_max_sync(0xffffffffu, max(max(amax[0], amax[1]), max(amax[2], amax[3])));
    if (thread % 32 == 0) of_warps[thread / 32] = most;
    __syncthreads();
    for (int i = 0; i < QUANTIZE_THREADS / 32; i++)
        most = max(most, of_warps[i]);
    bsmm_block_step block = block_step(&job, most, multiplier, divisor);
    if (thread == 0) bsmm_lane_store_scale(&job, row0, bsmm_axis_at(&job.col_map, k), block.code);
#else
    for (uint32_t distance = 1; distance < job.block_lanes; distance *= 2)
#    pragma unroll
        for (int i = 0; i < ITEMS; i++)
            amax[i] = max(amax[i], __shfl_xor_sync(0xffffffffu, amax[i], distance));
    /* Up to 4 adjacent threads have values in the same scale block. These threads divide the rows
     * among them, and each thread computes the scales of its rows. */
    uint32_t scale_lanes = min(job.block_lanes, ITEMS), lane = thread & (scale_lanes - 1);
    uint64_t column = job.scale ? bsmm_axis_at(&job.col_map, min(k, job.cols - 1)) : 0;
    bool stores = job.scale && (k & (job.block_cols - 1)) / 16 < scale_lanes &&
                  (k & ~(job.block_cols - 1)) < job.cols;
    float factors[ITEMS];
#    pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        if (i * scale_lanes >= ITEMS) continue;
        uint32_t mine = amax[i], row = row0 + (i * scale_lanes + lane) * row_stride;
#    pragma unroll
        for (int j = 0; j < ITEMS; j++)
            mine = j == i * scale_lanes + lane ? amax[j] : mine;
#    if BITS == 4
        bsmm_block_step block = quick_step_by(&job, mine, &level);
#    else
        bsmm_block_step block = quick_step(&job, mine, multiplier, divisor);
#    endif
        if (stores && row < job.rows) bsmm_lane_store_scale(&job, row, column, block.code);
        factors[i] = block.factor;
    }
#endif

    /* Before rounding to the element format, the thread's 16 values of row i are multiplied or
     * divided by met[i]. */
    float met[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#if TILE
        met[i] = block.factor;
        amax[i] = most;
#else
        float factor = scale_lanes == 4   ? factors[i / 4]
                       : scale_lanes == 2 ? factors[i / 2]
                                          : factors[i];
        met[i] = __shfl_sync(0xffffffffu, factor,
                             (thread % 32 & ~(scale_lanes - 1)) + (i & (scale_lanes - 1)));
#endif
    }

    item_position position = {row0, row_stride, n, to, to_step};
#define QUICK(quick) quick_items(&job, ELEM, BITS, quick, ITEMS, SPAN, raw[0], amax, met, &position)
    if (BITS == 8 && (QUICK(BSMM_QUICK_E4M3_MULTIPLY) || QUICK(BSMM_QUICK_E4M3_DIVIDE))) return;
    if (BITS == 4 && (QUICK(BSMM_QUICK_E2M1_PAIRS) || QUICK(BSMM_QUICK_E2M1_MULTIPLY))) return;
    if (BITS == 4 && (QUICK(BSMM_QUICK_E2M1_PLUS) || QUICK(BSMM_QUICK_E2M1_PLUS_DIVIDE))) return;
    if (BITS == 6 && (QUICK(BSMM_QUICK_E2M3) || QUICK(BSMM_QUICK_E3M2))) return;
#undef QUICK

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t codes[4];
        encode_item(&job, ELEM, BITS, amax[i], met[i], n, raw[i], codes);
        if (row0 + i * row_stride < job.rows && n)
            store_codes(&job, BITS, to + i * to_step, n, codes);
    }
}

#undef SPAN
#undef ITEMS
#undef NAME
#undef TYPE
#undef ELEM
#undef BITS
#undef TILE
