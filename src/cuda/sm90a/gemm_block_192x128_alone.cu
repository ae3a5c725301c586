/* FP8, 1 x 128 scales of A and 128 x 128 of B: tiles of 192 x 128, blocks without a cluster, for
 * short K. */
#define GEMM_NAME   gemm_block_192x128_alone
#define GEMM_TYPES  "f32.e4m3.e4m3"
#define GEMM_WIDE   0
#define GEMM_SCALES GEMM_ROW_BLOCK
#define TILE_N      128
#define SUBTILES    1
#define PARTIALS    1
#define CLUSTER_M   1
#define CLUSTER_N   1
#define STAGES      4
#define CHUNKS      2
#define CONSUMERS   3
#define GEMM_EARLY  1
#define GEMM_SHORT  1
#include "cuda/sm90a/gemm_body.h"
