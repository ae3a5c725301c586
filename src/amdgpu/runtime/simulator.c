/* Finds the simulator's libamdhip64.so. */
#include "amdgpu/runtime/simulator.h"

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* dladdr */
#endif
#include "base/base.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Below the folder of the library or the command: of a build, then of an installation. */
static const char *const folders[] = {"sim", "../sim", "bsmm", BSMM_SIM_FROM_BIN};

enum { MOST_PATH = 4096 };

/* A driver of AMD's own would not do: the simulator is known by an entry that only it has. */
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

/* The file that holds this function is the library's, or the program's where that is linked with
 * the static library: its name may then lack the folder, which the process's own link has. */
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
