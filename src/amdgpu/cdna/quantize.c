/* Quantizes f32, f16 and bf16 to any format: each thread some whole blocks. */
#include "amdgpu/cdna/recode.h"
#include "gpu/quantize_any.h"

__attribute__((minsize)) /* loops that are unrolled want more scalar registers than there are */
BSMM_KERNEL(BSMM_RECODE_GROUP)
    quantize_any(bsmm_quantize_job job, uint32_t unit_rows, uint32_t unit_cols, uint32_t step) {
    (void)job;
    bsmm_any_quantize(BSMM_PARAMETERS(bsmm_quantize_job), unit_rows, unit_cols,
                      bsmm_recode_thread(), bsmm_group_y(), step);
}
