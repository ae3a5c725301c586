/* Declares what two kinds of simulated NVIDIA GPUs share: those whose times come from a time model,
 * and those without a time model. */
#ifndef BENCH_DEVICE_SIM_CUDA_H
#define BENCH_DEVICE_SIM_CUDA_H

#include "device_cuda.h"

extern const char bench_sim_cuda_soname[];
extern const bench_family_level bench_sim_cuda_levels[];
void *bench_sim_cuda_open(const char *name);
const char *bench_sim_cuda_known_of(const char *device);
uint64_t bench_sim_cuda_cache_bytes(const void *state);
int bench_sim_cuda_get_opcode(unsigned number, const char **opcode, uint64_t *count);

#endif
