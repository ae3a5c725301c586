/* bf16 without scales: sums stay in the tensor cores' accumulators over all of K. */
#define GEMM_NAME   gemm_bf16
#define GEMM_TYPES  "f32.bf16.bf16"
#define GEMM_WIDE   1
#define GEMM_SCALES GEMM_UNSCALED
#define TILE_N      256
#define SUBTILES    1
#define PARTIALS    0
#define CLUSTER_M   2
#define CLUSTER_N   1
#define STAGES      4
#define CHUNKS      2
#define GEMM_TURNS  1
#define CONSUMERS   2
#include "cuda/sm90a/gemm_body.h"
