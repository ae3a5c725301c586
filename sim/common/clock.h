/* Declares what the time models of both simulators share. One part is the simulated clock.
 * Launches, copies and fills advance it, and events record its time. The other part is the times of
 * the last launches. */
#ifndef SIM_COMMON_CLOCK_H
#define SIM_COMMON_CLOCK_H
#include <stddef.h>

/* These values say which launches the time model times. With TIMING_SAMPLE, a launch executes only
 * the thread blocks that the model needs, so its results are incomplete. */
enum sim_timed { TIMING_OFF, TIMING_ALL, TIMING_SAMPLE };
/* Returns the mode of the time model, i.e. whether it times launches. */
enum sim_timed sim_time_mode(void);
/* Returns the simulated time in seconds, i.e. the sum of the times of all launches, copies and
 * fills so far. */
double sim_clock(void);
void sim_advance_clock(double seconds);
/* Returns the time in seconds that an event records. It is the simulated time, or the computer's
 * clock if the time model is off. */
double sim_event_time(void);

enum { STALLS = 5, HOT_LINES = 16 };
/* Describes a line of source at which waves wait, with the cycles of waiting for each cause.
 * `place` names the line, e.g. "gemm.c:12", or holds the text of the instruction if its line is
 * unknown. */
typedef struct {
    char place[64];
    double stalls[STALLS];
} sim_hot;
/* Writes the source line of instruction number `number` of `code` to the buffer `place` of `bytes`
 * bytes. */
typedef void sim_place(const void *code, size_t number, char *place, size_t bytes);
/* Finds the HOT_LINES source lines at which waves wait longest, and writes them to the array `to`,
 * the longest wait first. stalls[k] has the cycles of waiting at instruction k for each cause, and
 * `count` is the number of instructions. */
void sim_hottest(const void *code, size_t count, sim_place *place, double (*stalls)[STALLS],
                 sim_hot *to);

/* Holds what bsmm_sim_times and bsmm_sim_stalls return for one launch of the kernel `name`.
 * times[0] is the duration of the launch in seconds. */
typedef struct {
    const char *name;
    const double *times;
    size_t count;
    const sim_hot *hot; /* `hot` points to an array of HOT_LINES lines. */
} sim_timed_launch;
void sim_keep_launch(const sim_timed_launch *launch);

#define SIM_EXPORT __attribute__((visibility("default")))
/* Turns the time model on (1) or off (0) for later launches. With 2, a launch executes only the
 * thread blocks that the model needs. Until the first call, the environment variable BSMM_SIM_TIME
 * decides. */
SIM_EXPORT void bsmm_sim_time(int mode);
/* Returns the times of an earlier timed launch. `back` is the number of timed launches after that
 * launch, so 0 means the last one. Writes the kernel's name to `name`, and the first `count` fields
 * of gfx9_times (gfx9/sim.h) or ptx_times (ptx/sim.h) to `times`. Returns 0 if the launch is not
 * among the last 64 timed launches. */
SIM_EXPORT int bsmm_sim_times(unsigned back, char *name, size_t name_bytes, double *times,
                              size_t count);
/* The simulator lists the source lines of a launch, sorted by the cycles for which waves (or warps)
 * wait at them, the longest wait first. This function returns one entry of such a list. `back`
 * selects the launch: 0 is the last timed launch, 1 is the one before, and so on. `number` is the
 * number of the entry. The function writes the source line to `place`, or the text of the
 * instruction if the line is unknown. It writes the cycles of waiting to `cycles`, separately for
 * the first `count` causes of waits, in the order of the launch's times. It returns 0 if there is
 * no such entry. */
SIM_EXPORT int bsmm_sim_stalls(unsigned back, unsigned number, char *place, size_t place_bytes,
                               double *cycles, size_t count);
#endif
