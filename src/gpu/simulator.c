/* Finds the libraries that simulate GPUs, and the simulated devices. */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* _GNU_SOURCE makes dlfcn.h declare dladdr. */
#endif
#include "gpu/simulator.h"

#include "base/cpu.h"
#include "gpu/records.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* These folders may hold a simulator. They are relative to the folder of bsmm's library or command.
 * The folders of a build tree come first, and those of an installation follow. */
static const char *const folders[] = {"sim", "../sim", "bsmm", BSMM_SIM_FROM_BIN};

enum { MOST_PATH = 4096 };

/* memcpy copies the address, because ISO C has no cast from dlsym's data pointer to a function
 * pointer. */
bsmm_gpu_sim_device *bsmm_gpu_simulator_device(void *handle) {
    void *symbol = dlsym(handle, "bsmm_sim_device");
    bsmm_gpu_sim_device *function;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Opens a library, and closes it again if it is not a simulator. The test is necessary because the
 * drivers of real GPUs have the same file names as simulators. */
static void *open_library(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle || bsmm_gpu_simulator_device(handle)) return handle;
    dlclose(handle);
    return NULL;
}

static void *open_below(const char *from, const char *file) {
    const char *slash = strrchr(from, '/');
    char path[MOST_PATH + 64];
    for (size_t i = 0; slash && i < BSMM_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%.*s/%s/%s", (int)(slash - from), from, folders[i], file);
        void *handle = open_library(path);
        if (handle) return handle;
    }
    return NULL;
}

/* Opens the library `file` in one of the folders next to bsmm. dladdr gives the name of the file
 * that holds this function. The file is bsmm's shared library, or the program if it is linked with
 * the static library. The program's name may lack its folder, but the link /proc/self/exe has it.
 */
static void *find_library(const char *file) {
    static const char here = 0;
    char program[MOST_PATH];
    Dl_info info;
    void *handle = NULL;
    if (dladdr(&here, &info) && info.dli_fname) handle = open_below(info.dli_fname, file);
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!handle && length > 0) {
        program[length] = 0;
        handle = open_below(program, file);
    }
    return handle ? handle : open_library(file);
}

/* Returns true if a simulator can run on this processor. On x86-64 simulators are compiled for AVX2
 * and would crash the process without AVX2. */
static bool may_simulate(void) {
#if defined(__x86_64__)
    return bsmm_cpu_features() & BSMM_CPU_AVX2;
#else
    return true;
#endif
}

bsmm_status bsmm_gpu_simulator_open(const bsmm_gpu_simulator *simulator, void **handle) {
    *handle = NULL;
    if (!may_simulate())
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "the simulators of %s need a processor with AVX2 and FMA",
                         simulator->gpus);
    *handle = find_library(simulator->file);
    if (*handle) return BSMM_OK;
    return bsmm_fail(BSMM_E_NOT_FOUND,
                     "no simulator of %s here: sim/%s is neither beside the library nor on "
                     "LD_LIBRARY_PATH; build bsmm with it (docs/SIMULATOR.md)",
                     simulator->gpus, simulator->file);
}

static uint32_t count_models(const bsmm_gpu_simulator *simulator) {
    uint32_t count = 0;
    while (simulator->models[count])
        count++;
    return count;
}

bsmm_status bsmm_gpu_simulator_find(const bsmm_gpu_simulator *simulator,
                                    bsmm_gpu_sim_device *sim_device, uint32_t ordinal, char *name,
                                    size_t size, int *number) {
    const uint32_t models = count_models(simulator), index = ordinal / models;
    const char *model = simulator->models[ordinal % models];
    *number = ordinal < BSMM_GPU_MOST_DEVICES ? sim_device(model, index) : -1;
    if (*number < 0)
        return bsmm_fail(BSMM_E_NOT_FOUND,
                         "device: value is \"sim:%s:%u\"; there are no more simulators than %u of "
                         "each architecture",
                         model, index, BSMM_GPU_MOST_DEVICES / models);
    snprintf(name, size, index ? "sim:%s:%u" : "sim:%s", model, index);
    return BSMM_OK;
}

bsmm_status bsmm_gpu_simulator_check_model(const bsmm_gpu_simulator *simulator, uint32_t ordinal) {
    const uint32_t models = count_models(simulator);
    if (ordinal < models) return BSMM_OK;
    return bsmm_fail(BSMM_E_NOT_FOUND, "device: there are %u models of simulators", models);
}
