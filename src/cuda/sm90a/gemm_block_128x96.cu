/* FP8, 1 x 128 scales of A and 128 x 128 of B: tiles of 128 x 96, for as few tiles as there are
 * multiprocessors. */
#define GEMM_NAME   gemm_block_128x96
#define GEMM_TYPES  "f32.e4m3.e4m3"
#define GEMM_WIDE   0
#define GEMM_SCALES GEMM_ROW_BLOCK
#define TILE_N      96
#define SUBTILES    1
#define PARTIALS    2
#define CLUSTER_M   1
#define CLUSTER_N   1
#define STAGES      6
#define CHUNKS      3
#define CONSUMERS   2
#include "cuda/sm90a/gemm_body.h"
