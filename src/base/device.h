/* Hides the differences between the compilers that compile the C code shared by the host and GPUs.
 * These compilers are nvcc, clang for amdgcn, and the host's C compiler. */
#ifndef BSMM_DEVICE_H
#define BSMM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* BSMM_SHARED declares a function that both the host and GPUs may call. BSMM_DEVICE declares a
 * function that the threads of a GPU call. A host compiler compiles BSMM_DEVICE functions too, so
 * that tests can call them as a single thread. BSMM_DEVICE_RARE is BSMM_DEVICE for rarely executed
 * code, which nvcc does not inline. clang for AMD's GPUs inlines it all the same, because a
 * function call there needs scratch memory. */
#if defined(__CUDACC__)
#    define BSMM_SHARED      static __host__ __device__ __forceinline__
#    define BSMM_DEVICE      static __device__ __forceinline__
#    define BSMM_DEVICE_RARE static __device__ __noinline__
#elif defined(__AMDGCN__)
#    define BSMM_SHARED      static inline __attribute__((always_inline))
#    define BSMM_DEVICE      static inline __attribute__((always_inline))
#    define BSMM_DEVICE_RARE static inline __attribute__((always_inline))
#else
#    define BSMM_SHARED      static inline
#    define BSMM_DEVICE      static inline
#    define BSMM_DEVICE_RARE static inline
#endif

/* BSMM_ON_GPU is 1 while the compiler generates code for a GPU, else 0. nvcc compiles BSMM_SHARED
 * functions twice: with 0 for the host and with 1 for the GPU. */
#if defined(__CUDA_ARCH__) || defined(__AMDGCN__)
#    define BSMM_ON_GPU 1
#else
#    define BSMM_ON_GPU 0
#endif

/* BSMM_UNROLL stands before a loop. GPU compilers then unroll the loop completely, so that arrays
 * indexed by its counter can stay in registers. */
#if defined(__CUDACC__) || defined(__AMDGCN__)
#    define BSMM_UNROLL _Pragma("unroll")
#else
#    define BSMM_UNROLL
#endif

#if defined(__AMDGCN__) /* amdgcn code is freestanding, so the compiler has no math.h for it. */
#    define isnan    __builtin_isnan
#    define isinf    __builtin_isinf
#    define isfinite __builtin_isfinite
#    define fma      __builtin_fma
#    define fmaf     __builtin_fmaf
#    define fminf    __builtin_fminf
#    define fmaxf    __builtin_fmaxf
#    define ceilf    __builtin_ceilf
#    define floorf   __builtin_floorf
#else
#    include <math.h>
#endif

BSMM_SHARED uint32_t bsmm_float_bits(float value) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(value);
#else
    union {
        float value;
        uint32_t bits;
    } both;
    both.value = value;
    return both.bits;
#endif
}

BSMM_SHARED float bsmm_bits_float(uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    union {
        uint32_t bits;
        float value;
    } both;
    both.bits = bits;
    return both.value;
#endif
}

/* Returns four selected bytes of a uint64 as a uint32. Bytes 0 to 3 of the uint64 are `low`, and
 * bytes 4 to 7 are `high`. Byte i of the result is byte (selectors >> 4 * i) & 7 of the uint64. */
BSMM_SHARED uint32_t bsmm_pick_bytes(uint32_t low, uint32_t high, uint32_t selectors) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, selectors);
/* AMD's byte permutation takes one selector per byte, so this code spreads the four 4-bit selectors
 * over four bytes. */
#elif defined(__AMDGCN__)
    uint32_t bytes = (selectors & 0xff) | (selectors & 0xff00) << 8;
    return __builtin_amdgcn_perm(high, low, (bytes & 0x00070007u) | (bytes & 0x00700070u) << 4);
#else
    uint64_t bytes = low | (uint64_t)high << 32;
    uint32_t picked = 0;
    for (int i = 0; i < 4; i++)
        picked |= (uint32_t)(bytes >> 8 * (selectors >> 4 * i & 7) & 0xff) << 8 * i;
    return picked;
#endif
}

/* Returns the larger of the low 16 bits of a and b, and the larger of their high 16 bits, as one
 * uint32. The halves are compared as unsigned numbers. */
BSMM_SHARED uint32_t bsmm_max_halves(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __vmaxu2(a, b);
#else
    uint32_t low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | (a >> 16 > b >> 16 ? a >> 16 : b >> 16) << 16;
#endif
}

