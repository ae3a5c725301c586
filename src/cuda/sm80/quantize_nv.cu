/* Defines kernels that quantize rows of f32, f16 and bf16 to nvfp4 by the default rule for scales.
 * Memory bandwidth limits their speed: they read and write 2.6 to 4.6 bytes per element. */
#include "cuda/sm80/quantize_nv.h"

#define NAME quantize_nv_f32
#define TYPE uint32_t
#define ELEM BSMM_LANE_F32
#include "cuda/sm80/quantize_nv_body.h"

#define NAME quantize_nv_f16
#define TYPE uint16_t
#define ELEM BSMM_LANE_F16
#include "cuda/sm80/quantize_nv_body.h"

#define NAME quantize_nv_bf16
#define TYPE uint16_t
#define ELEM BSMM_LANE_BF16
#include "cuda/sm80/quantize_nv_body.h"
