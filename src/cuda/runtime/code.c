/* A kernel has several compiled images. The functions in this file choose the image that a device
 * runs best. */
#include "cuda/runtime/device.h"

#include <stdio.h>
#include <string.h>

enum { CUBIN_RANK = 1000 };

/* Rates how well a device runs the machine code of an image. The best image gets the largest
 * number, and 0 means that the device cannot run the image. "sm_90" is a cubin for compute
 * capability 9.0 and later minor versions of 9. "compute_80" is PTX for 8.0 and every later
 * capability. Code with the suffix `a` runs on exactly that capability. Code with the suffix `f`
 * also runs on later minor versions of the same major version (CUDA C++ Programming Guide, "Compute
 * Capabilities"). A cubin rates higher than PTX, because the driver would have to compile PTX
 * first. The simulator runs only PTX. */
static int rank_of(const void *device, const char *code) {
    const bsmm_cuda_device *d = device;
    const int capability = d->capability;
    int of = 0;
    char feature = 0;
    const bool cubin = sscanf(code, "sm_%d%c", &of, &feature) > 0;
    if (!cubin && sscanf(code, "compute_%d%c", &of, &feature) <= 0) return 0;
    if (cubin && d->is_simulated) return 0;
    const bool same_major = of / 10 == capability / 10;
    if (of > capability || (feature == 'a' && of != capability)) return 0;
    if ((cubin || feature) && !same_major) return 0;
    return cubin ? CUBIN_RANK + of : of;
}

/* Returns true if the library contains images for NVIDIA GPUs. A library may have been built for
 * AMD GPUs only. */
static bool has_images(void) {
    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++)
        if (strncmp(i->code, "sm_", 3) == 0 || strncmp(i->code, "compute_", 8) == 0) return true;
    return false;
}

bsmm_status bsmm_cuda_image_find(const bsmm_cuda_device *device, const char *module,
                                 const bsmm_gpu_image **image) {
    *image = NULL;
    if (!has_images()) return bsmm_fail(BSMM_E_UNSUPPORTED, "built without CUDA kernels (no nvcc)");
    return bsmm_gpu_image_find(module, rank_of, device, image);
}

const char *bsmm_cuda_no_image(const bsmm_cuda_device *device, const char *module, char *why,
                               size_t size) {
    snprintf(why, size, "is for %.*s; %s has compute capability %d.%d", (int)strcspn(module, "/"),
             module, device->name, device->capability / 10, device->capability % 10);
    return why;
}
