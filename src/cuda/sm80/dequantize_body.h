/* One dequantizing kernel: rows of codes of BITS bits to f32 (WIDE 1) or f16 and bf16 (0). Included
 * by dequantize.cu with NAME, BITS and WIDE. A thread has 8 codes along a row in each of ITEMS
 * rows.
 */

#define ITEMS     4
#define RAW_BYTES BITS

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_dequantize_job job) {
    uint32_t thread = threadIdx.x, lanes = 1u << job.lanes_log2;
    uint32_t rows_apart = PACK_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * 8;
    uint32_t row0 = blockIdx.x * rows_apart * ITEMS + (thread >> job.lanes_log2);
    uint32_t n = k < job.cols ? min(job.cols - k, 8) : 0;
    float global = job.global ? __ldg(job.global) : 1;
    uint32_t raw[ITEMS][(RAW_BYTES + 3) / 4], scales[ITEMS];

    uint64_t column = job.scale ? bsmm_axis_at(&job.col_map, min(k, job.cols - 1)) : 0;
    bool within_cols = (k & ~(job.share * 8 - 1)) < job.cols;
    if (job.scale) load_scale_codes(&job, ITEMS, row0, rows_apart, column, within_cols, scales);
    uint64_t line = job.src_lines.row_step / 8 * BITS + job.src_lines.row_step % 8 * BITS / 8;
    const uint8_t *from = job.src + row0 * line + k / 8 * BITS;
    if (job.aligned_src && n == 8 && row0 + (ITEMS - 1) * rows_apart < job.rows) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_whole(RAW_BYTES, from + i * rows_apart * line, raw[i]);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_some(RAW_BYTES, from + i * rows_apart * line,
                      row0 + i * rows_apart < job.rows ? (n * BITS + 7) / 8 : 0, raw[i]);
    }

    uint32_t codes[ITEMS][2];
    float factors[ITEMS];
    bool rare = !job.aligned_dst || n % 8;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        spread_item(BITS, raw[i], codes[i]);
        factors[i] = 1;
        if (job.scale) factors[i] = quick_scale(&job, code_of(&job, scales, i));
        bool there = n && row0 + i * rows_apart < job.rows;
        rare |= there && !is_usual(&job, BITS, codes[i], factors[i], global);
    }

    uint64_t at = row0 * job.dst_lines.row_step + k, at_step = rows_apart * job.dst_lines.row_step;
    uint32_t there = n ? job.rows : 0;
    if (__any_sync(0xffffffffu, rare)) {
        /* Read again one by one: this is rare, and shall not be long. */
#pragma unroll 1
        for (int i = 0; i < ITEMS; i++) {
            uint32_t row = row0 + i * rows_apart, again[2], packed[(RAW_BYTES + 3) / 4];
            if (row >= there) continue;
            load_some(RAW_BYTES, from + i * rows_apart * line, (n * BITS + 7) / 8, packed);
            spread_item(BITS, packed, again);
            float scale = 1;
            if (job.scale)
                scale = bsmm_lane_scale_value(job.scale, load_scale_code(&job, row, column));
            define_item(&job, again, scale, global, n, at + i * at_step);
        }
        return;
    }

#define DECODE(way, words, from)                                                                   \
    decode_items(&job, BITS, WIDE, way, ITEMS, words, from, factors, global, row0, rows_apart,     \
                 there, at, at_step)
#if BITS == 4 && !WIDE
    if (job.way == BSMM_WAY_EXACT && job.dst_elem == BSMM_LANE_BF16)
        DECODE(TO_BF16, 2, codes[0]);
    else
        DECODE(BY_TABLE, 1, raw[0]);
#else
    bool is_exact = job.way == BSMM_WAY_EXACT, by_cvt = converts(&job, BITS), halves = !WIDE;
#    pragma unroll
    for (int i = 0; i < ITEMS; i++)
        halves &= fits_half(factors[i]);
    if (!WIDE && is_exact && job.dst_elem == BSMM_LANE_BF16)
        DECODE(TO_BF16, 2, codes[0]);
    else if (!WIDE && is_exact && by_cvt && __all_sync(0xffffffffu, halves))
        DECODE(TO_F16, 2, codes[0]);
    else if (is_exact)
        DECODE(BSMM_WAY_EXACT, 2, codes[0]);
    else if (BITS == 8 && job.way == BSMM_WAY_MULTIPLY && by_cvt)
        DECODE(BSMM_WAY_MULTIPLY | BY_CVT, 2, codes[0]);
    else if (job.way == BSMM_WAY_MULTIPLY)
        DECODE(BSMM_WAY_MULTIPLY, 2, codes[0]);
    else
        DECODE(BSMM_WAY_DIVIDE, 2, codes[0]);
#endif
}

#undef DECODE
#undef ITEMS
#undef RAW_BYTES
#undef NAME
#undef BITS
#undef WIDE
