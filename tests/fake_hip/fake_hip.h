/* This is a fake libamdhip64.so.6. Tests use it in place of a GPU and its driver to see which
 * functions of the driver the host code calls. */
#ifndef FAKE_HIP_H
#define FAKE_HIP_H

#include "../fake_driver/fake_driver.h"
#include "amdgpu/runtime/driver.h"

typedef struct fake_hip {
    fake_driver driver;
    /* The architecture is "gfx9" followed by the digit `minor`. `minor` is 4 at first, i.e. the
     * architecture is gfx94x. */
    int minor;
    /* `version` is the version of the runtime that the driver reports. 60300000 means 6.3. */
    int version;
    int current; /* `current` is the number of the current device. */
    int finds;   /* `finds` counts the searches for functions in modules. */
    /* These members hold the configuration of the last launch. */
    unsigned int grid[3], block[3], shared_bytes;
    void *stream;
} fake_hip;

/* The tests read and change this state of the fake driver by the symbol "fake_hip_state". */
extern fake_hip fake_hip_state;

#endif
