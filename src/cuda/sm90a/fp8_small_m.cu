/* Few rows of e4m3 A times e4m3 weights with fp32 scales, on the FP8 tensor cores, bound by the
 * bytes of the weights.
 *
 * Weights are wgmma's 64 rows, A's rows its 8, 16 or 32 columns: both are multiplied as they lie in
 * memory, nothing is decoded and no kernel prepares A. A block has 64 rows of B; its four
 * warpgroups take steps of 128 along K by turns, each with a ring that its own threads fill
 * (fp8_small_m_stage.h): wait for the step's copies, meet, ask for another step, multiply, add the
 * products in fp32, times the scales. Blocks of a cluster cut K. Sums are added and stored, and
 * made again where fp32 cannot hold them, as the small-M kernels do (small_m_epilogue.h).
 *
 * Shared memory: from a 1024-byte boundary the warpgroups' rings, scales of B, of A, the
 * warpgroups' barriers; in the end the sums over all of it; behind them, which rows of A are not
 * zero. Bound: cuda_sm90a_fp8_small_m.c. Measured: docs/PERFORMANCE.md, "Few rows of A on one
 * H200".
 */
#include "cuda/sm90a/small_m_params.h"

extern __shared__ __align__(128) uint8_t small_m_shared[];

#include "cuda/ptx/address.h"
#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/fp8_small_m_stage.h"
#include "cuda/sm90a/small_m_epilogue.h"

#define FP8_SMALL_M_NAME    fp8_small_m_8
#define FP8_SMALL_M_COLUMNS 8
#include "cuda/sm90a/fp8_small_m_body.h"

#define FP8_SMALL_M_NAME    fp8_small_m_16
#define FP8_SMALL_M_COLUMNS 16
#include "cuda/sm90a/fp8_small_m_body.h"

#define FP8_SMALL_M_NAME    fp8_small_m_32
#define FP8_SMALL_M_COLUMNS 32
#include "cuda/sm90a/fp8_small_m_body.h"
