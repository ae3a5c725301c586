/* Implements libraries of kernels, which newer programs use in place of modules. The simulator
 * loads a library for the device of the current context. A CUlibrary is therefore a CUmodule here,
 * and a CUkernel is a CUfunction. */
#include "cuda.h"
#include "cuda_entries.h"

enum { LOADED_EAGERLY = 1 };

/* NOLINTNEXTLINE(readability-function-size): CUDA's signature */
CU CUresult cuLibraryLoadData(CUmodule *library, const void *code, int *options, void **values,
                              unsigned count, const int *library_options,
                              void *const *library_values, unsigned library_count) {
    (void)library_options, (void)library_values, (void)library_count;
    return cuModuleLoadDataEx(library, code, count, options, values);
}
CU CUresult cuLibraryUnload(CUmodule library) {
    return cuModuleUnload(library);
}
CU CUresult cuLibraryGetModule(CUmodule *module, CUmodule library) {
    if (!module || !library) return sim_fail(CUDA_ERROR_INVALID_VALUE, "module or library is NULL");
    *module = library;
    return CUDA_SUCCESS;
}
CU CUresult cuLibraryGetKernel(CUfunction *kernel, CUmodule library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}
CU CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *size, CUmodule library, const char *name) {
    return cuModuleGetGlobal_v2(at, size, library, name);
}

CU CUresult cuLibraryGetKernelCount(unsigned *count, CUmodule library) {
    return cuModuleGetFunctionCount(count, library);
}

CU CUresult cuKernelGetFunction(CUfunction *function, CUfunction kernel) {
    if (!function || !kernel)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "function or kernel is NULL");
    *function = kernel;
    return CUDA_SUCCESS;
}
CU CUresult cuKernelGetAttribute(int *value, int attribute, CUfunction kernel, CUdevice device) {
    return (void)device, cuFuncGetAttribute(value, attribute, kernel);
}
CU CUresult cuKernelSetAttribute(int attribute, int value, CUfunction kernel, CUdevice device) {
    return (void)device, cuFuncSetAttribute(kernel, attribute, value);
}

/* The simulator loads a module completely at once, so there is nothing left to load here. */
CU CUresult cuFuncLoad(CUfunction f) {
    return f ? CUDA_SUCCESS : sim_fail(CUDA_ERROR_INVALID_HANDLE, "function is NULL");
}
CU CUresult cuFuncIsLoaded(int *state, CUfunction f) {
    if (!state || !f) return sim_fail(CUDA_ERROR_INVALID_VALUE, "state or function is NULL");
    *state = LOADED_EAGERLY;
    return CUDA_SUCCESS;
}
CU CUresult cuModuleGetLoadingMode(int *mode) {
    if (!mode) return sim_fail(CUDA_ERROR_INVALID_VALUE, "mode is NULL");
    *mode = LOADED_EAGERLY;
    return CUDA_SUCCESS;
}
