/* Declares those entries of the driver that other files of the simulator call. */
#ifndef SIM_PTX_CUDA_ENTRIES_H
#define SIM_PTX_CUDA_ENTRIES_H
#include "cuda.h"

CU CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                               void **values);
CU CUresult cuModuleUnload(CUmodule module);
CU CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CU CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *size, CUmodule module, const char *name);
CU CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value);
CU CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f);
#endif
