/* Where the simulator's libamdhip64.so is. */
#ifndef BSMM_AMDGPU_RUNTIME_SIMULATOR_H
#define BSMM_AMDGPU_RUNTIME_SIMULATOR_H

/* Opens the simulator: beside the file that holds this library or command (sim/, ../sim/, bsmm/, or
 * where an installation puts it), else the libamdhip64.so that the dynamic linker finds, if that is
 * the simulator. NULL: there is none. */
void *bsmm_hip_simulator_open(void);

#endif
