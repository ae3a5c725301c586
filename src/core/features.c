/* Lists the features of a product that not every kernel supports, such as an epilogue or groups.
 * For each feature, the table gives the reason for which a kernel without it refuses the
 * product. */
#include "core/describe.h"

static uint32_t features_of(const bsmm_product *p) {
    uint32_t features =
        (p->epilogue ? BSMM_FEATURE_EPILOGUE : 0) | (p->invariant ? BSMM_FEATURE_INVARIANT : 0);
    if (p->b.m.order == BSMM_ORDER_COMPACT) features |= BSMM_FEATURE_COMPACT;
    /* parts.c divides a product with ANY_ROWS (a number of rows that each run chooses) or GROUPS
     * into plain products. CPU kernels therefore need not support these two features. */
    if (p->backend->host_memory) return features;
    return features | (p->any_rows ? BSMM_FEATURE_ANY_ROWS : 0) |
           (p->groups ? BSMM_FEATURE_GROUPS : 0);
}

static const struct {
    uint32_t feature;
    const char *reason;
} reasons[] = {
    {BSMM_FEATURE_EPILOGUE, "epilogue is set; the kernel computes only alpha, beta and bias"},
    {BSMM_FEATURE_ANY_ROWS,
     "flags has ANY_ROWS; the kernel runs only the described number of rows"},
    {BSMM_FEATURE_INVARIANT,
     "flags has BATCH_INVARIANT; the kernel's order of sums depends on more "
     "than formats and K"},
    {BSMM_FEATURE_COMPACT, "b_packed is COMPACT; the kernel does not read this form"},
    {BSMM_FEATURE_GROUPS, "group is set; the kernel runs one product, not groups of products"},
};

const char *bsmm_features_refuse(const bsmm_kernel *kernel, const bsmm_product *product) {
    uint32_t lacks = features_of(product) & ~kernel->features;
    for (size_t i = 0; i < BSMM_COUNT(reasons); i++)
        if (lacks & reasons[i].feature) return reasons[i].reason;
    return NULL;
}
