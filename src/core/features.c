/* Lists the features of a product that not every kernel supports. For each feature the table gives
 * the reason that is reported for a kernel without it. */
#include "core/describe.h"

static uint32_t features_of(const bsmm_product *p) {
    uint32_t features =
        (p->finish ? BSMM_FEATURE_EPILOGUE : 0) | (p->invariant ? BSMM_FEATURE_INVARIANT : 0);
    if (p->b.m.order == BSMM_ORDER_COMPACT) features |= BSMM_FEATURE_COMPACT;
    /* CPU kernels need neither of the features ANY_ROWS and GROUPS, because parts.c divides such
     * products into parts that are plain products. */
    if (p->backend->host_memory) return features;
    return features | (p->any_rows ? BSMM_FEATURE_ANY_ROWS : 0) |
           (p->groups ? BSMM_FEATURE_GROUPS : 0);
}

static const struct {
    uint32_t feature;
    const char *reason;
} reasons[] = {
    {BSMM_FEATURE_EPILOGUE, "has no epilogue beyond alpha, beta and bias"},
    {BSMM_FEATURE_ANY_ROWS, "runs only the number of rows of the description (flags: ANY_ROWS)"},
    {BSMM_FEATURE_INVARIANT, "its order of sums depends on more than formats and K (flags: "
                             "BATCH_INVARIANT)"},
    {BSMM_FEATURE_COMPACT, "does not read packed weights of form compact (b_packed)"},
    {BSMM_FEATURE_GROUPS, "runs one product, not groups of products"},
};

const char *bsmm_features_refuse(const bsmm_kernel *kernel, const bsmm_product *product) {
    uint32_t lacks = features_of(product) & ~kernel->features;
    for (size_t i = 0; i < BSMM_COUNT(reasons); i++)
        if (lacks & reasons[i].feature) return reasons[i].reason;
    return NULL;
}
