/* Implements simulated NVIDIA GPUs as devices of bench, through the simulator's libcuda.so.1. The
 * reported times are the times that the simulator needs. For devices with a time model see
 * device_sim_cuda_model.c. */
#include "device_sim_cuda.h"
#include "device_sim_model.h"

#include <dlfcn.h>
#include <string.h>

enum { POINTER_ATTRIBUTE_DEVICE = 9, PROBE_BYTES = 64 };

typedef int read_attribute(void *value, int attribute, uint64_t pointer);

/* `bench_sim_cuda_soname` holds the simulator's SONAME. NVIDIA's driver has the same file name, but
 * another SONAME. */
const char bench_sim_cuda_soname[] = "libbsmm_sim_cuda.so.1";

/* Opens the device that owns `probe`, which is memory that the bsmm library has allocated. */
static void *open_owner(const void *probe) {
    void *library = dlopen(bench_sim_cuda_soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "cuPointerGetAttribute") : NULL;
    read_attribute *read;
    int ordinal = 0;
    memcpy(&read, &symbol, sizeof read);
    if (symbol && read(&ordinal, POINTER_ATTRIBUTE_DEVICE, (uintptr_t)probe) == 0)
        return bench_cuda_open(library, ordinal);
    bench_device_fail("%s is not loaded or too old", bench_sim_cuda_soname);
    return NULL;
}

void *bench_sim_cuda_open(const char *name) {
    void *probe;
    if (bsmm_allocate_memory(name, PROBE_BYTES, &probe) != BSMM_OK) {
        bench_device_fail("%s", bsmm_error_message());
        return NULL;
    }
    void *state = open_owner(probe);
    bsmm_free_memory(name, probe);
    return state;
}

const char *bench_sim_cuda_known_of(const char *device) {
    return strstr(device, "sm_100") ? "b200" : strstr(device, "sm_120") ? "rtx5090" : "h200";
}

/* The simulator has no caches, so bench needs only one copy of the operands. */
uint64_t bench_sim_cuda_cache_bytes(const void *state) {
    (void)state;
    return 0;
}

/* Lists the typical errors of kernel families. The fields before `level` describe how a family adds
 * (family_level.h). Each level is the largest that was found on the simulator, for K from 32 to
 * 1024. For GPUs whose way of adding is not known, the simulator rounds the sum of an instruction's
 * products once (docs/SIMULATOR.md). Real Blackwell GPUs may round differently, and none has been
 * measured. */
const bench_family_level bench_sim_cuda_levels[] = {
    {"cuda_sm100f_scaled_small_m", .unit = 32, .k_parts = true, .level = 1.03},
    {"cuda_sm100f_scaled", .unit = 32, .k_parts = true, .level = 1.01},
    {"cuda_sm100f_fp8", .unit = 32, .segment = 128, .level = 1.01},
    {"cuda_sm100f_wide_groups", .way = BENCH_IN_K_BLOCKS, .unit = 16, .group = 128,
     .takes_f16 = true, .generic = "cuda_sm80_bf16", .level = 1.01},
    {"cuda_sm120f_scaled", .unit = 32, .level = 1.01},
    {"cuda_sm100f_wide", .way = BENCH_IN_K_BLOCKS, .unit = 16, .takes_f16 = true,
     .generic = "cuda_sm80_bf16", .level = 1.02},
    {"cuda_sm90_small_m", .device = "sim:sm_90a", .way = BENCH_IN_COLUMNS, .unit = 16,
     .scaled_segment = 128, .k_parts = true, .spread = true, .fraction = 25, .level = 1.24},
    {"cuda_sm90_small_m", .way = BENCH_IN_COLUMNS, .unit = 16, .scaled_segment = 128,
     .k_parts = true, .spread = true, .level = 1.24},
#include "device_cuda_levels.def"
    {"cuda_sm80_bf16", .device = "sim:sm_90a", .way = BENCH_IN_STEPS, .unit = 16, .spread = true,
     .run = 8, .joins = true, .fraction = 25, .level = 1.01},
    {"cuda_sm80_bf16", .way = BENCH_IN_STEPS, .unit = 16, .spread = true, .run = 8, .joins = true,
     .level = 1.01},
    {0},
};

int bench_sim_cuda_get_opcode(unsigned number, const char **opcode, uint64_t *count) {
    return bench_sim_get_opcode(bench_sim_cuda_soname, number, opcode, count);
}

const bench_device_kind bench_device_sim_cuda = {
    .name = "sim",
    .known = "b200",
    .known_of = bench_sim_cuda_known_of,
    .models = "sm_80|sm_90a|sm_100|sm_120",
    .kernels = "cuda",
    .is_simulated = true,
    .levels = bench_sim_cuda_levels,
    .open = bench_sim_cuda_open,
    BENCH_OPERATIONS(cuda),
    .start_time = bench_cuda_start_time,
    .finish_time = bench_cuda_finish_time,
    .cache_bytes = bench_sim_cuda_cache_bytes,
    .count_opcodes = bench_sim_count_opcodes,
    .get_opcode = bench_sim_cuda_get_opcode,
};
