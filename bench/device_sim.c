/* Simulated AMD GPUs as devices of bench, through the simulator's libamdhip64.so. The measured time
 * is that of the simulation on the processor. It says nothing about the time on a GPU. */
#include "device_hip.h"

static void *open_simulator(const char *name) {
    static const char *const libraries[] = {"libamdhip64.so", NULL};
    return bench_hip_open(name, libraries);
}

/* The simulated GPU keeps nothing in a cache between launches, so a few sets of operands
 * suffice. */
static uint64_t cache_bytes(const void *state) {
    (void)state;
    return 0;
}

const bench_device_kind bench_device_sim = {
    .name = "sim",
    .known = "mi355x",
    .has_models = true,
    .open = open_simulator,
    BENCH_HIP_OPERATIONS,
    .cache_bytes = cache_bytes,
};
