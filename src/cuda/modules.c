/* Looks up embedded kernels. */
#include "cuda/modules.h"

#include <string.h>

bsmm_status bsmm_cuda_image_find(const char *name, const bsmm_cuda_image **image) {
    *image = NULL;
    if (!bsmm_cuda_images[0].name)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "built without CUDA kernels (no nvcc)");
    for (const bsmm_cuda_image *i = bsmm_cuda_images; i->name; i++)
        if (strcmp(i->name, name) == 0) *image = i;
    return *image ? BSMM_OK : bsmm_fail(BSMM_E_NOT_FOUND, "%s: no such CUDA module", name);
}
