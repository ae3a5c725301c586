/* Declares functions that all files for NVIDIA GPUs as devices of bench share. */
#ifndef BENCH_DEVICE_CUDA_H
#define BENCH_DEVICE_CUDA_H

#include "device_driver.h"

extern const bench_queued_peer bench_cublaslt;
extern const bench_family_level bench_cuda_levels[];

/* Opens device number `ordinal` of a driver that is already loaded. */
void *bench_cuda_open(void *library, int ordinal);

BENCH_DECLARE_OPERATIONS(cuda);

bool bench_cuda_launch_empty(void *stream, size_t count);
size_t bench_cuda_count_launches(const bench_graph *graph);

#endif
