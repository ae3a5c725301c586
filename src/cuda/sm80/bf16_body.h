/* This is the body of a kernel of the generic bf16 GEMM (gpu/bf16_product.h). The file that
 * includes it defines four macros. BF16_NAME is the kernel's name. BF16_A_PARTS and BF16_B_PARTS
 * are the numbers of bf16 parts whose sum is a value of A and of B. BF16_SCALED is 1 if the kernel
 * multiplies the sum of each step of K by fp32 scales. */
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
