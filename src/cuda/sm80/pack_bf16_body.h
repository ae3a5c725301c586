/* This is the body of a kernel that packs rows of elements of BITS bits to bf16, or to f16 if HALF
 * is 1. SCALE is the type of scale, a value of the enum bsmm_scale: 1 for e8m0 in blocks of 32 or
 * more elements, 2 for e4m3, 3 for fp32 or no scales. pack_narrow.cu and pack_f16.cu include this
 * file with NAME, BITS, SCALE and HALF. A thread packs 8 elements along K, which become 16 bytes,
 * in each of BF16_ROWS rows. A thread issues the loads of all elements before it computes anything,
 * so that many loads are in flight.
 *
 * The kernels with SCALE 3 have a second parameter, `cleared`. If `cleared` is not NULL, the kernel
 * sets the word at this address to 0 and does not update the header of the packed operand. */

#define WORDS (BITS == 4 ? 1 : 2)
#if SCALE == 3
#    define CLEARED , uint32_t *cleared
#else
#    define CLEARED
#endif

extern "C" __global__ void __launch_bounds__(PACK_THREADS, 4)
    NAME(const __grid_constant__ bsmm_pack_job job CLEARED) {
    const uint32_t thread = threadIdx.x, lanes = 1u << job.lanes_log2;
    const uint32_t row_stride = PACK_THREADS >> job.lanes_log2;
    const uint32_t k = (blockIdx.y * lanes + (thread & (lanes - 1))) * BF16_CODES;
    const uint32_t row0 = blockIdx.x * row_stride * BF16_ROWS + (thread >> job.lanes_log2);
    const pack_position position = {row0, row_stride, k,
                                    k < job.cols ? min(job.cols - k, BF16_CODES) : 0};
    const uint32_t my_row = row0 + thread % BF16_ROWS * row_stride;
    item_reach reach = reach_nothing();
    uint32_t raw[BF16_ROWS][WORDS], found = 0;
    /* Allow the stream's next kernel to start. This kernel itself waits for the previous kernel
     * only at its end, before it updates the header of the packed operand. */
    bsmm_cuda_admit_next_kernel();

    load_rows(&job, BITS, BF16_CODES, BF16_ROWS, &position, raw[0]);
    const uint32_t codes = SCALE == 3 ? group_scale_code(&job, &position, my_row)
                                      : bf16_scales(&job, SCALE, &position);

    bool rare = false;
    item_reach fast = reach_nothing();
    if (SCALE == 1) rare = bf16_reaches(&job, codes, bf16_lanes(BITS, raw[0]), &fast);
    if (SCALE == 2) reach.told = bsmm_lane_by_e4m3(&job.codec);
    if (SCALE == 3) lead_group(&job, &position, my_row, codes, &reach);
    if (SCALE != 2) {
#pragma unroll
        for (int i = 0; i < BF16_ROWS && BITS == 8; i++)
            found |= bf16_special(&job, raw[i]);
        rare = __any_sync(0xffffffffu, rare | ((found & 0x80808080u) != 0));
    }
    if (SCALE == 1 && !rare) reach = fast;
    if (rare) {
        bf16_define(&job, BITS, HALF, SCALE, &position, &reach);
    } else {
        const uint32_t byte = bf16_byte(SCALE, &position);
        const uint64_t to_step = row_stride * job.element_pitch;
        uint8_t *to = (uint8_t *)job.elements + row0 * job.element_pitch + (uint64_t)k * 2;
        if (SCALE != 3 && thread % (BSMM_PACK_GROUP / BF16_CODES) < BF16_ROWS)
            bf16_store_scale(&job, &position, my_row, 1);
#pragma unroll
        for (int i = 0; i < BF16_ROWS; i++) {
            uint32_t out[4], factor = 0;
            if (SCALE != 3) {
                const uint32_t code = __byte_perm(from_row(codes, i), 0, byte);
                factor = HALF ? usual_f16(&job, SCALE, code) : usual_bf16(SCALE, code);
            }
            bf16_emit(&job, BITS, HALF, SCALE, raw[i], factor, out);
            if (row0 + i * row_stride < job.rows)
                *(uint4 *)to = make_uint4(out[0], out[1], out[2], out[3]);
            to += to_step;
        }
    }
    if (k % BSMM_PACK_GROUP == 0 && job.group_scales)
        pad_group_scales(&job, row0, row_stride, BF16_ROWS, k);
#if SCALE == 3
    if (cleared) {
        if (blockIdx.x + blockIdx.y + thread == 0) {
            bsmm_cuda_await_kernel_before();
            *cleared = 0;
        }
        return;
    }
#endif
    bsmm_lane_group all = reach_told(&job, &reach);
    tell_header(job.header, &all);
}

#undef WORDS
#undef CLEARED
#undef NAME
#undef BITS
#undef SCALE
#undef HALF
