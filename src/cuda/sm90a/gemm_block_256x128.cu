/* FP8, 1 x 128 scales of A and 128 x 128 of B: tiles of 256 x 128, for numbers of rows and
 * columns that leave less of these unused than of others. */
#define GEMM_NAME   gemm_block_256x128
#define GEMM_TYPES  "f32.e4m3.e4m3"
#define GEMM_WIDE   0
#define GEMM_SCALES GEMM_ROW_BLOCK
#define TILE_N      128
#define SUBTILES    2
#define PARTIALS    1
#define CLUSTER_M   1
#define CLUSTER_N   2
#define STAGES      4
#define CHUNKS      1
#define CONSUMERS   2
#include "cuda/sm90a/gemm_body.h"
