/* Finds the code object of a kernel, i.e. the machine code, that fits a device's processor. */
#include "amdgpu/runtime/device.h"

#include <stdio.h>
#include <string.h>

/* Returns how well a code object fits the device: 1 for the device's own processor, else 0. A code
 * object runs on one type of processor only. */
static int rank_of(const void *device, const char *code) {
    return strcmp(((const bsmm_hip_device *)device)->arch, code) == 0;
}

/* Returns true if the library contains code for AMD GPUs. A library may have been built for other
 * GPUs only. */
static bool has_images(void) {
    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++)
        if (strncmp(i->code, "gfx", 3) == 0) return true;
    return false;
}

bsmm_status bsmm_hip_image_find(const bsmm_hip_device *device, const char *module,
                                const bsmm_gpu_image **image) {
    *image = NULL;
    if (!has_images())
        return bsmm_fail(BSMM_E_UNSUPPORTED, "built without AMD kernels (no clang-22)");
    return bsmm_gpu_image_find(module, rank_of, device, image);
}

const char *bsmm_hip_no_image(const bsmm_hip_device *device, const char *module, char *why,
                              size_t size) {
    snprintf(why, size, "%s has no code for %s (%s)", module, device->name, device->arch);
    return why;
}
