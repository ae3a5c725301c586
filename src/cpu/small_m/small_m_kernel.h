/* All small-M kernels share these functions of the kernel table entry (bsmm_kernel). A kernel's
 * file includes this header. On x86-64 the file defines engine_of, which returns the engine (set of
 * multiply functions) for a product. It also defines the kernel's function `refuse`. */
#ifndef BSMM_CPU_SMALL_M_KERNEL_H
#define BSMM_CPU_SMALL_M_KERNEL_H

#include "base/cpu.h"
#include "cpu/small_m/small_m.h"

#if defined(__x86_64__)
static bsmm_small_m_engine engine_of(const bsmm_product *p);
#else
static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    /* Only compilers for other processors than x86-64 see this version of engine_of. It is never
     * called, because the kernel refuses every product on these processors. */
    (void)p;
    return (bsmm_small_m_engine){0};
}
#endif

BSMM_CHECK_STATE(bsmm_small_m);

/* Fills the kernel's state. The width of the tiles depends on the number of rows of A, so a product
 * with fewer rows can need a larger workspace. But a kernel must never ask for more workspace when
 * A has fewer rows (core/kernel.h). The state's workspace is therefore the largest one that any
 * number of rows up to A's needs. */
static inline void make_small_m(const bsmm_product *p, bsmm_small_m *state) {
    bsmm_product fewer = *p;
    uint64_t most = 0;
    for (int64_t rows = p->a.m.rows ? 1 : 0; rows <= p->a.m.rows; rows++) {
        fewer.a.m.rows = fewer.d.m.rows = rows;
        const bsmm_small_m_engine d = engine_of(&fewer);
        bsmm_small_m_make(&d, &fewer, state);
        if (state->workspace_bytes > most) most = state->workspace_bytes;
    }
    state->workspace_bytes = most;
}

/* Does the last part of the work of a kernel's function `refuse`: it checks the product's shape. If
 * the kernel supports the shape, it fills the kernel's state and returns NULL, else it returns the
 * reason. */
static inline const char *take_small_m(const bsmm_product *p, const bsmm_small_m_limit *most,
                                       void *state, char *why, size_t size) {
    const char *reason = bsmm_small_m_refuse(p, most, why, size);
    if (reason) return reason;
    make_small_m(p, state);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const bsmm_small_m *)state)->workspace_bytes;
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    return bsmm_small_m_run(state, p, workspace);
}

/* Initializes the members of a kernel table entry (bsmm_kernel) that the functions of this header
 * implement. */
#define BSMM_SMALL_M_KERNEL                                                                        \
    .device = "cpu", .state_bytes = sizeof(bsmm_small_m), .workspace_bytes = workspace_bytes,      \
    .run = run, .features = BSMM_FEATURE_EPILOGUE | BSMM_FEATURE_INVARIANT | BSMM_FEATURE_COMPACT

#endif
