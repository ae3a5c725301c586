/* Finds the library that simulates AMD GPUs. It has the name of HIP's driver, libamdhip64.so. */
#ifndef BSMM_AMDGPU_RUNTIME_SIMULATOR_H
#define BSMM_AMDGPU_RUNTIME_SIMULATOR_H

/* Opens the simulator. Looks next to the file that holds this library or command (in sim/, ../sim/
 * and bsmm/), then in the folder of an installation. Last, it tries the libamdhip64.so that the
 * dynamic linker finds, if that file is the simulator. Returns NULL if there is no simulator. */
void *bsmm_hip_simulator_open(void);

#endif
