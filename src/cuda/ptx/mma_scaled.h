/* This file wraps the matrix multiply-accumulate of a warp with block scales (PTX ISA 8.8, section
 * 9.7.14.5 "mma"), and the loads of its operands. The products require sm_120a or sm_120f. */
#ifndef BSMM_CUDA_PTX_MMA_SCALED_H
#define BSMM_CUDA_PTX_MMA_SCALED_H

#include <stdint.h>

/* PTX ISA "ldmatrix": loads four matrices of 8 rows of 16 bytes. Lane 8 i + r provides the address
 * of row r of matrix i. Lane 4 r + t gets bytes 4 t to 4 t + 3 of row r of matrix i in `to[i]`. */
static __device__ __forceinline__ void ptx_ldmatrix_x4(uint32_t from, uint32_t to[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

/* PTX ISA "mma" with block_scale: computes d (16 x 8) += a (16 rows of 32 bytes) x b (8 rows of 32
 * bytes)^T, with the block scales applied. FORM is a string literal: the part of the instruction's
 * name from the shape to the type of the scales. "bytes x" below are the four bytes x to x + 3 of a
 * row. In lane 4 g + t, the registers are:
 *
 *   a[0] to a[3]  bytes 4 t of rows g and g + 8, then bytes 16 + 4 t of these rows
 *   b[0], b[1]    bytes 4 t of row g, then bytes 16 + 4 t of this row
 *   d             columns 2 t and 2 t + 1 of row g, then of row g + 8
 *   a_scales      if t is 0, the scales of row g of A in the lowest bytes; if t is 1, of row g + 8
 *   b_scales      if t is 0, the scales of row g of B in the lowest bytes */
#define PTX_MMA_SCALED(FORM, d, a, b, a_scales, b_scales)                                          \
    asm("mma.sync.aligned." FORM " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                 \
        "{%0, %1, %2, %3}, %10, {0, 0}, %11, {0, 0};"                                              \
        : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                                   \
        : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]),            \
          "r"(a_scales), "r"(b_scales))

#endif