/* Returns the high 32 bits of the 64-bit product a * b. */
BSMM_SHARED uint32_t bsmm_high_product(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* Returns the number of zero bits above the highest set bit of `value`, which must not be 0. */
BSMM_SHARED int bsmm_leading_zeros(uint32_t value) {
#if defined(__CUDA_ARCH__)
    return __clz((int)value);
#else
    return __builtin_clz(value);
#endif
}

/* Each of these functions computes one floating-point operation. No compiler contracts two of them
 * to an FMA. Results are rounded to nearest even unless the name says otherwise. */
BSMM_SHARED float bsmm_plain_mul(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

BSMM_SHARED float bsmm_plain_div(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}

BSMM_SHARED float bsmm_double_to_float(double value) {
#if defined(__CUDA_ARCH__)
    return __double2float_rn(value);
#else
    return (float)value;
#endif
}

/* Converts a double to the nearest float that is not larger in magnitude (rounding towards zero).
 * `value` must not be NaN. The host code rounds to nearest first. If that float has a larger
 * magnitude, the code subtracts 1 from its bits, which gives the next smaller magnitude. */
BSMM_SHARED float bsmm_double_toward_zero(double value) {
#if defined(__CUDA_ARCH__)
    return __double2float_rz(value);
#else
    const float nearest = (float)value;
    const double of = nearest;
    const bool beyond = value < 0 ? of < value : of > value;
    return bsmm_bits_float(bsmm_float_bits(nearest) - beyond);
#endif
}

/* Returns log2(value) in double, with an error of at most two units in the last place. `value` must
 * not be negative. The function needs no math library, because a GPU compiler may lack one: it sums
 * the series of log2((1 + s) / (1 - s)), where |s| < 0.172. */
BSMM_SHARED double bsmm_log2_series(float value) {
    const bool tiny = value < 0x1p-126f;
    const uint32_t bits = bsmm_float_bits(tiny ? value * 0x1p24f : value), low = bits & 0x007fffffu;
    if (value == 0) return -(double)bsmm_bits_float(0x7f800000u);
    if (bits >= 0x7f800000u) return (double)value; /* Inf and NaN are returned unchanged. */
    /* m is the mantissa, between 1 and 2. If it is above sqrt(2), it is halved and the exponent
     * grows by 1. m then lies between sqrt(1/2) and sqrt(2), so the magnitude of s = (m - 1) / (m +
     * 1) is below 0.172, and the series in s converges fast. */
    const bool upper = low > 0x003504f3u;
    const int exponent = (int)(bits >> 23) - 127 + upper - (tiny ? 24 : 0);
    const double m = (double)bsmm_bits_float(low | (upper ? 0x3f000000u : 0x3f800000u));
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = 0;
    for (int i = 25; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    /* The loop summed a series of the natural logarithm divided by 2; the factor 2 / ln 2 converts
     * it to log2. */
    return exponent + s * sum * 2.8853900817779268;
}

BSMM_SHARED double bsmm_log2(float value) {
#if defined(__AMDGCN__)
    return bsmm_log2_series(value);
#else
    return log2((double)value);
#endif
}

/* These functions load from memory that no thread writes while the kernel runs. On NVIDIA's GPUs
 * they read through a cache that stores of other threads do not update. */
BSMM_DEVICE uint32_t bsmm_load_word(const void *from) {
#if defined(__CUDA_ARCH__)
    return __ldg((const uint32_t *)from);
#else
    return *(const uint32_t *)from;
#endif
}

BSMM_DEVICE uint32_t bsmm_load_byte(const uint8_t *from) {
#if defined(__CUDA_ARCH__)
    return __ldg(from);
#else
    return *from;
#endif
}

/* A lane is a thread of a warp (NVIDIA) or wavefront (AMD), whose threads run in lockstep. The host
 * compiler's version of this code has one lane. */

#if defined(__CUDACC__)
enum { BSMM_LANES = 32 };

BSMM_DEVICE uint32_t bsmm_device_lane(void) {
    return threadIdx.x % BSMM_LANES;
}

/* Returns the argument `value` of another lane of the warp: the lane whose number is this lane's
 * number XOR `by`. All lanes of the warp must call the function together. */
BSMM_DEVICE double bsmm_device_exchange(double value, int by) {
    return __shfl_xor_sync(0xffffffffu, value, by);
}
#elif defined(__AMDGCN__)
enum { BSMM_LANES = 64 };

BSMM_DEVICE uint32_t bsmm_device_lane(void) {
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

BSMM_DEVICE double bsmm_device_exchange(double value, int by) {
    union {
        double value;
        int words[2];
    } both = {.value = value};
    const int from = 4 * ((int)bsmm_device_lane() ^ by);
    for (int i = 0; i < 2; i++)
        both.words[i] = __builtin_amdgcn_ds_bpermute(from, both.words[i]);
    return both.value;
}
#else
enum { BSMM_LANES = 1 };

BSMM_DEVICE uint32_t bsmm_device_lane(void) {
    return 0;
}

BSMM_DEVICE double bsmm_device_exchange(double value, int by) {
    (void)by;
    return value;
}
#endif

#endif
