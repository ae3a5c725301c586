/* Splits values into bf16 parts whose sum is the value (gpu/pack.h explains packing). */
#ifndef BSMM_CUDA_SM80_PACK_PARTS_H
#define BSMM_CUDA_SM80_PACK_PARTS_H

#include "cuda/ptx/convert.h"
#include "gpu/pack.h"

/* Takes the next bf16 part from a value. The part is the value truncated to bf16; the function
 * returns it in the upper 16 bits, and the lower 16 bits are arbitrary. It subtracts the part from
 * *value, which is exact, so that the next call returns the next part. From Inf and NaN nothing is
 * subtracted, so that all of their parts are Inf or NaN. */
static __device__ __forceinline__ uint32_t take_part(float *value) {
    const uint32_t bits = __float_as_uint(*value);
    const float part = __uint_as_float(bits & 0xffff0000u);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff0000u;
    if ((bits & 0x7fffffffu) < 0x7f800000u) *value -= part;
    return bits;
}

/* Splits 8 consecutive f16 values of a row (16 bytes) into two bf16 parts each. A packed row has
 * the first parts of BSMM_PACK_PART_COLS values, then the second parts of these values, and so on
 * for the next values (BSMM_PACK_TWO_BF16 in gpu/pack.h). `to` is the beginning of the packed row,
 * and `k` is the index of the first value along K. */
static __device__ __forceinline__ void split_eight(const uint16_t *halves, uint8_t *to,
                                                   uint32_t k) {
    const uint32_t first = k / BSMM_PACK_PART_COLS * 2 * BSMM_PACK_PART_COLS;
    float values[8];
    uint32_t bits[8];
    for (int i = 0; i < 8; i++)
        values[i] = bsmm_ptx_cvt_f32_f16(halves[i]);
#pragma unroll
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t at = first + part * BSMM_PACK_PART_COLS + k % BSMM_PACK_PART_COLS;
        for (int i = 0; i < 8; i++)
            bits[i] = take_part(&values[i]);
        *(uint4 *)(to + (uint64_t)at * 2) = make_uint4(
            __byte_perm(bits[0], bits[1], 0x7632), __byte_perm(bits[2], bits[3], 0x7632),
            __byte_perm(bits[4], bits[5], 0x7632), __byte_perm(bits[6], bits[7], 0x7632));
    }
}

/* Splits each element of a row-major f16 operand into two bf16 parts. All threads of all thread
 * blocks call this function. Rows begin at multiples of 16 bytes. The function writes no header. A
 * header would record values that bf16 cannot hold, but every part of an f16 number is a normal
 * bf16 number, or Inf or NaN like the f16 number. */
static __device__ __forceinline__ void split_halves(const bsmm_pack_job *job) {
    const uint32_t chunks = (job->cols + BSMM_PACK_GROUP - 1) / BSMM_PACK_GROUP * 16;
    const uint64_t items = (uint64_t)job->rows * chunks, step = (uint64_t)gridDim.x * blockDim.x;
#pragma unroll 1
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step) {
        const uint64_t row = i / chunks;
        const uint32_t k = (uint32_t)(i - row * chunks) * 8;
        const uint16_t *from = (const uint16_t *)(job->data + row * job->line_bytes) + k;
        uint16_t halves[8];
#pragma unroll
        for (uint32_t j = 0; j < 8; j++)
            halves[j] = k + j < job->cols ? from[j] : 0;
        split_eight(halves, (uint8_t *)job->elements + row * job->element_pitch, k);
    }
}

#endif
