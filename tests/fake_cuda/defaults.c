/* Every entry that fake_cuda.c does not define says that it cannot: one function under all names.
 */
enum { CUDA_ERROR_NOT_SUPPORTED = 801 };

int fake_cuda_refuse(void);
int fake_cuda_refuse(void) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define ENTRY(name, symbol, parameters)                                                            \
    int symbol(void) __attribute__((weak, alias("fake_cuda_refuse"), visibility("default")));
#include "cuda/runtime/driver.def"
#undef ENTRY
