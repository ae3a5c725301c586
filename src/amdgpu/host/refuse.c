/* Tests whether AMD kernels can compute a product at all, before each kernel makes its own
 * tests. */
#include "amdgpu/host/kernel.h"
#include "gpu/params.h"

#include <stdio.h>

const char *bsmm_hip_refuse(const bsmm_product *product, const bsmm_hip_function *function,
                            char *why, size_t size) {
    const bsmm_hip_device *device = product->device;
    const bsmm_gpu_image *image;
    if (bsmm_hip_image_find(device, function->module, &image) != BSMM_OK) {
        snprintf(why, size, "%s", bsmm_error_message());
        return why;
    }
    return image ? bsmm_gpu_refuse_elements(product, why, size)
                 : bsmm_hip_no_image(device, function->module, why, size);
}
