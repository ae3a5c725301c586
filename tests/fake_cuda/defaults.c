/* Defines the driver functions that fake_cuda.c lacks. All of them return the error "not
 * supported". */
enum { CUDA_ERROR_NOT_SUPPORTED = 801 };

int fake_cuda_refuse(void);
int fake_cuda_refuse(void) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define ENTRY(name, symbol, parameters)                                                            \
    int symbol(void) __attribute__((weak, alias("fake_cuda_refuse"), visibility("default")));
#include "cuda/runtime/driver.def"
#undef ENTRY
