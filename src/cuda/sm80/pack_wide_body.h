/* This is the body of a kernel that packs f32, f16 or bf16 from row-major (BY_ROWS 1) or
 * column-major operands (BY_ROWS 0). pack_wide.cu includes it with NAME, TYPE, TO_F32, BY_ROWS,
 * HALVES and PARTS. HALVES is 1 for 16-bit types. PARTS is the number of bf16 numbers whose sum is
 * an element.
 *
 * From a row-major operand, a thread packs 8 elements along K in each of ITEMS rows. From a
 * column-major operand, a thread block loads a tile along columns and transposes it in shared
 * memory. For 16-bit types the tile has 64 rows x 128 elements of K (16 KiB). A thread loads 8 rows
 * of two adjacent columns and writes pairs of elements of a row to shared memory. It does so four
 * times. Pair p of row r lies at word p ^ 4 * (r / 8), which avoids bank conflicts. For 32-bit
 * types the tile has 32 rows x 128 elements of K, and a row has 129 words, which also avoids bank
 * conflicts. */

#define ITEMS (BY_ROWS || HALVES ? 4 : 2)

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_pack_job job) {
    const TYPE *data = (const TYPE *)job.data;
    uint64_t line = job.line_bytes / sizeof(TYPE);
    uint32_t thread = threadIdx.x;
    item_reach reach = reach_nothing();
    /* This call allows the stream's next kernel to start. This kernel itself waits for the previous
     * kernel only at its end, before it updates the header of the packed operand. */
    bsmm_cuda_admit_next_kernel();
#if BY_ROWS
    uint32_t lanes = 1u << job.lanes_log2, row_stride = PACK_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * 8;
    uint32_t row0 = blockIdx.x * row_stride * ITEMS + (thread >> job.lanes_log2);
#elif HALVES
    __shared__ uint32_t tile[64 * 64];
    uint32_t tile_row = blockIdx.x * 64, tile_k = blockIdx.y * 128, row_stride = 16;
    uint32_t k = tile_k + thread % 16 * 8, row0 = tile_row + thread / 16;
    {
        uint32_t strip = thread % 8, row = tile_row + strip * 8, raw[4][4];
        uint32_t there = row < job.rows ? min(job.rows - row, 8) : 0;
#    pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t at = tile_k + thread / 8 * 2 + i / 2 * 64 + i % 2;
            const uint8_t *from = (const uint8_t *)(data + at * line + row);
            if (job.aligned && there == 8 && at < job.cols)
                load_whole(16, from, raw[i]);
            else
                load_halves(from, at < job.cols ? there : 0, raw[i]);
        }
#    pragma unroll
        for (int i = 0; i < 8; i++) {
            uint32_t low = raw[i / 4 * 2][i % 4], high = raw[i / 4 * 2 + 1][i % 4];
            uint32_t pair = thread / 8 + i / 4 * 32;
            uint32_t *to = tile + (strip * 8 + i % 4 * 2) * 64 + (pair ^ strip * 4);
            to[0] = __byte_perm(low, high, 0x5410);
            to[64] = __byte_perm(low, high, 0x7632);
        }
    }
    __syncthreads();
#else
    __shared__ float tile[32 * 129];
    uint32_t tile_row = blockIdx.x * 32, row_stride = 16;
    uint32_t k = blockIdx.y * 128 + thread % 16 * 8, row0 = tile_row + thread / 16;
#    pragma unroll
    for (int i = 0; i < 16; i++) {
        uint32_t row = tile_row + thread % 32, at = thread / 32 + i * 8;
        bool there = row < job.rows && blockIdx.y * 128 + at < job.cols;
        tile[thread % 32 * 129 + at] =
            there ? TO_F32(data[(blockIdx.y * 128 + at) * line + row]) : 0;
    }
    __syncthreads();
#endif
    uint32_t n = k < job.cols ? min(job.cols - k, 8) : 0;
    float values[ITEMS][8];
#if BY_ROWS
    if (job.aligned && n == 8 && row0 + (ITEMS - 1) * row_stride < job.rows) {
        TYPE raw[ITEMS][8];
#    pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const uint4 *from = (const uint4 *)(data + (row0 + i * row_stride) * line + k);
            *(uint4 *)raw[i] = __ldg(from);
            if (sizeof(TYPE) == 4) *(uint4 *)(raw[i] + 4) = __ldg(from + 1);
        }
#    pragma unroll
        for (int i = 0; i < ITEMS; i++)
            for (int j = 0; j < 8; j++)
                values[i][j] = TO_F32(raw[i][j]);
    } else {
#    pragma unroll
        for (int i = 0; i < ITEMS; i++)
            for (uint32_t j = 0; j < 8; j++) {
                uint32_t row = row0 + i * row_stride;
                values[i][j] = j < n && row < job.rows ? TO_F32(data[row * line + k + j]) : 0;
            }
    }
#elif HALVES
#    pragma unroll
    for (int i = 0; i < ITEMS; i++)
        for (int j = 0; j < 8; j++) {
            uint32_t local = row0 - tile_row + i * row_stride;
            uint32_t word = tile[local * 64 + ((thread % 16 ^ local / 8) * 4) + j / 2];
            values[i][j] = TO_F32((TYPE)(word >> 16 * (j % 2)));
        }
#else
#    pragma unroll
    for (int i = 0; i < ITEMS; i++)
        for (int j = 0; j < 8; j++)
            values[i][j] = tile[(row0 - tile_row + i * row_stride) * 129 + thread % 16 * 8 + j];
#endif
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t row = row0 + i * row_stride, out[4];
#if PARTS > 1
        const uint32_t first = k / BSMM_PACK_PART_COLS * PARTS * BSMM_PACK_PART_COLS;
        uint8_t *line_to = (uint8_t *)job.elements + row * job.element_pitch;
        bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
#    pragma unroll
        for (uint32_t part = 0; part < PARTS; part++) {
            g = item_part(values[i], row < job.rows, &reach, out);
            const uint64_t at = first + part * BSMM_PACK_PART_COLS + k % BSMM_PACK_PART_COLS;
            if (row < job.rows)
                *(uint4 *)(line_to + at * 2) = make_uint4(out[0], out[1], out[2], out[3]);
        }
        if (row >= job.rows) continue;
#else
        bsmm_lane_group g = item_wide(&job, values[i], row < job.rows, &reach, out);
        if (row >= job.rows) continue;
        uint8_t *to = (uint8_t *)job.elements + row * job.element_pitch + (uint64_t)k * 2;
        *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
#endif
        if (job.group_scales && k % BSMM_PACK_GROUP == 0)
            job.group_scales[k / BSMM_PACK_GROUP * job.group_pitch + row] = g.scale;
    }
    if (job.group_scales && k % BSMM_PACK_GROUP == 0)
        pad_group_scales(&job, row0, row_stride, ITEMS, k);
    bsmm_lane_group all = reach_told(&job, &reach);
    tell_header(job.header, &all);
}

#undef ITEMS
#undef NAME
#undef TYPE
#undef TO_F32
#undef BY_ROWS
#undef HALVES
#undef PARTS
