/* This is the body of a kernel that quantizes rows of f32, f16 or bf16 values to nvfp4 by the
 * default rule for scales. quantize_nv.cu includes it with NAME, TYPE (an unsigned type of the
 * values' size) and ELEM (the values' type).
 *
 * A thread quantizes 16 adjacent values in each of ITEMS rows. The thread blocks walk through the
 * tensor from its end to its beginning. The previous kernel has read the whole tensor to find its
 * largest magnitude, so the end of the tensor is still in L2. */

/* SPAN is the number of 4-byte words that hold a thread's 16 values of one row. ITEMS is the number
 * of rows of a thread. */
#define SPAN  (16 * (int)sizeof(TYPE) / 4)
#define ITEMS (sizeof(TYPE) == 2 ? 4 : 2)

extern "C" __global__ void __launch_bounds__(QUANTIZE_THREADS, 3)
    NAME(const __grid_constant__ bsmm_quantize_job job) {
    const uint32_t thread = threadIdx.x, lanes = 1u << job.lanes_log2;
    const uint32_t row_stride = QUANTIZE_THREADS >> job.lanes_log2;
    const uint32_t part = gridDim.x - 1 - blockIdx.x, down = part / job.columns;
    const uint32_t k = ((part - down * job.columns) * lanes + (thread & (lanes - 1))) * 16;
    const uint32_t row0 = down * row_stride * ITEMS + (thread >> job.lanes_log2);
    const item_position position = nv_position(&job, row0, k);
    const TYPE *from = (const TYPE *)job.src + row0 * job.src_lines.row_step + k;
    const uint64_t step = row_stride * job.src_lines.row_step;
    __shared__ quantize_level level;
    uint32_t raw[ITEMS][SPAN], codes = 0;
    float factors[ITEMS];

    bool rare = position.n % 16;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#pragma unroll
        for (int j = 0; j < SPAN; j++)
            raw[i][j] = 0;
        if (position.n == 16 && row0 + i * row_stride < job.rows)
            load_item(SPAN, from + i * step, raw[i]);
    }
    if (thread < LEVEL_FACTORS) nv_level(&job, thread, &level);
    __syncthreads();
    rare |= !level.known;
#if __CUDA_ARCH__ >= 890
#    pragma unroll
    for (int i = 0; i < ITEMS; i++)
        codes |= nv_scale(&level, item_amax(ELEM, raw[i]), &factors[i], &rare) << 8 * i;
#else
    rare = true;
#endif
    if (__any_sync(0xffffffffu, rare)) {
        nv_define(&job, ELEM, ITEMS, row0, k, &level);
        return;
    }
    nv_store_scales(&job, ITEMS, &position, k, codes);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        uint32_t out[2];
        nv_item(ELEM, raw[i], factors[i], out);
        if (position.n && row0 + i * row_stride < job.rows)
            *(uint2 *)(position.to + i * position.to_step) = make_uint2(out[0], out[1]);
    }
}

#undef SPAN
#undef ITEMS
#undef NAME
#undef TYPE
#undef ELEM
