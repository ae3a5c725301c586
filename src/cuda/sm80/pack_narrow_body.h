/* One packing kernel for elements of BITS bits that become OUT bits, from rows (BY_ROWS 1) or
 * columns (0) in memory. Included by pack_narrow.cu and sm90a/pack_fp8.cu with NAME, BITS, OUT,
 * BY_ROWS.
 *
 * A thread has ITEMS items: 128 / OUT codes along K, which make 16 bytes, at one k in ITEMS rows.
 * Everything is loaded before anything is computed, so that many loads are in flight.
 *
 * By columns: a block has a tile of 128 rows x 128 of K. Each thread reads 16 rows at 4
 * neighbouring k, transposes 4 x 4 bytes in registers and writes words of one row to shared memory
 * (16 KiB, one code per byte). Word w of row r lies at w ^ 4 * (r / 16 % 8): neither the writes (8
 * lanes that are 16 rows apart) nor the reads (16 bytes along a row) meet in a bank. */

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
    if (gate_closed(job.gate, job.gate_mask)) return;

#if BY_ROWS
    uint32_t lanes = 1u << job.lanes_log2, rows_apart = PACK_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * CODES;
    uint32_t row0 = blockIdx.x * rows_apart * ITEMS + (thread >> job.lanes_log2);
    uint32_t n = k < job.cols ? min(job.cols - k, CODES) : 0;
#else
    __shared__ uint32_t tile[128 * 32];
    uint32_t tile_row = blockIdx.x * 128, tile_k = blockIdx.y * 128;
    uint32_t rows_apart = PACK_THREADS / GROUP_LANES, chunk = thread % GROUP_LANES;
    uint32_t row0 = tile_row + thread / GROUP_LANES, k = tile_k + chunk * CODES;
    uint32_t n = k < job.cols ? min(job.cols - k, CODES) : 0;
#endif

    /* Block scales; behind K one. */
    uint64_t column = SCALE ? bsmm_axis_at(&job.col_map, min(k, job.cols - 1)) : 0;
    uint32_t one = SCALE == 2 ? 0x38 : 127;
    bool within = (k & ~(job.share * CODES - 1)) < job.cols;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        scales[i] = one;
    if (SCALE) load_scales(&job, E8M0, ITEMS, row0, rows_apart, column, within, one, scales);

        /* Elements. */
#if BY_ROWS
    uint32_t raw[ITEMS][(RAW_BYTES + 3) / 4];
    const uint8_t *from = job.data + row0 * job.line_bytes + (uint64_t)k / 8 * BITS;
    uint64_t step = rows_apart * job.line_bytes;
    if (job.aligned && n == CODES && row0 + (ITEMS - 1) * rows_apart < job.rows) {
#    pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_whole(RAW_BYTES, from + i * step, raw[i]);
    } else {
#    pragma unroll
        for (int i = 0; i < ITEMS; i++)
            load_some(RAW_BYTES, from + i * step,
                      row0 + i * rows_apart < job.rows ? (n * BITS + 7) / 8 : 0, raw[i]);
#    pragma unroll
        for (int i = 0; i < ITEMS; i++)
            cut_bits(n * BITS, (RAW_BYTES + 3) / 4, raw[i]);
    }
