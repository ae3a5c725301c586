/* The kernel cpu_avx512_f32 multiplies operands of almost any formats by fp32 FMA in vectors of 16
 * lanes. pack_f32fma.h describes the packed operands, engine_f32fma_body.h the multiplication.
 *
 * A register tile has 6 rows of A and 64 rows of B; its accumulators take 24 of the 32 vector
 * registers. docs/NUMERICS.md states the error bound. */
#include "base/cpu.h"
#include "cpu/engine/engine_gemm_kernel.h"
#include "cpu/pack/pack_f32fma.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 16, VECTORS = 4, COLUMNS = 1 };

typedef __m512 vec;
#    define MM(name) _mm512_##name

INLINE void vec_accumulate(vec *acc, vec a, vec b) {
    *acc = _mm512_fmadd_ps(a, b, *acc);
}

INLINE void vec_settle(vec *value) {
    (void)value;
}

#    include "cpu/engine/engine_f32fma_body.h"

#endif

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX512, "the processor has no AVX-512",
                                       bsmm_f32fma_refuse};
    return refuse_packed(&needs, p, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx512_f32 = {
    .name = "cpu_avx512_f32",
    BSMM_PACKED_KERNEL,
    .refuse = refuse,
    .bound = bsmm_f32fma_bound,
};
