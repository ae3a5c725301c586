/* This is the body of a dequantizing kernel. The kernel converts rows of elements of BITS bits to
 * f32 (WIDE 1) or to f16 and bf16 (WIDE 0). dequantize.cu includes this file after it has defined
 * the macros NAME, BITS and WIDE. dequantize.cu may also define SCALE, WAY, FAST and IS_BF16. The
 * kernel is then specialized for one type of scale, one method of decoding, one fast path and one
 * type of result (dequantize_item.h). A thread converts 8 elements along K in each of ITEMS
 * rows. */

#define RAW_BYTES BITS

#ifdef FAST
#    define MADE_FOR(constant, field) constant
#    define ITEMS                     BSMM_DEQUANTIZED_ROWS_MADE
#else
#    define MADE_FOR(constant, field) (job.field)
#    define FAST                      CHOSEN
#    define ITEMS                     BSMM_DEQUANTIZED_ROWS
#endif

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_dequantize_job job) {
    const uint32_t scale = MADE_FOR(SCALE, scale), way = MADE_FOR(WAY, way);
    const bool to_bf16 = MADE_FOR(IS_BF16, dst_elem == BSMM_LANE_BF16),
               rounds = FAST == ROUNDED_BF16;
    const uint32_t thread = threadIdx.x, lanes = 1u << job.lanes_log2,
                   scale_lanes = job.scale_lanes;
    const uint32_t row_stride = PACK_THREADS >> job.lanes_log2;
    const uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * 8;
    const uint32_t row0 = blockIdx.x * row_stride * ITEMS + (thread >> job.lanes_log2);
    const uint32_t n = k < job.cols ? min(job.cols - k, 8) : 0, k_even = k & ~8u;
    uint32_t raw[ITEMS][(RAW_BYTES + 3) / 4], scales[ITEMS];

    const uint64_t line = job.src_lines.row_step / 8 * BITS + job.src_lines.row_step % 8 * BITS / 8;
    const uint8_t *from = job.src + row0 * line + k / 8 * BITS;
    if (job.aligned_src && n == 8 && row0 + (ITEMS - 1) * row_stride < job.rows) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_whole(RAW_BYTES, from + i * row_stride * line, raw[i]);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_some(RAW_BYTES, from + i * row_stride * line,
                      row0 + i * row_stride < job.rows ? (n * BITS + 7) / 8 : 0, raw[i]);
    }
    const uint64_t column = scale ? bsmm_axis_at(&job.col_map, min(k, job.cols - 1)) : 0;
    const bool within_cols = (k & ~((rounds ? 8 : scale_lanes) * 8 - 1)) < job.cols;
    if (scale)
        load_scale_codes(&job, scale, scale_lanes, ITEMS, row0, row_stride, column, within_cols,
                         scales);
    const float global = job.global ? __ldg(job.global) : 1;

    uint32_t codes[ITEMS][2];
    float factors[ITEMS];
    bool rare = !job.aligned_dst || n % 8, twice = false;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        spread_item(BITS, raw[i], codes[i]);
        factors[i] = 1;
        if (scale) factors[i] = quick_scale(scale, code_of(scale_lanes, scales, i));
        bool there = row0 + i * row_stride < job.rows;
        rare |= there && n && !is_usual(&job, BITS, scale, way, codes[i], factors[i], global);
        twice |= rounds && there && halfway(factors[i]);
    }

    const uint64_t at = row0 * job.dst_lines.row_step + k,
                   at_step = row_stride * job.dst_lines.row_step;
    const uint32_t there = n ? job.rows : 0;
    if (__any_sync(0xffffffffu, rare)) {
        /* This is the slow path. It loads the elements again, one row at a time. The loop is not
         * unrolled, because it rarely runs and its code should stay small. */
#pragma unroll 1
        for (int i = 0; i < ITEMS; i++) {
            uint32_t row = row0 + i * row_stride, again[2], packed[(RAW_BYTES + 3) / 4];
            if (row >= there) continue;
            load_some(RAW_BYTES, from + i * row_stride * line, (n * BITS + 7) / 8, packed);
            spread_item(BITS, packed, again);
            float value = 1;
            if (scale)
                value =
                    bsmm_lane_scale_value(scale, bsmm_lane_load_scale(&job, scale, row, column));
            define_item(&job, again, value, global, n, at + i * at_step);
        }
        return;
    }

    /* Decodes a thread's 8 elements in each of ITEMS rows without branches, so that the latencies
     * of the rows overlap. */
#define DECODE(fast)                                                                               \
    do {                                                                                           \
        const float reciprocal = way == BSMM_WAY_DIVIDE && !WIDE ? __frcp_rn(global) : 1;          \
        _Pragma("unroll") for (int i = 0; i < ITEMS; i++) {                                        \
            uint32_t out[8];                                                                       \
            const bool packed = BITS == 4 && ((fast) == BY_TABLE || (fast) == TO_BF16);            \
            uint4 *to = (uint4 *)(job.dst + (at + i * at_step) * (WIDE ? 4 : 2));                  \
            decode_item(&job, BITS, WIDE, scale, way, fast, to_bf16, packed ? raw[i] : codes[i],   \
                        factors[i], global, reciprocal, out);                                      \
            const bool wanted = row0 + i * row_stride < job.rows;                                  \
            if (WIDE) {                                                                            \
                int first, second;                                                                 \
                exchange_wide(out, &first, &second);                                               \
                if (wanted && k_even < job.cols)                                                   \
                    to[first] = make_uint4(out[0], out[1], out[2], out[3]);                        \
                if (wanted && k_even + 8 < job.cols)                                               \
                    to[second] = make_uint4(out[4], out[5], out[6], out[7]);                       \
            } else if (wanted && n) {                                                              \
                to[0] = make_uint4(out[0], out[1], out[2], out[3]);                                \
            }                                                                                      \
        }                                                                                          \
    } while (0)

    if ((rounds || FAST >= BY_CVT) && !converts(&job, BITS)) {
        DECODE(BSMM_WAY_MULTIPLY);
    } else if (rounds && __any_sync(0xffffffffu, twice)) {
        DECODE(BSMM_WAY_MULTIPLY | BY_CVT);
    } else if (FAST != CHOSEN) {
        DECODE(FAST);
    } else if (BITS == 4 && !WIDE) {
        if (way == BSMM_WAY_EXACT && to_bf16)
            DECODE(TO_BF16);
        else
            DECODE(BY_TABLE);
    } else {
        bool by_cvt = converts(&job, BITS), halves = !WIDE;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            halves &= fits_half(factors[i]);
        if (!WIDE && way == BSMM_WAY_EXACT && to_bf16)
            DECODE(TO_BF16);
        else if (!WIDE && way == BSMM_WAY_EXACT && by_cvt && __all_sync(0xffffffffu, halves))
            DECODE(TO_F16);
        else if (way == BSMM_WAY_EXACT)
            DECODE(BSMM_WAY_EXACT);
        else if (BITS == 8 && way == BSMM_WAY_MULTIPLY && by_cvt)
            DECODE(BSMM_WAY_MULTIPLY | BY_CVT);
        else if (way == BSMM_WAY_MULTIPLY)
            DECODE(BSMM_WAY_MULTIPLY);
        else
            DECODE(BSMM_WAY_DIVIDE);
    }
}

#undef DECODE
#undef MADE_FOR
#undef ITEMS
#undef RAW_BYTES
#undef NAME
#undef BITS
#undef WIDE
#undef SCALE
#undef WAY
#undef FAST
#undef IS_BF16
