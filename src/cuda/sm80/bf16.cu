/* Defines the kernels of the generic GEMM, which multiplies operands of any format on the bf16
 * tensor cores of any GPU since sm_80. The kernels decode A and B to bf16 on the way to shared
 * memory. The library uses them if no faster kernel supports the operands. */
#include "cuda/sm80/bf16_tiles.h"

#define KERNEL(id, name, a_parts, b_parts, scaled)                                                 \
    extern "C" __global__ void __launch_bounds__(BSMM_BF16_THREADS, 1)                             \
        name(const __grid_constant__ bsmm_bf16_params p) {                                         \
        if (!bsmm_cuda_gate_is_open(&p.gate)) return;                                              \
        extern __shared__ __align__(128) uint8_t shared[];                                         \
        __shared__ uint32_t nonzero[2 * BSMM_BF16_TILE];                                           \
        __shared__ __align__(16) float factors[2][2 * BSMM_BF16_TILE];                             \
        bf16_tiles(a_parts, b_parts, scaled, &p.job, shared, nonzero, factors);                    \
    }
#include "gpu/bf16_kernels.def"
