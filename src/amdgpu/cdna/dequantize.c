/* Dequantizes a matrix of any format to f32, f16 or bf16. Each thread converts one element after
 * another. */
#include "amdgpu/cdna/recode.h"
#include "gpu/dequantize_any.h"

BSMM_KERNEL(BSMM_RECODE_GROUP) dequantize_any(bsmm_dequantize_job job, uint32_t step) {
    bsmm_any_dequantize(&job, (uint32_t)bsmm_recode_thread(), bsmm_group_y(), step);
}
