/* Looks up embedded kernels. */
#include "gpu/images.h"

#include <string.h>

bsmm_status bsmm_gpu_image_find(const char *name, const bsmm_gpu_image **image) {
    *image = NULL;
    if (!bsmm_gpu_images[0].name)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "built without CUDA kernels (no nvcc)");
    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++)
        if (strcmp(i->name, name) == 0) *image = i;
    return *image ? BSMM_OK : bsmm_fail(BSMM_E_NOT_FOUND, "%s: no such CUDA module", name);
}
