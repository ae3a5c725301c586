/* Implements the simulated NVIDIA GPUs whose times come from the simulator's time model, i.e. a
 * B200 and an H200 (docs/SIMULATOR.md), as devices of bench. */
#include "device_sim_cuda.h"
#include "device_sim_model.h"

static bench_sim_model model;

static void *open_modelled(const char *name) {
    void *state = bench_sim_cuda_open(name);
    if (!state || bench_sim_find_model(&model, bench_sim_cuda_soname)) return state;
    bench_cuda_close(state);
    return NULL;
}

/* Names two modes of the simulator's time model. In the mode UNTIMED, the simulator times no
 * launch. In the mode TIMED_SAMPLE, it times each launch and executes only the thread blocks that
 * the model needs, so the results are incomplete. bench validates the results of a complete run
 * before. */
enum { UNTIMED = 0, TIMED_SAMPLE = 2 };

static bool start_time(void *state) {
    model.set_mode(TIMED_SAMPLE);
    return bench_cuda_start_time(state);
}

static bool finish_time(void *state, double *seconds) {
    const bool done = bench_cuda_finish_time(state, seconds);
    model.set_mode(UNTIMED);
    return done;
}

static bool count(void *state, size_t launch, bench_counters *c) {
    (void)state;
    return bench_sim_count(&model, 1, launch, c);
}

const bench_device_kind bench_device_sim_cuda_model = {
    .name = "sim",
    .known = "b200",
    .known_of = bench_sim_cuda_known_of,
    .models = "sm_90a|sm_100",
    .kernels = "cuda",
    .is_simulated = true,
    .is_model = true,
    .times_without_results = true,
    .levels = bench_sim_cuda_levels,
    .open = open_modelled,
    BENCH_OPERATIONS(cuda),
    .start_time = start_time,
    .finish_time = finish_time,
    .cache_bytes = bench_sim_cuda_cache_bytes,
    .count = count,
    .count_opcodes = bench_sim_count_opcodes,
    .get_opcode = bench_sim_cuda_get_opcode,
};
