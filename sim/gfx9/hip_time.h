/* The clock of the time model, which events record, and the switch of the model. */
#ifndef SIM_GFX9_HIP_TIME_H
#define SIM_GFX9_HIP_TIME_H
#include "hip.h"
#include "sim.h"

/* Returns whether launches are timed. */
enum gfx9_timed hip_time_mode(void);
/* Returns the seconds that launches, copies and fills have taken in the model. */
double hip_clock(void);
/* Advances the clock by the time of a launch of the kernel `name`, and stores `times` for
 * bsmm_sim_times to return. */
void hip_keep_times(const char *name, const gfx9_times *times);
/* Advances the clock by the time in which the current device moves `bytes` bytes of its memory. */
void hip_add_traffic(double bytes);
#endif
