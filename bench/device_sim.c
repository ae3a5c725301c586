/* A simulated AMD GPU, through the simulator's libamdhip64.so. Its times come from the simulator's
 * time model (docs/SIMULATOR.md). */
#include "device_hip.h"

#include <dlfcn.h>
#include <string.h>

static const char *const libraries[] = {"libamdhip64.so", NULL};

/* What the simulator does with launches: it times none, or it times each and executes only the
 * workgroups that its model needs. */
enum { UNTIMED = 0, TIMED_SAMPLE = 2 };

/* Switches the simulator's time model. It is the same for all devices of the process. */
static void (*set_time_mode)(int mode);

static bool find_time_mode(void) {
    void *library = dlopen(libraries[0], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "bsmm_sim_time") : NULL;
    if (!symbol) return bench_device_fail("%s has no bsmm_sim_time: it is too old", libraries[0]);
    memcpy(&set_time_mode, &symbol, sizeof symbol);
    return true;
}

static void *open_simulator(const char *name) {
    void *state = bench_hip_open(name, libraries);
    if (!state || find_time_mode()) return state;
    bench_hip_close(state);
    return NULL;
}

/* Timed work is incomplete, because the simulator executes a sample of it. Its results were
 * validated before, in a run that is not timed. */
static bool start_time(void *state) {
    set_time_mode(TIMED_SAMPLE);
    return bench_hip_start_time(state);
}

static bool finish_time(void *state, double *seconds) {
    const bool done = bench_hip_finish_time(state, seconds);
    set_time_mode(UNTIMED);
    return done;
}

static const char *known_of(const char *device) {
    return strstr(device, "gfx942") ? "mi300x" : "mi355x";
}

/* No cache keeps anything between launches, so one set of operands is enough. */
static uint64_t cache_bytes(const void *state) {
    (void)state;
    return 0;
}

const bench_device_kind bench_device_sim = {
    .name = "sim",
    .known = "mi355x",
    .known_of = known_of,
    .has_models = true,
    .is_model = true,
    .open = open_simulator,
    BENCH_HIP_OPERATIONS,
    .start_time = start_time,
    .finish_time = finish_time,
    .cache_bytes = cache_bytes,
};
