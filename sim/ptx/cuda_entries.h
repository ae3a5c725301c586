/* Declares the functions of the simulated driver that other files of the simulator call. */
#ifndef SIM_PTX_CUDA_ENTRIES_H
#define SIM_PTX_CUDA_ENTRIES_H
#include "cuda.h"

CU CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CU CUresult cuMemFree_v2(CUdeviceptr at);
CU CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s);
CU CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                               void **values);
CU CUresult cuModuleUnload(CUmodule module);
CU CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module);
CU CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CU CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *size, CUmodule module, const char *name);
CU CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value);
CU CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f);
CU CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size);
CU CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction f, int threads,
                                                        size_t shared);
CU CUresult cuStreamIsCapturing(CUstream s, int *status);
#endif
