/* Packs a row-major operand of elements of at most 8 bits with e8m0 scales to bf16, if bf16 holds
 * every product of an element and its scale. The packed operand then needs no fp32 scales for
 * groups of 128 elements (gpu/pack.h). The f16 GEMM kernels do this if f16 does not hold these
 * products; the bf16 kernel that runs next reads the result. That is rare, so the code is short
 * rather than fast. */
#ifndef BSMM_CUDA_SM80_PACK_AGAIN_H
#define BSMM_CUDA_SM80_PACK_AGAIN_H

#include "gpu/pack_lane.h"

enum { AGAIN_CODES = 8 };

/* Loads 8 elements of 4, 6 or 8 bits, of which the first n exist. The remaining elements become
 * 0. */
static __device__ __forceinline__ uint64_t again_load(const uint8_t *from, uint32_t bits,
                                                      uint32_t n) {
    uint64_t codes = 0;
#pragma unroll 1
    for (uint32_t i = (n * bits + 7) / 8; i-- > 0;)
        codes = codes << 8 | from[i];
    return n < AGAIN_CODES ? codes & ((1ull << n * bits) - 1) : codes;
}

/* All threads of all thread blocks call this function. A thread packs 8 elements along K at a
 * time, and writes zeros past the end of K. */
static __device__ __forceinline__ void pack_again(const bsmm_pack_plain *p) {
    const bsmm_pack_job *job = &p->job;
    const uint32_t chunks = (job->cols + AGAIN_CODES - 1) / AGAIN_CODES;
    const uint64_t items = (uint64_t)job->rows * chunks, step = (uint64_t)gridDim.x * blockDim.x;
#pragma unroll 1
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step) {
        const uint32_t row = (uint32_t)(i / chunks), k = (uint32_t)(i - (uint64_t)row * chunks) * 8;
        const uint8_t *from = job->data + row * job->line_bytes + (uint64_t)(k / 8) * p->bits;
        const uint64_t at = bsmm_axis_at(&job->row_map, row) + bsmm_axis_at(&job->col_map, k);
        const bsmm_lane_scale scale = bsmm_lane_scale_of(1, job->scales[at]);
        const float factor =
            scale.is_nan ? __uint_as_float(0x7fc00000u) : bsmm_pow2(scale.exponent);
        uint64_t codes = again_load(from, p->bits, min(job->cols - k, AGAIN_CODES));
        uint4 w = make_uint4(0, 0, 0, 0);
#pragma unroll 1
        for (uint32_t j = 0; j < AGAIN_CODES; j++, codes >>= p->bits) {
            const uint32_t code = (uint32_t)codes & ((1u << p->bits) - 1);
            const float value = bsmm_narrow_value(&job->codec, code) * factor;
            w.x = w.x >> 16 | w.y << 16;
            w.y = w.y >> 16 | w.z << 16;
            w.z = w.z >> 16 | w.w << 16;
            w.w = w.w >> 16 | (bsmm_lane_bf16(value) & 0xffff0000u);
        }
        *(uint4 *)((uint8_t *)job->elements + row * job->element_pitch + (uint64_t)k * 2) = w;
    }
}

#endif
