/* The body of a bf16 GEMM kernel. The includer defines BF16_NAME, the kernel's name; BF16_A_PARTS
 * and BF16_B_PARTS, the number of bf16 parts into which each value of A and B is split; and
 * BF16_SCALED, which is 1 if fp32 scales are applied to the accumulators of each step. */
extern "C" __global__ void __launch_bounds__(BSMM_BF16_THREADS, 1)
    BF16_NAME(const __grid_constant__ bsmm_bf16_params p) {
    if (!bsmm_cuda_gate_is_open(&p.gate)) return;
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ uint32_t nonzero[2 * BSMM_BF16_TILE];
    __shared__ __align__(16) float factors[2][2 * BSMM_BF16_TILE];
    bf16_tiles(BF16_A_PARTS, BF16_B_PARTS, BF16_SCALED, &p.job, shared, nonzero, factors);
}

#undef BF16_NAME
#undef BF16_A_PARTS
#undef BF16_B_PARTS
#undef BF16_SCALED
