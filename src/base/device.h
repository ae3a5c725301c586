/* What differs between the compilers that C shared by hosts and GPUs meets: nvcc, clang for amdgcn,
 * and the host's. Everything else that they share is plain C, and asks nothing of the compiler. */
#ifndef BSMM_DEVICE_H
#define BSMM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- functions ---- */

/* BSMM_SHARED: of hosts and GPUs. BSMM_DEVICE: of threads of a GPU; a host compiles it as one
 * thread, for tests. BSMM_DEVICE_RARE: the same, not inlined. */
#if defined(__CUDACC__)
#    define BSMM_SHARED      static __host__ __device__ __forceinline__
#    define BSMM_DEVICE      static __device__ __forceinline__
#    define BSMM_DEVICE_RARE static __device__ __noinline__
#elif defined(__AMDGCN__)
#    define BSMM_SHARED      static inline __attribute__((always_inline))
#    define BSMM_DEVICE      static inline __attribute__((always_inline))
#    define BSMM_DEVICE_RARE static inline __attribute__((noinline))
#else
#    define BSMM_SHARED      static inline
#    define BSMM_DEVICE      static inline
#    define BSMM_DEVICE_RARE static inline
#endif

/* 1 where code for a GPU is made. nvcc compiles what is BSMM_SHARED twice. */
#if defined(__CUDA_ARCH__) || defined(__AMDGCN__)
#    define BSMM_ON_GPU 1
#else
#    define BSMM_ON_GPU 0
#endif

/* ---- C's mathematics ---- */

#if defined(__AMDGCN__) /* freestanding */
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

/* ---- bits ---- */

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

/* Byte i of the result is byte (selectors >> 4 * i) & 7 of low (0 to 3) and high (4 to 7). */
BSMM_SHARED uint32_t bsmm_pick_bytes(uint32_t low, uint32_t high, uint32_t selectors) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, selectors);
#elif defined(__AMDGCN__) /* one byte for each selector */
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

/* The larger of each pair of 16-bit halves. */
BSMM_SHARED uint32_t bsmm_max_halves(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __vmaxu2(a, b);
#else
    uint32_t low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | (a >> 16 > b >> 16 ? a >> 16 : b >> 16) << 16;
#endif
}

/* The high word of a product. */
BSMM_SHARED uint32_t bsmm_high_product(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* Zeros above the highest bit of a value other than 0. */
BSMM_SHARED int bsmm_leading_zeros(uint32_t value) {
#if defined(__CUDA_ARCH__)
    return __clz((int)value);
#else
    return __builtin_clz(value);
#endif
}

/* ---- floating point: never contracted, rounded to nearest unless the name says otherwise ---- */

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

/* Rounded towards zero; no NaN. */
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

/* log2 in double, within two units in its last place, of a value that is not negative: a GPU's
 * compiler may have no library of mathematics. log2((1 + s) / (1 - s)) as a series, |s| < 0.172. */
BSMM_SHARED double bsmm_log2_series(float value) {
    const bool tiny = value < 0x1p-126f;
    const uint32_t bits = bsmm_float_bits(tiny ? value * 0x1p24f : value), low = bits & 0x007fffffu;
    if (value == 0) return -(double)bsmm_bits_float(0x7f800000u);
    if (bits >= 0x7f800000u) return (double)value; /* Inf, NaN */
    const bool upper = low > 0x003504f3u;          /* above sqrt(2): below 1, as half of it */
    const int exponent = (int)(bits >> 23) - 127 + upper - (tiny ? 24 : 0);
    const double m = (double)bsmm_bits_float(low | (upper ? 0x3f000000u : 0x3f800000u));
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = 0;
    for (int i = 25; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return exponent + s * sum * 2.8853900817779268; /* 2 / ln 2 */
}

BSMM_SHARED double bsmm_log2(float value) {
#if defined(__AMDGCN__)
    return bsmm_log2_series(value);
#else
    return log2((double)value);
#endif
}

/* ---- lanes: threads that run together; of a host one ---- */

#if defined(__CUDACC__)
enum { BSMM_LANES = 32 };

BSMM_DEVICE uint32_t bsmm_device_lane(void) {
    return threadIdx.x % BSMM_LANES;
}

/* The value of the lane whose number differs by the bits of `by`; of all lanes at once. */
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
