/* Quantizes f32, f16 or bf16 matrices to any format. Each thread converts whole scale blocks. */
#include "amdgpu/cdna/recode.h"
#include "gpu/quantize_any.h"

/* The attribute minsize stops the compiler from unrolling loops, because the unrolled loops would
 * need more scalar registers than a wave has. */
__attribute__((minsize)) BSMM_KERNEL(BSMM_RECODE_GROUP)
    quantize_any(bsmm_quantize_job job, uint32_t unit_rows, uint32_t unit_cols, uint32_t step) {
    (void)job;
    bsmm_any_quantize(BSMM_PARAMETERS(bsmm_quantize_job), unit_rows, unit_cols,
                      bsmm_recode_thread(), bsmm_group_y(), step);
}
