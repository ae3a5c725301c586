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
#define WORDS       (CODES / 4)
#define GROUP_LANES (BSMM_PACK_GROUP / CODES)
#define RAW_BYTES   (BITS * CODES / 8)
#define ITEMS       (BY_ROWS ? 4 : 128 * GROUP_LANES / PACK_THREADS)

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
    uint32_t one = job.scale == 2 ? 0x38 : 127;
    uint64_t column = job.scale && n ? bsmm_axis_at(&job.col_map, k) : 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t row = row0 + i * rows_apart;
        bool wanted = job.scale == 3 ? k % BSMM_PACK_GROUP == 0 : n != 0;
        scales[i] = job.scale && wanted && row < job.rows ? load_scale(&job, row, column) : one;
    }

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
            spread(BITS, 16, raw[j], there, rows16[j]);
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

    bool leads = k % BSMM_PACK_GROUP == 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t row = row0 + i * rows_apart, codes[WORDS], out[4];
#if BY_ROWS
        spread(BITS, CODES, raw[i], n, codes);
#else
        uint32_t local = row - tile_row;
        const uint32_t *words = tile + local * 32 + (chunk * WORDS ^ local / 16 % 8 * 4);
#    pragma unroll
        for (int w = 0; w < WORDS; w++)
            codes[w] = words[w];
#endif
        bsmm_lane_group g = OUT == 16 ? item_to_bf16(&job, BITS, scales[i], codes, &reach, out)
                                      : item_to_fp8(&job, BITS, scales[i], codes, &reach, out);
        if (row >= job.rows) continue;
        if (job.scale != 1 && leads) {
            g = leading_group(&job, scales[i]);
            extend(&reach.told, &g);
        }
        uint8_t *to = (uint8_t *)job.elements + row * job.element_pitch + (uint64_t)k * (OUT / 8);
        *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
        if (job.group_scales && leads) store_group_scale(&job, row, k, g.scale);
    }
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
