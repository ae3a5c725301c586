/* These GEMM kernels are for few rows of A (small M). They multiply e4m3 A by e4m3 weights B with
 * fp32 scales, on the FP8 tensor cores. The bandwidth of reading the weights limits their speed.
 *
 * The weights are the 64-row operand of wgmma, and A's rows are its 8, 16 or 32 columns. wgmma
 * reads both operands as they are stored, so the kernels decode nothing and no other kernel has to
 * convert A first.
 *
 * A thread block multiplies 64 rows of B by all rows of A. A step is 128 elements along K, and the
 * block's four warpgroups take the steps round-robin. Each warpgroup has its own ring of stages in
 * shared memory, which its own threads fill (fp8_small_m_stage.h). In each step a warpgroup waits
 * for its copies of A and B, synchronizes its warps, starts the copies of a later step, multiplies,
 * scales the products and adds them to accumulators in fp32.
 *
 * The thread blocks of a cluster have the same rows of B and split K. As in the other small-M
 * kernels, the epilogue adds the accumulators of all thread blocks and stores results. It
 * recomputes in double the results that fp32 cannot hold (small_m_epilogue.h).
 *
 * Shared memory holds, from a 1024-byte boundary, the rings of the warpgroups, B's scales, A's
 * scales and the mbarriers of the warpgroups, in this order. The epilogue reuses all of this memory
 * for the accumulators. Flags after this memory say which rows of A are nonzero.
 * cuda_sm90a_fp8_small_m.c states the error bound. docs/PERFORMANCE.md has measurements ("Few rows
 * of A on one H200"). The generated .cu file of fp8_small_m.def includes this file before the
 * kernels. */
#ifndef BSMM_CUDA_SM90A_FP8_SMALL_M_KERNELS_H
#define BSMM_CUDA_SM90A_FP8_SMALL_M_KERNELS_H

#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/ptx/address.h"
#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/fp8_small_m_stage.h"
#include "cuda/sm90a/small_m_epilogue.h"

#endif
