/* Simulators of GPUs. A simulator is a library with the file name of a GPU driver, which simulates
 * GPUs of one or more models on the CPU (docs/SIMULATOR.md). */
#ifndef BSMM_GPU_SIMULATOR_H
#define BSMM_GPU_SIMULATOR_H

#include "base/base.h"

typedef struct bsmm_gpu_simulator {
    const char *file; /* the name of the library, for example "libamdhip64.so" */
    const char *gpus; /* the GPUs that it simulates, for messages, for example "AMD GPUs" */
    const char *const *models; /* the names of the simulated models; NULL ends the list */
} bsmm_gpu_simulator;

/* The function of a simulator that returns the driver's number of device `number` of a model, or
 * -1 if there are too many devices. It is called bsmm_sim_device. Real drivers lack it. */
typedef int bsmm_gpu_sim_device(const char *model, unsigned int number);

/* Returns the function bsmm_sim_device of an opened library, or NULL if the library is a real
 * driver. */
bsmm_gpu_sim_device *bsmm_gpu_simulator_device(void *handle);

/* Opens the simulator. Looks next to the file that holds this library or command (in sim/, ../sim/
 * and bsmm/), then in the folder of an installation. Last, it tries the library that the dynamic
 * linker finds under the name, if that library is the simulator. Returns UNSUPPORTED if this
 * processor cannot run the simulator, and NOT_FOUND if there is none. */
bsmm_status bsmm_gpu_simulator_open(const bsmm_gpu_simulator *simulator, void **handle);

/* Finds the simulated device with this ordinal: device number ordinal / (count of models) of the
 * model ordinal % (count of models). Writes its name, such as "sim:gfx950:1", and the driver's
 * number of it. Returns NOT_FOUND if there are too many devices. */
bsmm_status bsmm_gpu_simulator_find(const bsmm_gpu_simulator *simulator,
                                    bsmm_gpu_sim_device *sim_device, uint32_t ordinal, char *name,
                                    size_t size, int *number);

/* Returns NOT_FOUND unless the ordinal is that of a device with number 0, i.e. of a model. The list
 * of devices shows one device of each model; programs may open more of them by number. */
bsmm_status bsmm_gpu_simulator_check_model(const bsmm_gpu_simulator *simulator, uint32_t ordinal);

#endif
