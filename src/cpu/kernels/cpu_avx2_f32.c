/* The kernel cpu_avx2_f32 multiplies operands of almost any formats by fp32 FMA in vectors of 8
 * lanes. pack_f32fma.h describes the packed operands, and engine_f32fma_body.h describes the
 * multiplication.
 *
 * A register tile has 6 rows of A and 16 rows of B. Its accumulators take 12 of the 16 vector
 * registers. docs/NUMERICS.md states the error bound. */
#include "base/cpu.h"
#include "cpu/engine/engine_gemm_kernel.h"
#include "cpu/pack/pack_f32fma.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2,fma")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 8, VECTORS = 2, COLUMNS = 8 };

typedef __m256 vec;
#    define MM(name) _mm256_##name

/* Computes *acc += a * b. The assembly forces the form of the instruction that overwrites the
 * accumulator. Compilers choose another form in the unrolled loop, which then needs register
 * moves. */
INLINE void vec_accumulate(vec *acc, vec a, vec b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*acc) : "x"(a), "x"(b));
}

INLINE void vec_settle(vec *value) {
    __asm__("" : "+x"(*value));
}

#    include "cpu/engine/engine_f32fma_body.h"

#endif

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    static const packed_needs needs = {BSMM_CPU_AVX2, "the processor has no AVX2",
                                       bsmm_f32fma_refuse};
    return refuse_packed(&needs, p, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_f32 = {
    .name = "cpu_avx2_f32",
    BSMM_PACKED_KERNEL,
    .refuse = refuse,
    .bound = bsmm_f32fma_bound,
};
