/* The generated .cu files of sm90a/small_m.def for Blackwell include this file before the kernels.
 * Rows of A are columns of the kernels' tiles. Blackwell has no wgmma, so these kernels multiply by
 * mma.sync for any number of columns. */
#ifndef BSMM_CUDA_SM100F_SMALL_M_KERNELS_H
#define BSMM_CUDA_SM100F_SMALL_M_KERNELS_H

#include "cuda/sm90a/small_m_params.h"

#undef BSMM_SMALL_M_WGMMA_COLUMNS
#define BSMM_SMALL_M_WGMMA_COLUMNS 128 /* All kernels have fewer columns, so none uses wgmma. */

#include "cuda/sm90a/small_m_kernels.h"

#endif
