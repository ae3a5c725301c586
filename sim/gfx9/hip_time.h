/* Declares the simulated clock that the time model advances and that events record, and the
 * function that tells whether the time model is on. */
#ifndef SIM_GFX9_HIP_TIME_H
#define SIM_GFX9_HIP_TIME_H
#include "hip.h"
#include "sim.h"

/* Returns how the time model treats launches (enum gfx9_timed). */
enum gfx9_timed hip_time_mode(void);
/* Returns the time in seconds that launches, copies and fills have taken in the time model. */
double hip_clock(void);
/* Advances the model's clock by the time of a launch of the kernel `name`. Stores the launch's
 * times, so that bsmm_sim_times and bsmm_sim_stalls can return them. */
void hip_keep_times(const char *name, const gfx9_launch *launch);
/* Advances the model's clock by the time in which the current device moves `bytes` bytes of device
 * memory. */
void hip_add_traffic(double bytes);
#endif
