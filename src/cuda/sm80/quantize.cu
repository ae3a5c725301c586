/* These kernels quantize rows of f32, f16 and bf16 to elements of 4, 6 and 8 bits. Scale blocks
 * have one row, or 128 x 128 elements. Memory bandwidth limits the kernels' speed: they read and
 * write 2.5 to 5 bytes per element. The cubin for sm_90 uses conversion instructions that the PTX
 * for sm_80 lacks. */
#include "cuda/sm80/quantize_item.h"

#define NAME quantize_rows_f32_4
#define TYPE uint32_t
#define ELEM BSMM_LANE_F32
#define BITS 4
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_f32_6
#define TYPE uint32_t
#define ELEM BSMM_LANE_F32
#define BITS 6
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_f32_8
#define TYPE uint32_t
#define ELEM BSMM_LANE_F32
#define BITS 8
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_f16_4
#define TYPE uint16_t
#define ELEM BSMM_LANE_F16
#define BITS 4
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_f16_6
#define TYPE uint16_t
#define ELEM BSMM_LANE_F16
#define BITS 6
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_f16_8
#define TYPE uint16_t
#define ELEM BSMM_LANE_F16
#define BITS 8
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_bf16_4
#define TYPE uint16_t
#define ELEM BSMM_LANE_BF16
#define BITS 4
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_bf16_6
#define TYPE uint16_t
#define ELEM BSMM_LANE_BF16
#define BITS 6
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_rows_bf16_8
#define TYPE uint16_t
#define ELEM BSMM_LANE_BF16
#define BITS 8
#define TILE 0
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_tiles_f32_8
#define TYPE uint32_t
#define ELEM BSMM_LANE_F32
#define BITS 8
#define TILE 1
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_tiles_f16_8
#define TYPE uint16_t
#define ELEM BSMM_LANE_F16
#define BITS 8
#define TILE 1
#include "cuda/sm80/quantize_body.h"

#define NAME quantize_tiles_bf16_8
#define TYPE uint16_t
#define ELEM BSMM_LANE_BF16
#define BITS 8
#define TILE 1
#include "cuda/sm80/quantize_body.h"
