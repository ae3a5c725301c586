/* The same as gemm_bf16: tiles of 64 x 64, for few rows. */
#define GEMM_NAME   gemm_bf16_64x64
#define GEMM_TYPES  "f32.bf16.bf16"
#define GEMM_WIDE   1
#define GEMM_SCALES GEMM_UNSCALED
#define TILE_N      64
#define SUBTILES    1
#define PARTIALS    0
#define CLUSTER_M   1
#define CLUSTER_N   1
#define STAGES      12
#define CHUNKS      1
#define CONSUMERS   1
#include "cuda/sm90a/gemm_body.h"
