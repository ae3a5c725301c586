/* Why a kernel does not take what a product asks for beyond a product of two matrices: one reason
 * for each feature, in one place. */
#include "core/describe.h"

static uint32_t features_of(const bsmm_product *p) {
    return p->finish ? BSMM_FEATURE_EPILOGUE : 0;
}

static const struct {
    uint32_t feature;
    const char *reason;
} reasons[] = {
    {BSMM_FEATURE_EPILOGUE, "has no epilogue beyond alpha, beta and bias"},
};

const char *bsmm_features_refuse(const bsmm_kernel *kernel, const bsmm_product *product) {
    uint32_t lacks = features_of(product) & ~kernel->features;
    for (size_t i = 0; i < BSMM_COUNT(reasons); i++)
        if (lacks & reasons[i].feature) return reasons[i].reason;
    return NULL;
}
