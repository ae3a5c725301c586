/* Defines the kernels of the generic GEMM, which multiplies operands of any format on the bf16
 * tensor cores of any GPU since sm_80. The kernels decode A and B to bf16 on the way to shared
 * memory. The library uses them if no faster kernel supports the operands. */
#include "cuda/sm80/bf16_tiles.h"

#define BF16_NAME    bf16_1x1
#define BF16_A_PARTS 1
#define BF16_B_PARTS 1
#define BF16_SCALED  0
#include "cuda/sm80/bf16_body.h"

#define BF16_NAME    bf16_1x1_scaled
#define BF16_A_PARTS 1
#define BF16_B_PARTS 1
#define BF16_SCALED  1
#include "cuda/sm80/bf16_body.h"

#define BF16_NAME    bf16_1x3
#define BF16_A_PARTS 1
#define BF16_B_PARTS 3
#define BF16_SCALED  0
#include "cuda/sm80/bf16_body.h"

#define BF16_NAME    bf16_3x1
#define BF16_A_PARTS 3
#define BF16_B_PARTS 1
#define BF16_SCALED  0
#include "cuda/sm80/bf16_body.h"

#define BF16_NAME    bf16_3x3
#define BF16_A_PARTS 3
#define BF16_B_PARTS 3
#define BF16_SCALED  0
#include "cuda/sm80/bf16_body.h"
