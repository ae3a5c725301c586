/* Measures the time that the host needs to launch an empty kernel. Only this file calls the driver
 * functions that it declares. */
#include "device_cuda.h"

#include <dlfcn.h>
#include <string.h>

/* This struct has the parameters of cuLaunchKernelEx, as the CUDA Driver API defines them. */
typedef struct launch_config {
    unsigned int grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    unsigned int attribute_count;
} launch_config;

static struct {
    int (*load)(void **module, const void *image);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(const launch_config *config, void *function, void **arguments, void **extra);
    int (*nodes)(void *graph, void **nodes, size_t *count);
} driver;

static void *empty;

static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry empty() { ret; }\n";

/* Finds a function of the library. ISO C has no cast from dlsym's data pointer to a function
 * pointer, so the function copies the pointer with memcpy. POSIX guarantees that this works. */
static void find(void *library, const char *symbol, void *to) {
    void *found = library ? dlsym(library, symbol) : NULL;
    memcpy(to, &found, sizeof found);
}

static bool open_empty(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *module;
    find(library, "cuModuleLoadData", &driver.load);
    find(library, "cuModuleGetFunction", &driver.find);
    find(library, "cuLaunchKernelEx", &driver.launch);
    return driver.load && driver.find && driver.launch && driver.load(&module, ptx) == 0 &&
           driver.find(&empty, module, "empty") == 0;
}

bool bench_cuda_launch_empty(void *stream, size_t count) {
    const launch_config config = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = stream};
    if (!empty && !open_empty()) return bench_device_fail("the driver has no empty kernel");
    for (size_t i = 0; i < count; i++)
        if (driver.launch(&config, empty, NULL, NULL) != 0)
            return bench_device_fail("the driver did not launch an empty kernel");
    return true;
}

size_t bench_cuda_count_launches(const bench_graph *graph) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    size_t count = 0;
    find(library, "cuGraphGetNodes", &driver.nodes);
    return driver.nodes && driver.nodes(graph->graph, NULL, &count) == 0 ? count : 0;
}
