/* The packing kernel for f32, f16 or bf16 rows (BY_ROWS 1) or columns (0). Included by pack_wide.cu
 * with NAME, TYPE, TO_F32 and BY_ROWS.
 *
 * By rows a thread has 8 values along K in each of ITEMS rows. By columns a block reads 32 rows x
 * 128 of K along the rows and hands the values over in shared memory, as fp32; a row of 129 words
 * puts neighbours along either axis into different banks. */

#define ITEMS (BY_ROWS ? 4 : 2)

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_pack_job job) {
    const TYPE *data = (const TYPE *)job.data;
    uint64_t line = job.line_bytes / sizeof(TYPE);
    uint32_t thread = threadIdx.x;
    item_reach reach = reach_nothing();
    if (gate_closed(job.gate, job.gate_mask)) return;
#if BY_ROWS
    uint32_t lanes = 1u << job.lanes_log2, rows_apart = PACK_THREADS >> job.lanes_log2;
    uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * 8;
    uint32_t row0 = blockIdx.x * rows_apart * ITEMS + (thread >> job.lanes_log2);
#else
    __shared__ float tile[32 * 129];
    uint32_t tile_row = blockIdx.x * 32, rows_apart = 16;
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
    if (job.aligned && n == 8 && row0 + (ITEMS - 1) * rows_apart < job.rows) {
        TYPE raw[ITEMS][8];
#    pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const uint4 *from = (const uint4 *)(data + (row0 + i * rows_apart) * line + k);
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
                uint32_t row = row0 + i * rows_apart;
                values[i][j] = j < n && row < job.rows ? TO_F32(data[row * line + k + j]) : 0;
            }
    }
#else
#    pragma unroll
    for (int i = 0; i < ITEMS; i++)
        for (int j = 0; j < 8; j++)
            values[i][j] = tile[(row0 - tile_row + i * rows_apart) * 129 + thread % 16 * 8 + j];
#endif
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t row = row0 + i * rows_apart, out[4];
        bsmm_lane_group g = item_wide(&job, values[i], row < job.rows, &reach, out);
        if (row >= job.rows) continue;
        uint8_t *to = (uint8_t *)job.elements + row * job.element_pitch + (uint64_t)k * 2;
        *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
        if (job.group_scales && k % BSMM_PACK_GROUP == 0) store_group_scale(&job, row, k, g.scale);
    }
    bsmm_lane_group all = reach_told(&job, &reach);
    tell_header(job.header, &all);
}

#undef ITEMS
#undef NAME
#undef TYPE
#undef TO_F32
#undef BY_ROWS
