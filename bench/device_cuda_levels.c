#include "device_cuda.h"

/* Lists the typical error (root mean square of the relative errors) of each kernel family on an
 * H200. `level` is this error divided by that of a model that adds in the order and with the
 * precision of the family. The other fields describe the model (family_level.h). Kernels for
 * Blackwell GPUs have levels on their simulator alone (device_sim_cuda.c). */
const bench_family_level bench_cuda_levels[] = {
    {"cuda_sm90_small_m", .unit = 16, .k_parts = true, .spread = true, .fraction = 25,
     .exact_in_bf16 = true, .level = 1.1},
    {"cuda_sm90a_mixed", .unit = 16, .k_parts = true, .spread = true, .fraction = 25,
     .exact_in_bf16 = true, .level = 1.1},
    {"cuda_sm90a_fp8", .unit = 32, .segment = 128, .fraction = 13, .level = 0.97},
    {"cuda_sm90a_fold", .unit = 32, .segment = 128, .fraction = 13, .level = 1.01},
    {"cuda_sm90a_bf16", .unit = 16, .k_parts = true, .fraction = 25, .exact_in_bf16 = true,
     .level = 1.43},
    {"cuda_sm80_bf16", .unit = 16, .fraction = 25, .exact_in_bf16 = true, .level = 1.06},
    {0},
};
