/* What the kernels of packed engines have in common: included by a kernel's file after its
 * engine_of(p), the engine that a product takes. On other processors than the engine's, where
 * refuse takes nothing, engine_of is not asked. */
#ifndef BSMM_CPU_PACKED_KERNEL_H
#define BSMM_CPU_PACKED_KERNEL_H

#include "cpu/gemm.h"

static const bsmm_engine *engine_of(const bsmm_product *p);

static uint64_t workspace_bytes(const bsmm_product *p) {
    return bsmm_gemm_workspace_bytes(engine_of(p), p);
}

static bsmm_status run(const bsmm_product *p, void *workspace) {
    return bsmm_gemm_run(engine_of(p), p, workspace);
}

static uint64_t packed_b_bytes(const bsmm_product *p) {
    return bsmm_gemm_packed_b_bytes(engine_of(p), p);
}

static bsmm_status pack_b(const bsmm_product *p, void *packed) {
    bsmm_gemm_pack_b(engine_of(p), p, packed);
    return BSMM_OK;
}

/* The members of a bsmm_kernel that these are. */
#define BSMM_PACKED_KERNEL                                                                         \
    .device = "cpu", .workspace_bytes = workspace_bytes, .run = run,                               \
    .packed_b_bytes = packed_b_bytes, .pack_b = pack_b

#endif
