/* FP8, 1 x 128 scales of both whose products are normal numbers: A e5m2, B e5m2. */
#define GEMM_NAME   gemm_pow2_e5m2_e5m2
#define GEMM_TYPES  "f32.e5m2.e5m2"
#define GEMM_WIDE   0
#define GEMM_SCALES GEMM_ROW_ROW
#define TILE_N      128
#define SUBTILES    1
#define PARTIALS    1
#define CLUSTER_M   1
#define CLUSTER_N   2
#define STAGES      4
#define CHUNKS      2
#define CONSUMERS   3
#define GEMM_EARLY  1
#include "cuda/sm90a/gemm_body.h"
