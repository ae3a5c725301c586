/* These are the kernels of sm90a/small_m.cu for Blackwell. Blackwell has no wgmma, so these
 * kernels multiply by mma.sync for any number of columns. */
#include "cuda/sm90a/small_m_params.h"
#define SMALL_M_ONLY_MMA
#undef BSMM_SMALL_M_WGMMA_COLUMNS
#define BSMM_SMALL_M_WGMMA_COLUMNS 128 /* Kernels with fewer columns (all) do not use wgmma. */
#include "cuda/sm90a/small_m.cu"
