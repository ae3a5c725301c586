#include "device_cuda.h"

/* The levels are from results of an H200, for fifteen pairs of formats, K from 256 to 4096, and
 * operands with mixed signs, with one sign and with growing values. The order of sums of
 * cuda_sm90_small_m depends on N and K, so it has no level. */
const bench_family_level bench_cuda_levels[] = {
    {"cuda_sm90a_fp8", .unit = 32, .segment = 128, .fraction = 13, .level = 0.72},
    {"cuda_sm90a_fold", .unit = 32, .segment = 128, .fraction = 13, .level = 1.01},
    {"cuda_sm90a_bf16", .unit = 16, .fraction = 25, .exact_in_bf16 = true, .level = 1.01},
    {"cuda_sm80_bf16", .unit = 16, .fraction = 25, .exact_in_bf16 = true, .level = 1.05},
    {0},
};
