/* cpu_avx2_f32 multiplies any two formats by fp32 multiply-add of 8 lanes; see pack_f32fma.h and
 * engine_f32fma_body.h.
 *
 * A tile is 6 rows of A x 16 of B, in 12 of the 16 registers. The error bound is 1.1 * (K + 4) *
 * 2^-24 * sum |a||b| in the folded form, and 1.1 * (128 + K / 128 + 4) * 2^-24 * sum |a||b| in the
 * segmented form. */
#include "base/cpu.h"
#include "cpu/engine/engine_gemm_kernel.h"
#include "cpu/pack/pack_f32fma.h"

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2,fma")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = 8, VECTORS = 2, COLUMNS = 8 };

typedef __m256 vec;

INLINE vec vec_load(const float *from) {
    return _mm256_loadu_ps(from);
}
INLINE void vec_store(float *to, vec value) {
    _mm256_storeu_ps(to, value);
}
INLINE vec vec_set1(float value) {
    return _mm256_set1_ps(value);
}
INLINE vec vec_mul(vec a, vec b) {
    return _mm256_mul_ps(a, b);
}
INLINE vec vec_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}

/* Fewer instructions make the kernel less sensitive to another thread on the same core. So the loop
 * is unrolled, and of FMA's three operand orders this one is forced, because it needs no register
 * moves. Compilers do not choose it for the unrolled loop. */
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
