/* The same as gemm_block_128x128: tiles of 64 x 128, for few rows. */
#define GEMM_NAME   gemm_block_64x128
#define GEMM_TYPES  "f32.e4m3.e4m3"
#define GEMM_WIDE   0
#define GEMM_SCALES GEMM_ROW_BLOCK
#define TILE_N      128
#define SUBTILES    1
#define PARTIALS    2
#define CLUSTER_M   1
#define CLUSTER_N   1
#define STAGES      8
#define CHUNKS      1
#define CONSUMERS   1
#include "cuda/sm90a/gemm_body.h"
