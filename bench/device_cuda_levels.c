#include "device_cuda.h"

/* Lists the typical error (root mean square of the relative errors) of each kernel family on a
 * Hopper GPU. `level` is this error divided by that of a model that adds in the order and with the
 * precision of the family. The other fields describe the model (family_level.h). Each level is the
 * largest that was found on the emulated GPU, whose tensor cores give the bits of an H200, for K
 * from 32 to 8192. If the model rounds exactly as the kernel does, the quotient is 1, and the level
 * in the table is 1.01. Kernels for Blackwell GPUs have levels only for simulated GPUs
 * (device_sim_cuda.c). */
const bench_family_level bench_cuda_levels[] = {
    {"cuda_sm90_small_m", .way = BENCH_IN_COLUMNS, .unit = 16, .scaled_segment = 128,
     .k_parts = true, .spread = true, .fraction = 25, .level = 1.24},
#include "device_cuda_levels.def"
    {"cuda_sm80_bf16", .way = BENCH_IN_STEPS, .unit = 16, .spread = true, .run = 8, .joins = true,
     .fraction = 25, .level = 1.01},
    {0},
};
