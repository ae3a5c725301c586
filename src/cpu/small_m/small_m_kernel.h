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

static uint64_t workspace_bytes(const bsmm_product *p) {
    bsmm_small_m_engine d = engine_of(p);
    return bsmm_small_m_workspace_bytes(&d, p);
}

static bsmm_status run(const bsmm_product *p, void *workspace) {
    bsmm_small_m_engine d = engine_of(p);
    return bsmm_small_m_run(&d, p, workspace);
}

/* The members of a bsmm_kernel that these are. */
#define BSMM_SMALL_M_KERNEL .device = "cpu", .workspace_bytes = workspace_bytes, .run = run

#endif
