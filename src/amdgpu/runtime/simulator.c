/* Finds the library that simulates AMD GPUs. It has the name of HIP's driver, libamdhip64.so. */
#include "amdgpu/runtime/simulator.h"

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* for dladdr */
#endif
#include "base/base.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The folders that may hold the simulator, relative to the folder of the library or command: first
 * those of a build, then those of an installation. */
static const char *const folders[] = {"sim", "../sim", "bsmm", BSMM_SIM_FROM_BIN};

enum { MOST_PATH = 4096 };

/* Opens a library and closes it again if it is not the simulator. AMD's own driver has the same
 * file name. Only the simulator has the function bsmm_sim_device. */
static void *open_simulator(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle || dlsym(handle, "bsmm_sim_device")) return handle;
    dlclose(handle);
    return NULL;
}

static void *open_below(const char *file) {
    const char *slash = strrchr(file, '/');
    char path[MOST_PATH + 64];
    for (size_t i = 0; slash && i < BSMM_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%.*s/%s/libamdhip64.so", (int)(slash - file), file,
                 folders[i]);
        void *handle = open_simulator(path);
        if (handle) return handle;
    }
    return NULL;
}

/* Opens the simulator. dladdr gives the file that holds this function. That file is bsmm's shared
 * library, or the program if it is linked with the static library. The name of a program may lack
 * its folder, but the link /proc/self/exe has it. */
void *bsmm_hip_simulator_open(void) {
    static const char here = 0;
    char program[MOST_PATH];
    Dl_info info;
    void *handle = NULL;
    if (dladdr(&here, &info) && info.dli_fname) handle = open_below(info.dli_fname);
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!handle && length > 0) {
        program[length] = 0;
        handle = open_below(program);
    }
    return handle ? handle : open_simulator("libamdhip64.so");
}
