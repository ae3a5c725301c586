#include "cpu_hooks.h"

#include <stdatomic.h>

static atomic_uint feature_mask = ~0u, added_features;
static atomic_ullong pretended_l2;

void bsmm_cpu_mask_features(uint32_t mask) {
    atomic_store(&feature_mask, mask);
}

void bsmm_cpu_add_features(uint32_t features) {
    atomic_store(&added_features, features);
}

void bsmm_cpu_pretend_l2_bytes(uint64_t bytes) {
    atomic_store(&pretended_l2, bytes);
}

uint32_t bsmm_cpu_features(void) {
    return (bsmm_cpu_ask_features() | atomic_load(&added_features)) & atomic_load(&feature_mask);
}

uint64_t bsmm_cpu_l2_bytes(void) {
    uint64_t pretended = atomic_load(&pretended_l2);
    return pretended ? pretended : bsmm_cpu_ask_l2_bytes();
}
