/* Every entry that fake_cuda.c does not define. */
#include "fake_cuda.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { CUDA_ERROR_NOT_SUPPORTED = 801 };

#define ENTRY(name, symbol, parameters)                                                            \
    __attribute__((weak, visibility("default"))) CUresult symbol parameters {                      \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
#include "cuda/driver.def"
#undef ENTRY
