/* Reads the counters of launches and opcodes from the simulator of a device. */
#include "device_sim_model.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool find_entry(void *library, const char *name, void *entry) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(entry, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool bench_sim_find_model(bench_sim_model *model, const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    find_entry(library, "bsmm_sim_stalls", &model->get_stalls);
    return (find_entry(library, "bsmm_sim_time", &model->set_mode) &&
            find_entry(library, "bsmm_sim_times", &model->get_times)) ||
           bench_device_fail("%s has no time model: it is too old", name);
}

/* These are the indices of the fields of the simulator's gfx9_times (sim/gfx9/sim.h) or ptx_times
 * (sim/ptx/sim.h). */
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
    /* The value BYTES and the three values after it count the bytes that four levels of memory
     * move: L1, L2, the last-level cache and memory. */
    BYTES,
    STALLS = BYTES + 4,
    /* MATRIX_LOOP is a field of ptx_times only. */
    MATRIX_LOOP = STALLS + BENCH_WAITS,
    FIELDS
};

/* Reads the source lines at which the waves of a launch wait longest. `cycles` is the sum of the
 * cycles of all waves, by which the waits are divided. */
static void count_lines(const bench_sim_model *model, unsigned back, double cycles,
                        bench_counters *c) {
    c->line_count = 0;
    while (model->get_stalls && c->line_count < BENCH_COUNTED_LINES) {
        bench_line_waits *line = &c->lines[c->line_count];
        if (!model->get_stalls(back, (unsigned)c->line_count, line->place, sizeof line->place,
                               line->waits, BENCH_WAITS))
            break;
        for (int cause = 0; cause < BENCH_WAITS; cause++)
            line->waits[cause] /= cycles;
        c->line_count++;
    }
}

bool bench_sim_count(const bench_sim_model *model, int matrix_units, size_t launch,
                     bench_counters *c) {
    double t[FIELDS] = {0};
    unsigned launches = 0;
    while (model->get_times(launches, NULL, 0, t, FIELDS))
        launches++;
    if (launch >= launches) return false;
    const unsigned back = launches - 1 - (unsigned)launch;
    model->get_times(back, c->kernel, sizeof c->kernel, t, FIELDS);
    const double cycles = t[REPLAYED] * t[UNITS];
    double *to = c->values;
    to[BENCH_COUNTER_seconds] = t[SECONDS], to[BENCH_COUNTER_cycles] = t[CYCLES];
    to[BENCH_COUNTER_waves] = t[WAVES];
    to[BENCH_COUNTER_matrix_busy] = t[MATRIX] / (cycles * matrix_units);
    to[BENCH_COUNTER_matrix_loop] = t[MATRIX_LOOP] > 0 ? t[MATRIX] / t[MATRIX_LOOP] : 0;
    to[BENCH_COUNTER_shared_busy] = t[SHARED] / cycles;
    to[BENCH_COUNTER_shared_conflicts] = t[SHARED] > 0 ? t[CONFLICTS] / t[SHARED] : 0;
    for (int level = 0; level < 4; level++)
        to[BENCH_COUNTER_l1_bytes + level] = t[BYTES + level] * t[LAUNCHED] / t[GROUPS];
    for (int cause = 0; cause < BENCH_WAITS; cause++)
        to[BENCH_COUNTER_wait_memory + cause] = t[STALLS + cause] / (cycles * t[WAVES]);
    count_lines(model, back, cycles * t[WAVES], c);
    return true;
}

/* Sets the environment variable BSMM_SIM_FIDELITY, unless it is already set. The simulators count
 * opcodes if it is set. Its value names the file to which they write the counts; if it is empty,
 * they write no file. */
void bench_sim_count_opcodes(void) {
    setenv("BSMM_SIM_FIDELITY", "", 0);
}

int bench_sim_get_opcode(const char *library, unsigned number, const char **opcode,
                         uint64_t *count) {
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    int (*get)(unsigned, const char **, uint64_t *);
    return find_entry(opened, "bsmm_sim_fidelity", &get) ? get(number, opcode, count) : -1;
}