#else
    {
        uint32_t raw[4][BITS / 2], rows16[4][4], strip = thread % 8, quad = thread / 8;
        uint32_t row = tile_row + strip * 16, first_k = tile_k + quad * 4;
        uint32_t there = row < job.rows ? min(job.rows - row, 16) : 0;
        const uint8_t *from = job.data + first_k * job.line_bytes + (uint64_t)row / 8 * BITS;
        if (job.aligned && there == 16 && first_k + 3 < job.cols) {
#    pragma unroll
            for (int j = 0; j < 4; j++)
                load_whole(2 * BITS, from + j * job.line_bytes, raw[j]);
        } else {
#    pragma unroll
            for (int j = 0; j < 4; j++)
                load_some(2 * BITS, from + j * job.line_bytes,
                          first_k + j < job.cols ? (there * BITS + 7) / 8 : 0, raw[j]);
        }
#    pragma unroll
        for (int j = 0; j < 4; j++)
            spread_rows(BITS, raw[j], there, rows16[j]);
#    pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t a = bsmm_pick_bytes(rows16[0][i], rows16[1][i], 0x5140);
            uint32_t b = bsmm_pick_bytes(rows16[0][i], rows16[1][i], 0x7362);
            uint32_t c = bsmm_pick_bytes(rows16[2][i], rows16[3][i], 0x5140);
            uint32_t d = bsmm_pick_bytes(rows16[2][i], rows16[3][i], 0x7362);
            uint32_t *to = tile + (strip * 16 + i * 4) * 32 + (quad ^ strip * 4);
            to[0] = bsmm_pick_bytes(a, c, 0x5410);
            to[32] = bsmm_pick_bytes(a, c, 0x7632);
            to[64] = bsmm_pick_bytes(b, d, 0x5410);
            to[96] = bsmm_pick_bytes(b, d, 0x7632);
        }
    }
    __syncthreads();
#endif

    uint32_t codes[ITEMS][WORDS], code[ITEMS];
    bool rare = false, leads = k % BSMM_PACK_GROUP == 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#if BY_ROWS
        item_codes(BITS, CODES, raw[i], codes[i]);
#else
        tile_codes(BITS, CODES, tile, row0 - tile_row + i * rows_apart, chunk, codes[i]);
#endif
        code[i] = scale_of(&job, scales, i);
        code[i] = n ? code[i] : one;
        rare |= is_rare(&job, BITS, OUT, SCALE, code[i], codes[i]);
    }

    uint8_t *to = (uint8_t *)job.elements + row0 * job.element_pitch + (uint64_t)k * (OUT / 8);
    uint64_t to_step = rows_apart * job.element_pitch;
    uint64_t group = job.group_scales ? k / BSMM_PACK_GROUP * job.group_pitch + row0 : 0;
    if (!__any_sync(0xffffffffu, rare)) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            uint32_t out[4];
            bool there = row0 + i * rows_apart < job.rows;
            bsmm_lane_group g =
                OUT == 16 ? item_to_bf16(&job, BITS, SCALE, code[i], codes[i], &reach, out)
                          : item_to_fp8(&job, BITS, SCALE, code[i], codes[i], &reach, out);
            if (!E8M0 && leads && there) g = leading_group(&job, code[i], &reach);
            if (there) *(uint4 *)(to + i * to_step) = make_uint4(out[0], out[1], out[2], out[3]);
            if (there && leads && job.group_scales)
                job.group_scales[group + i * rows_apart] = g.scale;
        }
    } else {
        /* Read again one by one: this is rare, and shall not be long. */
#pragma unroll 1
        for (int i = 0; i < ITEMS; i++) {
            uint32_t row = row0 + i * rows_apart, again[WORDS], scale = one, out[4];
            bool there = row < job.rows;
#if BY_ROWS
            uint32_t bits[(RAW_BYTES + 3) / 4];
            load_some(RAW_BYTES, from + i * step, there ? (n * BITS + 7) / 8 : 0, bits);
            cut_bits(n * BITS, (RAW_BYTES + 3) / 4, bits);
            item_codes(BITS, CODES, bits, again);
#else
            tile_codes(BITS, CODES, tile, row - tile_row, chunk, again);
#endif
            if (SCALE && n && there) scale = load_scale(&job, E8M0, row, column);
            bsmm_lane_group g = define_item(&job, BITS, OUT, scale, again, out);
            if (there) extend(&reach.told, &g);
            if (!E8M0 && leads && there) g = leading_group(&job, scale, &reach);
            if (there) *(uint4 *)(to + i * to_step) = make_uint4(out[0], out[1], out[2], out[3]);
            if (there && leads && job.group_scales)
                job.group_scales[group + i * rows_apart] = g.scale;
        }
    }
    if (leads && job.group_scales) pad_group_scales(&job, row0, rows_apart, ITEMS, k);
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
