/* Implements simulated AMD GPUs as devices of bench, through the simulator's libamdhip64.so. Times
 * come from the simulator's time model (docs/SIMULATOR.md). */
#include "device_hip.h"

#include <dlfcn.h>
#include <string.h>

static const char *const libraries[] = {"libamdhip64.so", NULL};

/* Names two modes of the simulator's time model. UNTIMED times no launch. TIMED_SAMPLE times each
 * launch, and executes only the workgroups that the model needs. */
enum { UNTIMED = 0, TIMED_SAMPLE = 2 };

/* Points to the simulator's function that switches the time model of all devices of the process. */
static void (*set_time_mode)(int mode);
/* Points to the simulator's function bsmm_sim_times, which returns the times of a launch
 * (sim/gfx9/hip.h). */
static int (*get_times)(unsigned back, char *name, size_t name_bytes, double *times, size_t count);

/* Points to the simulator's function bsmm_sim_stalls, which returns where a launch's waves wait. */
static int (*get_stalls)(unsigned back, unsigned number, char *place, size_t place_bytes,
                         double *cycles, size_t count);

static bool find_entry(void *library, const char *name, void *entry) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(entry, &symbol, sizeof symbol);
    return symbol || bench_device_fail("%s has no %s: it is too old", libraries[0], name);
}

static bool find_time_model(void) {
    void *library = dlopen(libraries[0], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return find_entry(library, "bsmm_sim_time", &set_time_mode) &&
           find_entry(library, "bsmm_sim_times", &get_times) &&
           find_entry(library, "bsmm_sim_stalls", &get_stalls);
}

static void *open_simulator(const char *name) {
    void *state = bench_hip_open(name, libraries);
    if (!state || find_time_model()) return state;
    bench_hip_close(state);
    return NULL;
}

/* Starts a timed run. The simulator then executes only a sample of the workgroups, so the results
 * are incomplete. bench has validated the results in an earlier run. */
static bool start_time(void *state) {
    set_time_mode(TIMED_SAMPLE);
    return bench_hip_start_time(state);
}

static bool finish_time(void *state, double *seconds) {
    const bool done = bench_hip_finish_time(state, seconds);
    set_time_mode(UNTIMED);
    return done;
}

/* The indices of the fields of the simulator's gfx9_times (sim/gfx9/sim.h). */
enum {
    SECONDS,
    CYCLES,
    REPLAYED,
    ROUNDS,
    GROUPS,
    LAUNCHED,
    UNITS,
    WAVES,
    INSTRUCTIONS,
    MATRIX,
    SHARED,
    CONFLICTS,
    BYTES, /* There are four such fields, for L1, L2, the last-level cache and memory. */
    STALLS = BYTES + 4,
    FIELDS = STALLS + 5
};
enum { MATRIX_UNITS = 4 }; /* MATRIX_UNITS counts the matrix units of a compute unit. */

/* Reads the lines at which the waves of a launch wait longest. `cycles` counts the cycles of all
 * its waves. */
static void count_lines(unsigned back, double cycles, bench_counters *c) {
    c->line_count = 0;
    while (c->line_count < BENCH_COUNTED_LINES) {
        bench_line_waits *line = &c->lines[c->line_count];
        if (!get_stalls(back, (unsigned)c->line_count, line->place, sizeof line->place, line->waits,
                        BENCH_WAITS))
            break;
        for (int cause = 0; cause < BENCH_WAITS; cause++)
            line->waits[cause] /= cycles;
        c->line_count++;
    }
}

/* Returns the counters of a launch. Fractions, such as that of busy units, are those of the
 * workgroups that the model has replayed. Bytes are scaled to all workgroups of the launch. */
static bool count(void *state, size_t launch, bench_counters *c) {
    (void)state;
    double t[FIELDS];
    unsigned launches = 0;
    while (get_times(launches, NULL, 0, t, FIELDS))
        launches++;
    if (launch >= launches) return false;
    const unsigned back = launches - 1 - (unsigned)launch;
    get_times(back, c->kernel, sizeof c->kernel, t, FIELDS);
    const double cycles = t[REPLAYED] * t[UNITS];
    double *to = c->values;
    to[BENCH_COUNTER_seconds] = t[SECONDS], to[BENCH_COUNTER_cycles] = t[CYCLES];
    to[BENCH_COUNTER_waves] = t[WAVES];
    to[BENCH_COUNTER_matrix_busy] = t[MATRIX] / (cycles * MATRIX_UNITS);
    to[BENCH_COUNTER_shared_busy] = t[SHARED] / cycles;
    to[BENCH_COUNTER_shared_conflicts] = t[SHARED] > 0 ? t[CONFLICTS] / t[SHARED] : 0;
    for (int level = 0; level < 4; level++)
        to[BENCH_COUNTER_l1_bytes + level] = t[BYTES + level] * t[LAUNCHED] / t[GROUPS];
    for (int cause = 0; cause < FIELDS - STALLS; cause++)
        to[BENCH_COUNTER_wait_memory + cause] = t[STALLS + cause] / (cycles * t[WAVES]);
    count_lines(back, cycles * t[WAVES], c);
    return true;
}

static const char *known_of(const char *device) {
    return strstr(device, "gfx942") ? "mi300x" : "mi355x";
}

/* The model's caches are empty at the start of each launch, so one set of operands is enough. */
static uint64_t cache_bytes(const void *state) {
    (void)state;
    return 0;
}

/* Each level is the largest that tests/unit/test_cli_level.c found, with K from 256 to 1024. The
 * simulator adds products with K ascending (docs/SIMULATOR.md). AMD has not published how its GPUs
 * add, and none was measured, so the levels do not hold for real GPUs. */
static const bench_family_level levels[] = {
    {"hip_bf16", .unit = 1, .exact_in_bf16 = true, .level = 1.15},
    {"hip_gfx950_scaled", .unit = 1, .segment = 32, .level = 1.01},
    {"hip_cdna_fp8", .device = "sim:gfx942", .unit = 1, .segment = 128, .level = 0.9},
    {"hip_cdna_fp8", .device = "sim:gfx950", .unit = 1, .segment = 128, .level = 0.6},
    {0},
};

const bench_device_kind bench_device_sim = {
    .name = "sim",
    .known = "mi355x",
    .known_of = known_of,
    .models = "gfx",
    .kernels = "hip",
    .is_simulated = true,
    .is_model = true,
    .levels = levels,
    .open = open_simulator,
    BENCH_HIP_OPERATIONS,
    .start_time = start_time,
    .finish_time = finish_time,
    .cache_bytes = cache_bytes,
    .count = count,
};
