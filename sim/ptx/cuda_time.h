/* Declares the simulated clock that the time model advances and that events record, and the
 * function that tells whether the time model is on. */
#ifndef SIM_PTX_CUDA_TIME_H
#define SIM_PTX_CUDA_TIME_H
#include "cuda.h"
#include "sim.h"

/* Returns how the time model treats launches (enum ptx_timed). */
enum ptx_timed sim_time_mode(void);
/* Returns the time in seconds that launches, copies and fills have taken in the time model. */
double sim_clock(void);
/* Advances the model's clock by the time of a launch of the kernel `name`, and stores the launch's
 * times, so that bsmm_sim_times can return them. */
void sim_keep_times(const char *name, const ptx_times *times);
/* Advances the model's clock by the time in which the current device moves `bytes` bytes of device
 * memory. */
void sim_add_traffic(double bytes);
#endif
