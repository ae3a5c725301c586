/* All CUDA kernels share these functions (kernel.h). Some functions find a reason to refuse a
 * product, and other functions test properties of the product's operands. */
#include "cuda/host/kernel.h"
#include "gpu/pack.h"
#include "gpu/params.h"

const char *bsmm_cuda_refuse(const bsmm_product *product, const bsmm_cuda_function *function,
                             char *why, size_t size) {
    const bsmm_cuda_device *device = product->device;
    const bsmm_gpu_image *image;
    if (bsmm_cuda_image_find(device, function->module, &image) != BSMM_OK)
        return bsmm_reason(why, size, "%s", bsmm_error_message());
    return image ? bsmm_gpu_refuse_elements(product, why, size)
                 : bsmm_cuda_no_image(device, function->module, why, size);
}

bool bsmm_cuda_is_fp8(uint32_t elem) {
    return elem == BSMM_ELEM_E4M3 || elem == BSMM_ELEM_E5M2;
}

bool bsmm_cuda_has_row_groups(const bsmm_operand *o) {
    const uint32_t rows = o->m.format.block_rows;
    return bsmm_cuda_has_groups(o) && (rows % BSMM_PACK_GROUP == 0 || rows >= o->m.rows);
}

bool bsmm_cuda_has_groups(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_F32 &&
           (f->block_cols % BSMM_PACK_GROUP == 0 || f->block_cols >= o->m.cols);
}
