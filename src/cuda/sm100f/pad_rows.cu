/* Copies the rows of an operand to rows that TMA can read. TMA requires that rows lie a multiple of
 * 16 bytes apart. The bits after a row's last element become 0. Each thread copies 16 bytes. */
#include "cuda/ptx/grid.h"
#include "cuda/sm100f/scaled_params.h"

static __device__ __forceinline__ uint8_t byte_of(const bsmm_scaled_pad *p, uint32_t row,
                                                  uint64_t at) {
    const uint64_t whole = p->row_bits / 8, rest = p->row_bits % 8;
    if (at > whole || (at == whole && rest == 0)) return 0;
    const uint8_t byte = p->from[row * p->from_pitch + at];
    return at < whole ? byte : (uint8_t)(byte & ((1u << rest) - 1));
}

extern "C" __global__ void __launch_bounds__(256)
    pad_rows(const __grid_constant__ bsmm_scaled_pad pad) {
    const uint64_t at = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * 16;
    if (at >= pad.to_pitch) return;
    for (uint32_t row = blockIdx.y; row < pad.rows; row += gridDim.y) {
        uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
        for (uint32_t i = 0; i < 16; i++)
            words[i / 4] |= (uint32_t)byte_of(&pad, row, at + i) << 8 * (i % 4);
        *(uint4 *)(pad.to + row * pad.to_pitch + at) =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
}
