/* Few rows of e4m3 A times e4m3 weights with fp32 scales, on the FP8 tensor cores, bound by the
 * bytes of the weights.
 *
 * Weights are wgmma's 64 rows, A's rows its 8, 16 or 32 columns: both are multiplied as they lie in
 * memory, nothing is decoded and no kernel prepares A. A block has 64 rows of B; its four
 * warpgroups take steps of 128 along K by turns, each with a ring that its own threads fill
 * (fp8_decode_stage.h): wait for the step's copies, meet, ask for another step, multiply, add the
 * products in fp32, times the scales. Blocks of a cluster cut K. Sums are added and stored, and
 * made again where fp32 cannot hold them, as the decode kernels do (decode_finish.h).
 *
 * Shared memory: from a 1024-byte boundary the warpgroups' rings, scales of B, of A, the
 * warpgroups' barriers; in the end the sums over all of it; behind them, which rows of A are not
 * zero. Bound: cuda_sm90a_fp8_decode.c. Measured: docs/PERFORMANCE.md, "Few rows of A on one H200".
 */
#include "cuda/decode_params.h"

extern __shared__ __align__(128) uint8_t decode_shared[];

#include "cuda/ptx/address.h"
#include "cuda/ptx/wgmma.h"
#include "cuda/sm90a/decode_finish.h"
#include "cuda/sm90a/fp8_decode_stage.h"

#define FP8_DECODE_NAME    fp8_decode_8
#define FP8_DECODE_COLUMNS 8
#include "cuda/sm90a/fp8_decode_body.h"

#define FP8_DECODE_NAME    fp8_decode_16
#define FP8_DECODE_COLUMNS 16
#include "cuda/sm90a/fp8_decode_body.h"

#define FP8_DECODE_NAME    fp8_decode_32
#define FP8_DECODE_COLUMNS 32
#include "cuda/sm90a/fp8_decode_body.h"
