/* FP8, 1 x 128 scales of both: A e4m3, B e4m3. */
#define GEMM_NAME    gemm_row_e4m3_e4m3
#define GEMM_TYPES   "f32.e4m3.e4m3"
#define GEMM_WIDE    0
#define GEMM_SCALES  GEMM_ROW_ROW
#define GEMM_CAREFUL 1
#define TILE_N       128
#define SUBTILES     1
#define PARTIALS     1
#define CLUSTER_M    1
#define CLUSTER_N    2
#define STAGES       4
#define CHUNKS       2
#define CONSUMERS    3
#define GEMM_EARLY   1
#include "cuda/sm90a/gemm_body.h"
