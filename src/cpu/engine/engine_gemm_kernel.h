/* Defines the functions of a kernel table entry (bsmm_kernel) that all kernels with packed operands
 * share. A kernel's file includes this header. On x86-64 the file then defines engine_of, which
 * returns the engine (the packing and multiply functions) for a product. */
#ifndef BSMM_CPU_ENGINE_GEMM_KERNEL_H
#define BSMM_CPU_ENGINE_GEMM_KERNEL_H

#include "base/cpu.h"
#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"

#include <stdio.h>

#if defined(__x86_64__)
static const bsmm_engine *engine_of(const bsmm_product *p);
#else
static const bsmm_engine *engine_of(const bsmm_product *p) {
    /* This function is never called, because the kernel refuses every product on other processors
     * than x86-64. */
    (void)p;
    return NULL;
}
#endif

/* `packed_needs` holds the requirements of a kernel. The first requirement that a processor or a
 * product does not meet gives the reason for refusing the product. */
typedef struct packed_needs {
    uint32_t feature;
    /* `absent` is the reason that is returned if the processor lacks the feature. */
    const char *absent;
    bsmm_pack_refuser
        *refuse; /* `refuse` returns the reason why an operand's format is refused, or NULL. */
} packed_needs;

static inline const char *refuse_packed(const packed_needs *needs, const bsmm_product *p,
                                        bsmm_gemm *made, char *why, size_t size) {
    if (!(bsmm_cpu_features() & needs->feature)) return needs->absent;
    const char *reason = bsmm_pack_refuse(p, needs->refuse, why, size);
    if (reason) return reason;
    const bsmm_engine *engine = engine_of(p);
    *made = bsmm_gemm_make(engine, p);
    return bsmm_gemm_refuse_output(engine, p, why, size);
}

BSMM_CHECK_STATE(bsmm_gemm);

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const bsmm_gemm *)state)->workspace_bytes;
}

static inline bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    return bsmm_gemm_run(state, p, workspace);
}

static uint64_t packed_b_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const bsmm_gemm *)state)->packed_b_bytes;
}

static void name_panels(const bsmm_product *p, const void *state, char *name, size_t size) {
    const bsmm_engine *e = ((const bsmm_gemm *)state)->engine;
    (void)p;
    snprintf(name, size, "%s_k%lld_n%lld", e->values, (long long)e->unit, (long long)e->nr);
}

static bsmm_status pack_b(const bsmm_product *p, const void *state, void *packed) {
    return bsmm_gemm_pack_b(state, p, packed);
}

/* Initializes the members of a kernel table entry (bsmm_kernel) that the functions of this header
 * implement. `state` is the type of the kernel's state, which begins with a bsmm_gemm, and `runs`
 * is the kernel's function `run`. */
#define BSMM_PACKED_KERNEL_WITH(state, runs)                                                       \
    .device = "cpu", .state_bytes = sizeof(state), .workspace_bytes = workspace_bytes,             \
    .run = runs, .packed_b_bytes = packed_b_bytes, .name_panels = name_panels, .pack_b = pack_b,   \
    .features = BSMM_FEATURE_EPILOGUE | BSMM_FEATURE_INVARIANT | BSMM_FEATURE_COMPACT
#define BSMM_PACKED_KERNEL BSMM_PACKED_KERNEL_WITH(bsmm_gemm, run)

#endif
