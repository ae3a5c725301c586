/* What the kernels for few rows of weights as stored have in common. A kernel's file includes it,
 * defines engine_of, the engine that a product takes, where the compiler has its instructions (on
 * x86-64), and what it refuses. */
#ifndef BSMM_CPU_SMALL_M_KERNEL_H
#define BSMM_CPU_SMALL_M_KERNEL_H

#include "base/cpu.h"
#include "cpu/small_m/small_m.h"

#if defined(__x86_64__)
static bsmm_small_m_engine engine_of(const bsmm_product *p);
#else
static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    (void)p; /* all is refused */
    return (bsmm_small_m_engine){0};
}
#endif

BSMM_CHECK_STATE(bsmm_small_m);

/* For the end of a kernel's refuse. */
static inline const char *take_small_m(const bsmm_product *p, int64_t most_rows, void *state,
                                       char *why, size_t size) {
    const char *reason = bsmm_small_m_refuse(p, most_rows, why, size);
    if (reason) return reason;
    bsmm_small_m_engine d = engine_of(p);
    bsmm_small_m_make(&d, p, state);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const bsmm_small_m *)state)->workspace_bytes;
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    return bsmm_small_m_run(state, p, workspace);
}

/* The members of a bsmm_kernel that these are. */
#define BSMM_SMALL_M_KERNEL                                                                        \
    .device = "cpu", .state_bytes = sizeof(bsmm_small_m), .workspace_bytes = workspace_bytes,      \
    .run = run, .features = BSMM_FEATURE_INVARIANT

#endif
