/* These functions wrap matrix instructions, one instruction per function. The command "bsmm mfma
 * NAME" shows in which lanes and registers an instruction has its operands. */
#ifndef BSMM_AMDGPU_ISA_MFMA_H
#define BSMM_AMDGPU_ISA_MFMA_H

#include "amdgpu/cdna/kernel.h"

typedef float bsmm_f32x4 __attribute__((vector_size(16)));
typedef int32_t bsmm_i32x8 __attribute__((vector_size(32)));
typedef uint32_t bsmm_u32x4 __attribute__((vector_size(16)));

#if defined(__gfx950__)
/* Computes D = A B + C for 16 x 16 results and 128 elements of K. Types 0 to 4 are e4m3, e5m2,
 * e2m3, e3m2 and e2m1. Byte a_byte of a_scale and byte b_byte of b_scale are the e8m0 scales that
 * the lane passes to the instruction: lane l passes the scale of row l % 16 for the 32 elements of
 * K that begin with element 32 * (l / 16). The types and bytes must be compile-time constants, so
 * that inlining leaves only one case of each switch. */
BSMM_DEVICE bsmm_f32x4 bsmm_isa_mfma_scale_16(bsmm_i32x8 a, bsmm_i32x8 b, bsmm_f32x4 c,
                                              uint32_t a_type, uint32_t b_type, int32_t a_scale,
                                              uint32_t a_byte, int32_t b_scale, uint32_t b_byte) {
#    define BYTES(x, y, p, q)                                                                      \
    case 4 * (p) + (q):                                                                            \
        return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, c, x, y, p, a_scale, q,      \
                                                                b_scale);
#    define BYTES_4(x, y, p) BYTES(x, y, p, 0) BYTES(x, y, p, 1) BYTES(x, y, p, 2) BYTES(x, y, p, 3)
#    define CASE(x, y)                                                                             \
    case 5 * (x) + (y):                                                                            \
        switch (4 * a_byte + b_byte) {                                                             \
            BYTES_4(x, y, 0) BYTES_4(x, y, 1) BYTES_4(x, y, 2) BYTES_4(x, y, 3)                    \
        }                                                                                          \
        break;
#    define CASES(x) CASE(x, 0) CASE(x, 1) CASE(x, 2) CASE(x, 3) CASE(x, 4)
    switch (5 * a_type + b_type) { CASES(0) CASES(1) CASES(2) CASES(3) CASES(4) }
#    undef CASES
#    undef CASE
#    undef BYTES_4
#    undef BYTES
    __builtin_unreachable();
}
#endif

/* Computes D = A B + C for 16 x 16 results and 32 elements of K. Elements are e4m3fnuz on gfx942
 * and e4m3 on gfx950. Each lane holds eight elements along K of A and of B. */
BSMM_DEVICE bsmm_f32x4 bsmm_isa_mfma_fp8_16(int64_t a, int64_t b, bsmm_f32x4 c) {
    return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, c, 0, 0, 0);
}

/* Computes D = A B + C for 16 x 16 results and 32 elements of K. Elements are bf16. Each lane holds
 * eight elements along K of A and of B. gfx942 needs two instructions, each for half of K. */
BSMM_DEVICE bsmm_f32x4 bsmm_isa_mfma_bf16_16(bsmm_u32x4 a, bsmm_u32x4 b, bsmm_f32x4 c) {
#if defined(__gfx950__)
    typedef __bf16 bf16x8 __attribute__((vector_size(16)));
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16((bf16x8)a, (bf16x8)b, c, 0, 0, 0);
#else
    typedef uint32_t u32x2 __attribute__((vector_size(8)));
    typedef short bf16x4 __attribute__((vector_size(8)));
    const u32x2 a_low = {a[0], a[1]}, a_high = {a[2], a[3]};
    const u32x2 b_low = {b[0], b[1]}, b_high = {b[2], b[3]};
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k((bf16x4)a_low, (bf16x4)b_low, c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k((bf16x4)a_high, (bf16x4)b_high, c, 0, 0, 0);
#endif
}

#endif
