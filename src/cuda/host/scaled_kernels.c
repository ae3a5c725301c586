#include "cuda/host/scaled_kernels.h"

#include "cuda/sm100f/scaled_params.h"

#define COLUMNS(...)
#define TILE(name, operands, kind, block, packed, is_signed, ctas, small_m, groups)                \
    [operands][(small_m) ? BSMM_SCALED_FEW_ROWS : (ctas)-1] = {                                    \
        {"sm100f/" #name, #name, BSMM_SCALED_KERNEL_SHARED(block, packed, ctas, small_m, groups)}, \
        BSMM_SCALED_KERNEL_THREADS(is_signed, groups)},

const bsmm_scaled_kernel bsmm_scaled_kernels[BSMM_SCALED_OPERANDS][BSMM_SCALED_SHARINGS] = {
#include "cuda/sm100f/tiles.def"
};
