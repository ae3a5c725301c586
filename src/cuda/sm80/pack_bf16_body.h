/* This is the body of a kernel that packs rows of elements of BITS bits to bf16. SCALE is the type
 * of scale, a value of the enum bsmm_scale: e8m0 in blocks of 32 or more elements, or e4m3.
 * pack_narrow.cu includes this file with NAME, BITS and SCALE. A thread packs 8 elements along K,
 * which become 16 bytes, in each of BF16_ROWS rows. It issues the loads of all elements before it
 * computes anything, so that many loads are in flight. */

#define WORDS (BITS == 4 ? 1 : 2)

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_pack_job job) {
    const uint32_t thread = threadIdx.x, lanes = 1u << job.lanes_log2;
    const uint32_t rows_apart = PACK_THREADS >> job.lanes_log2;
    const uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * BF16_CODES;
    const uint32_t row0 = blockIdx.x * rows_apart * BF16_ROWS + (thread >> job.lanes_log2);
    const pack_place place = {row0, rows_apart, k,
                              k < job.cols ? min(job.cols - k, BF16_CODES) : 0};
    const uint32_t my_row = row0 + thread % BF16_ROWS * rows_apart;
    item_reach reach = reach_nothing();
    uint32_t raw[BF16_ROWS][WORDS], found = 0;
    /* Allow the stream's next kernel to start. This kernel itself waits for the previous kernel
     * only at its end, before it updates the header of the packed operand. */
    bsmm_cuda_admit_next_kernel();

    load_rows(&job, BITS, BF16_CODES, BF16_ROWS, &place, raw[0]);
    const uint32_t codes = bf16_scales(&job, SCALE, &place);

    bool rare = false;
    if (SCALE == 1) {
        item_reach fast = reach_nothing();
        rare = bf16_reaches(&job, codes, bf16_lanes(BITS, raw[0]), &fast);
#pragma unroll
        for (int i = 0; i < BF16_ROWS && BITS == 8; i++)
            found |= bf16_special(&job, raw[i]);
        rare = __any_sync(0xffffffffu, rare | ((found & 0x80808080u) != 0));
        if (!rare) reach = fast;
    } else {
        reach.told = bsmm_lane_by_e4m3(&job.codec);
    }
    if (rare) {
        bf16_define(&job, BITS, SCALE, &place, &reach);
    } else {
        const uint32_t byte = bf16_byte(SCALE, &place);
        const uint64_t to_step = rows_apart * job.element_pitch;
        uint8_t *to = (uint8_t *)job.elements + row0 * job.element_pitch + (uint64_t)k * 2;
        if (thread % (BSMM_PACK_GROUP / BF16_CODES) < BF16_ROWS)
            bf16_store_scale(&job, &place, my_row, 1);
#pragma unroll
        for (int i = 0; i < BF16_ROWS; i++) {
            uint32_t out[4], code = __byte_perm(from_row(codes, i), 0, byte);
            bf16_emit(&job, BITS, raw[i], usual_factor(SCALE, code), out);
            if (row0 + i * rows_apart < job.rows)
                *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
            to += to_step;
        }
    }
    if (k % BSMM_PACK_GROUP == 0 && job.group_scales)
        pad_group_scales(&job, row0, rows_apart, BF16_ROWS, k);
    bsmm_lane_group all = reach_told(&job, &reach);
    tell_header(job.header, &all);
}

#undef WORDS
#undef NAME
#undef BITS
#undef SCALE
