/* Declares simulators of GPUs. A simulator is a library with the file name of a GPU driver, which
 * simulates GPUs of one or more models on the CPU (docs/SIMULATOR.md). */
#ifndef BSMM_GPU_SIMULATOR_H
#define BSMM_GPU_SIMULATOR_H

#include "base/base.h"

typedef struct bsmm_gpu_simulator {
    const char *file; /* `file` is the name of the library, for example "libamdhip64.so". */
    const char *gpus; /* `gpus` names the simulated GPUs in messages, for example "AMD GPUs". */
    /* `models` holds the names of the simulated models. NULL ends the list. */
    const char *const *models;
} bsmm_gpu_simulator;

/* This is the type of the function bsmm_sim_device. bsmm recognizes a simulator by this function,
 * because drivers of real GPUs lack it. For device number `number` of the model `model`, it returns
 * the ordinal by which the simulator's driver functions know this device, or -1 if there are too
 * many devices. */
typedef int bsmm_gpu_sim_device(const char *model, unsigned int number);

/* Returns the function bsmm_sim_device of an opened library, or NULL if the library is a real
 * driver. */
bsmm_gpu_sim_device *bsmm_gpu_simulator_device(void *handle);

/* Opens the simulator's library. The function first looks in folders next to the file that holds
 * bsmm's library or command (sim/, ../sim/ and bsmm/), then in the folder of an installation. Last,
 * it lets the dynamic linker find a library with this name, and uses that library only if it is the
 * simulator. Returns UNSUPPORTED if this processor cannot run the simulator, and NOT_FOUND if there
 * is none. */
bsmm_status bsmm_gpu_simulator_open(const bsmm_gpu_simulator *simulator, void **handle);

/* Finds the simulated device with this ordinal. With n models, it is device number ordinal / n of
 * model number ordinal % n. Writes its name, such as "sim:gfx950:1", to `name`, and the simulated
 * driver's number of the device to *number. Returns NOT_FOUND if there are too many devices. */
bsmm_status bsmm_gpu_simulator_find(const bsmm_gpu_simulator *simulator,
                                    bsmm_gpu_sim_device *sim_device, uint32_t ordinal, char *name,
                                    size_t size, int *number);

/* A program may open several devices of a model by their ordinals, but the list of devices shows
 * only device number 0 of each model. Returns NOT_FOUND unless the ordinal belongs to such a
 * device. */
bsmm_status bsmm_gpu_simulator_check_model(const bsmm_gpu_simulator *simulator, uint32_t ordinal);

#endif
