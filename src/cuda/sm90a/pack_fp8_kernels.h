/* These kernels pack elements of 4, 6 and 8 bits to 8-bit floats (gpu/pack.h explains packing).
 * Memory bandwidth limits their speed: for 16 elements, they read and write 24 to 32 bytes. They
 * are compiled for sm_90a, because they use its conversion instructions, and because only GEMM
 * kernels for sm_90a multiply packed 8-bit floats.
 *
 * The two kernels in this file are for elements without e8m0 scales. They copy 8-bit elements
 * without changing them. pack_fp8.def lists the kernels for e8m0 scales, whose generated .cu file
 * begins by including this file. */
#ifndef BSMM_CUDA_SM90A_PACK_FP8_KERNELS_H
#define BSMM_CUDA_SM90A_PACK_FP8_KERNELS_H

#include "cuda/sm80/pack_fast.h"

#define NAME    pack_rows_8_fp8
#define BITS    8
#define OUT     8
#define BY_ROWS 1
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#define NAME    pack_columns_8_fp8
#define BITS    8
#define OUT     8
#define BY_ROWS 0
#define E8M0    0
#include "cuda/sm80/pack_narrow_body.h"

#endif
