/* Declares what the time models of both simulators share: the simulated clock that launches, copies
 * and fills advance and that events record, and the times of the last launches. */
#ifndef SIM_COMMON_CLOCK_H
#define SIM_COMMON_CLOCK_H
#include <stddef.h>

/* Tells whether the time model times a launch. With TIMING_SAMPLE the simulator executes only the
 * thread blocks that the model needs, so the launch's results are incomplete. */
enum sim_timed { TIMING_OFF, TIMING_ALL, TIMING_SAMPLE };
/* Returns how the time model treats launches. */
enum sim_timed sim_time_mode(void);
/* Returns the time in seconds that launches, copies and fills have taken in the time model. */
double sim_clock(void);
void sim_advance_clock(double seconds);
/* Returns the time in seconds that an event records: the clock of the time model, or the
 * computer's clock if the model is off. */
double sim_event_time(void);

enum { STALLS = 5, HOT_LINES = 16 };
/* Holds the cycles in which waves wait at a line of source, for each cause. `place` is the line, or
 * another name of the instruction if its line is unknown. */
typedef struct {
    char place[64];
    double stalls[STALLS];
} sim_hot;
/* Writes the place of instruction `number` of `code` to `place`, which has `bytes` bytes. */
typedef void sim_place(const void *code, size_t number, char *place, size_t bytes);
/* Writes to to[HOT_LINES] the places at which waves wait longest, the longest first. stalls[k] has
 * the cycles in which waves wait at instruction k, and `count` is the number of instructions. */
void sim_hottest(const void *code, size_t count, sim_place *place, double (*stalls)[STALLS],
                 sim_hot *to);

/* Holds what bsmm_sim_times and bsmm_sim_stalls return of a launch of the kernel `name`. times[0]
 * is the time of the launch in seconds, by which the clock advances. */
typedef struct {
    const char *name;
    const double *times;
    size_t count;
    const sim_hot *hot; /* Points to HOT_LINES lines. */
} sim_timed_launch;
void sim_keep_launch(const sim_timed_launch *launch);

#define SIM_EXPORT __attribute__((visibility("default")))
/* Turns the time model on (1) or off (0) for later launches. With 2, a launch executes only the
 * thread blocks that the model needs. The default is the environment variable BSMM_SIM_TIME. */
SIM_EXPORT void bsmm_sim_time(int mode);
/* Returns the time of a launch that the time model has timed. The launch is the one that happened
 * `back` launches before the last one. Writes the kernel's name to `name`, and the first `count`
 * fields of gfx9_times (gfx9/sim.h) or ptx_times (ptx/sim.h) to `times`. Returns 0 if the launch is
 * not among the last 64 timed launches. */
SIM_EXPORT int bsmm_sim_times(unsigned back, char *name, size_t name_bytes, double *times,
                              size_t count);
/* Returns one of the lines of source at which the waves (or warps) of a launch wait longest. The
 * launch is the one that happened `back` launches before the last one. Line 0 has the longest wait.
 * Writes the line to `place`, or the text of an instruction without a line. Writes the cycles of
 * the first `count` causes to `cycles`, in the order of the stalls in the launch's times. Returns 0
 * if the launch has no line `number`. */
SIM_EXPORT int bsmm_sim_stalls(unsigned back, unsigned number, char *place, size_t place_bytes,
                               double *cycles, size_t count);
#endif
