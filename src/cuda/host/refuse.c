/* Reasons that CUDA kernels share: why a device cannot run a module, and what of a product. */
#include "cuda/host/kernel.h"
#include "gpu/images.h"
#include "gpu/params.h"

#include <stdio.h>
#include <string.h>

/* A folder of modules, and the compute capabilities that they run on. */
static const struct {
    const char *folder;
    int least, most;
} architectures[] = {
    {"sm90a/", 90, 90}, /* sm_90a code is tied to that chip */
    {"sm80/", 80, 999}, /* PTX for compute_80 runs on all that came after */
};

static bool runs(const char *module, int capability) {
    for (size_t i = 0; i < BSMM_COUNT(architectures); i++)
        if (strncmp(module, architectures[i].folder, strlen(architectures[i].folder)) == 0)
            return capability >= architectures[i].least && capability <= architectures[i].most;
    return false;
}

const char *bsmm_cuda_refuse(const bsmm_product *product, const bsmm_cuda_function *function,
                             char *why, size_t size) {
    const bsmm_cuda_device *device = product->device;
    const bsmm_gpu_image *image;
    if (bsmm_gpu_image_find(function->module, &image) != BSMM_OK) {
        snprintf(why, size, "%s", bsmm_error_message());
        return why;
    }
    if (runs(function->module, device->capability)) return NULL;
    snprintf(why, size, "is for %.*s; %s has compute capability %d.%d",
             (int)strcspn(function->module, "/"), function->module, device->name,
             device->capability / 10, device->capability % 10);
    return why;
}

const char *bsmm_cuda_refuse_product(const bsmm_product *p) {
    if (p->recipe) return "D is block-scaled: it stores unscaled formats only";
    if (!bsmm_gpu_is_small(p)) return "an extent is beyond 32 bits";
    if (p->a.m.cols == 0 || p->d.m.rows == 0 || p->d.m.cols == 0) return "an extent is 0";
    return NULL;
}

bool bsmm_cuda_has_groups(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_F32 && f->block_cols == 128 &&
           (f->block_rows == 1 || f->block_rows == 128);
}
