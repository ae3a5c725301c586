/* Defines the words of CUDA C that kernels use, such as __shared__ and __ldg, for a C++ compiler.
 * It is included before all other headers. */
#include "machine.h"

#include <assert.h>
#include <cfenv>
#include <cmath>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __global__      EMULATED_GLOBAL
#define __shared__      EMULATED_SHARED
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __restrict__
#define __CUDACC__    1
#define __CUDA_ARCH__ 900
#define threadIdx     (emulated_now->thread)
#define blockIdx      (emulated_now->block)
#define blockDim      (emulated_now->threads)
#define gridDim       (emulated_now->blocks)

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y) {
    return {x, y};
}
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

template <typename To, typename From> static inline To emulated_bits(From from) {
    To to;
    static_assert(sizeof to == sizeof from, "the same bits");
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline uint32_t __float_as_uint(float value) {
    return emulated_bits<uint32_t>(value);
}
static inline float __uint_as_float(uint32_t bits) {
    return emulated_bits<float>(bits);
}
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t both = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t which = selector >> 4 * i & 7;
        result |= uint32_t(both >> 8 * which & 0xff) << 8 * i;
    }
    return result;
}
static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by) {
    return uint32_t((uint64_t(high) << 32 | low) >> (by & 31));
}
static inline uint32_t __umulhi(uint32_t a, uint32_t b) {
    return uint32_t(uint64_t(a) * b >> 32);
}
static inline int __clz(int x) {
    return x ? __builtin_clz(uint32_t(x)) : 32;
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline uint32_t __vmaxu2(uint32_t a, uint32_t b) {
    uint32_t low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | (a >> 16 > b >> 16 ? a >> 16 : b >> 16) << 16;
}
static inline uint32_t __vminu2(uint32_t a, uint32_t b) {
    uint32_t low = (a & 0xffff) < (b & 0xffff) ? a & 0xffff : b & 0xffff;
    return low | (a >> 16 < b >> 16 ? a >> 16 : b >> 16) << 16;
}
template <typename A, typename B> static inline std::common_type_t<A, B> min(A a, B b) {
    std::common_type_t<A, B> x = a, y = b;
    return x < y ? x : y;
}
template <typename A, typename B> static inline std::common_type_t<A, B> max(A a, B b) {
    std::common_type_t<A, B> x = a, y = b;
    return x > y ? x : y;
}

template <typename F> static inline float emulated_rounded(int mode, F compute) {
    int before = fegetround();
    fesetround(mode);
    volatile float result = compute();
    fesetround(before);
    return result;
}
static inline float __fmul_rz(float a, float b) {
    volatile float x = a, y = b;
    return emulated_rounded(FE_TOWARDZERO, [&] { return x * y; });
}
static inline float __fdiv_rz(float a, float b) {
    volatile float x = a, y = b;
    return emulated_rounded(FE_TOWARDZERO, [&] { return x / y; });
}
static inline float __double2float_rz(double a) {
    volatile double x = a;
    return emulated_rounded(FE_TOWARDZERO, [&] { return float(x); });
}
static inline float __double2float_rn(double a) {
    return float(a);
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline float __frcp_rn(float a) {
    return 1 / a;
}

template <typename T> static inline T __ldg(const T *from) {
    return *from;
}
template <typename T> static inline T __ldcg(const T *from) {
    return *from;
}
template <typename T> static inline void __stcg(T *to, T value) {
    *to = value;
}
static inline uint32_t atomicMax(uint32_t *to, uint32_t value) {
    uint32_t before = *to;
    if (value > before) *to = value;
    return before;
}
static inline uint32_t atomicOr(uint32_t *to, uint32_t value) {
    uint32_t before = *to;
    *to |= value;
    return before;
}
static inline uint64_t __cvta_generic_to_shared(const void *pointer) {
    return emulated_address(pointer);
}
static inline void *__cvta_shared_to_generic(uint64_t address) {
    return emulated_pointer(uint32_t(address));
}

#define EMULATED_WHOLE(mask) assert((mask) == 0xffffffffu)

template <typename T> static inline T __shfl_sync(uint32_t mask, T value, uint32_t lane) {
    EMULATED_WHOLE(mask);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulated_exchange(bits)[lane % 32];
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T> static inline T __shfl_xor_sync(uint32_t mask, T value, uint32_t by) {
    return __shfl_sync(mask, value, emulated_now->lane ^ by);
}
static inline void __syncwarp(void) {
    emulated_exchange(0);
}
static inline uint32_t __ballot_sync(uint32_t mask, bool value) {
    EMULATED_WHOLE(mask);
    return emulated_ballot(value);
}
static inline bool __any_sync(uint32_t mask, bool value) {
    return __ballot_sync(mask, value) != 0;
}
static inline bool __all_sync(uint32_t mask, bool value) {
    return __ballot_sync(mask, !value) == 0;
}
template <typename T> static inline T __reduce_max_sync(uint32_t mask, T value) {
    EMULATED_WHOLE(mask);
    const uint64_t *all = emulated_exchange(emulated_bits<uint32_t>(value));
    T most = value;
    for (int i = 0; i < 32; i++)
        most = max(most, emulated_bits<T>(uint32_t(all[i])));
    return most;
}
static inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t value) {
    EMULATED_WHOLE(mask);
    const uint64_t *all = emulated_exchange(value);
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++)
        bits |= uint32_t(all[i]);
    return bits;
}
static inline void __syncthreads(void) {
    emulated_barrier(0, 0);
}
static inline int __syncthreads_or(int value) {
    return emulated_block_or(value != 0);
}
static inline void __nanosleep(uint32_t) {
    emulated_give_way();
}

template <typename... P, size_t... I>
static inline void emulated_apply(void (*kernel)(P...), void **arguments,
                                  std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_cv_t<P> *>(arguments[I])...);
}
template <typename... P> static inline void emulated_call(void (*kernel)(P...), void **arguments) {
    emulated_apply(kernel, arguments, std::index_sequence_for<P...>());
}
