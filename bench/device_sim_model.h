/* Declares what bench reads from the simulator of a device: the counts of opcodes, and the times of
 * the time model. The simulators of AMD's and NVIDIA's GPUs have the same functions
 * (sim/common/fidelity.h and clock.h). */
#ifndef BENCH_DEVICE_SIM_MODEL_H
#define BENCH_DEVICE_SIM_MODEL_H

#include "device.h"

/* This struct points to functions of the simulator. */
typedef struct bench_sim_model {
    /* `set_mode` sets the mode of the time model (bsmm_sim_time) for all devices of the process. */
    void (*set_mode)(int mode);
    /* `get_times` returns the times of a timed launch. `back` selects the launch: 0 is the last
     * timed launch, 1 is the one before it, and so on. */
    int (*get_times)(unsigned back, char *name, size_t name_bytes, double *times, size_t count);
    /* The simulator lists the source lines of a launch at which waves wait, sorted by the cycles of
     * waiting, the longest wait first. `get_stalls` gives entry `number` of this list. It writes
     * the source line to `place` and the cycles of waiting for each of `count` causes to `cycles`,
     * and returns 0 if there is no such entry. `back` selects the launch: 0 is the last timed
     * launch, 1 is the one before it, and so on. `get_stalls` is NULL if the simulator does not
     * record waits. */
    int (*get_stalls)(unsigned back, unsigned number, char *place, size_t place_bytes,
                      double *cycles, size_t count);
} bench_sim_model;

/* Finds the functions of the simulator `library`, which is loaded already. */
bool bench_sim_find_model(bench_sim_model *model, const char *library);
/* Returns the counters of a launch. Fractions, such as the fraction of cycles in which a unit is
 * busy, refer to the workgroups that the model has timed. Counts of bytes are extrapolated to all
 * workgroups of the launch. `matrix_units` is the number of matrix units of a compute unit. */
bool bench_sim_count(const bench_sim_model *model, int matrix_units, size_t launch,
                     bench_counters *c);

/* Makes the simulators count the opcodes that they execute. bench must call this function before a
 * simulator loads kernels. */
void bench_sim_count_opcodes(void);
/* Implements get_opcode (device.h) for devices of the simulator `library`. */
int bench_sim_get_opcode(const char *library, unsigned number, const char **opcode,
                         uint64_t *count);

#endif
