/* Implements simulated AMD GPUs as devices of bench, through the simulator's libamdhip64.so. Times
 * come from the simulator's time model (docs/SIMULATOR.md). */
#include "device_hip.h"
#include "device_sim_model.h"

#include <string.h>

static const char *const libraries[] = {"libamdhip64.so", NULL};

/* Names two modes of the simulator's time model. UNTIMED times no launch. TIMED_SAMPLE times each
 * launch, and executes only the workgroups that the model needs. */
enum { UNTIMED = 0, TIMED_SAMPLE = 2 };

static bench_sim_model model;

static void *open_simulator(const char *name) {
    void *state = bench_hip_open(name, libraries);
    if (!state || bench_sim_find_model(&model, libraries[0])) return state;
    bench_hip_close(state);
    return NULL;
}

/* Starts a timed run. The simulator then executes only a sample of the workgroups, so the results
 * are incomplete. bench has validated the results in an earlier run. */
static bool start_time(void *state) {
    model.set_mode(TIMED_SAMPLE);
    return bench_hip_start_time(state);
}

static bool finish_time(void *state, double *seconds) {
    const bool done = bench_hip_finish_time(state, seconds);
    model.set_mode(UNTIMED);
    return done;
}

enum { MATRIX_UNITS = 4 }; /* MATRIX_UNITS counts the matrix units of a compute unit. */

static bool count(void *state, size_t launch, bench_counters *c) {
    (void)state;
    return bench_sim_count(&model, MATRIX_UNITS, launch, c);
}

static const char *known_of(const char *device) {
    return strstr(device, "gfx942") ? "mi300x" : "mi355x";
}

/* The model's caches are empty at the start of each launch, so bench needs only one copy of the
 * operands. */
static uint64_t cache_bytes(const void *state) {
    (void)state;
    return 0;
}

/* Lists the typical errors of kernel families. The fields before `level` describe how a family adds
 * (family_level.h). Each level is the largest that was found on the simulator, for K from 32 to
 * 1024. The simulator adds products in the order of ascending K (docs/SIMULATOR.md). Real GPUs may
 * add in another order and have other levels, because AMD has not published how its GPUs add. */
static const bench_family_level levels[] = {
    {"hip_bf16", .way = BENCH_IN_STEPS, .unit = 8, .rounds_each = true, .spread = true, .run = 16,
     .runs = 2, .level = 1.02},
    {"hip_gfx950_scaled", .unit = 1, .segment = 32, .level = 1.14},
    {"hip_cdna_fp8", .device = "sim:gfx942", .unit = 32, .rounds_each = true, .segment = 128,
     .spread = true, .run = 32, .level = 1.1},
    {"hip_cdna_fp8", .device = "sim:gfx950", .unit = 1, .segment = 128, .block = 32, .level = 1.01},
    {"hip_cdna_small_m", .device = "sim:gfx950", .unit = 1, .block = 32, .k_parts = true,
     .row_scales_last = true, .scaled_bytes = true, .level = 1.01},
    {"hip_cdna_small_m", .device = "sim:gfx942", .unit = 32, .rounds_each = true, .k_parts = true,
     .row_scales_last = true, .spread = true, .run = 32, .fp8_pairs = true, .level = 1.01},
    {"hip_cdna_small_m", .device = "sim:gfx942", .unit = 16, .rounds_each = true, .k_parts = true,
     .row_scales_last = true, .spread = true, .run = 32, .splits_f16 = 2, .level = 1.01},
    {"hip_cdna_small_m", .device = "sim:gfx950", .unit = 32, .rounds_each = true, .k_parts = true,
     .row_scales_last = true, .spread = true, .run = 32, .splits_f16 = 1, .level = 1.01},
    {0},
};

static int get_opcode(unsigned number, const char **opcode, uint64_t *executed) {
    return bench_sim_get_opcode(libraries[0], number, opcode, executed);
}

const bench_device_kind bench_device_sim = {
    .name = "sim",
    .known = "mi355x",
    .known_of = known_of,
    .models = "gfx942|gfx950",
    .kernels = "hip",
    .is_simulated = true,
    .is_model = true,
    .levels = levels,
    .open = open_simulator,
    BENCH_OPERATIONS(hip),
    .start_time = start_time,
    .finish_time = finish_time,
    .cache_bytes = cache_bytes,
    .count = count,
    .count_opcodes = bench_sim_count_opcodes,
    .get_opcode = get_opcode,
};
