/* An empty kernel, by entries of the driver that the command does not use. */
#include "overhead.h"

#include <dlfcn.h>
#include <string.h>

/* CUDA Driver API: cuLaunchKernelEx. */
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

/* What POSIX asks for where dlsym gives a function. */
static void find(void *library, const char *symbol, void *to) {
    void *found = library ? dlsym(library, symbol) : NULL;
    memcpy(to, &found, sizeof found);
}

bool overhead_open_empty(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *module;
    find(library, "cuModuleLoadData", &driver.load);
    find(library, "cuModuleGetFunction", &driver.find);
    find(library, "cuLaunchKernelEx", &driver.launch);
    find(library, "cuGraphGetNodes", &driver.nodes);
    return driver.load && driver.find && driver.launch && driver.load(&module, ptx) == 0 &&
           driver.find(&empty, module, "empty") == 0;
}

void overhead_launch_empty(bench_cuda *cuda, size_t count) {
    const launch_config config = {
        .grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = bench_cuda_stream(cuda)};
    for (size_t i = 0; i < count; i++)
        if (driver.launch(&config, empty, NULL, NULL) != 0)
            overhead_fail("cuLaunchKernelEx", "an empty kernel cannot be launched");
}

static bool run_once(void *context, size_t turn) {
    const overhead_product *product = context;
    (void)turn;
    return bsmm_plan_run(product->plan, &product->buffers) == BSMM_OK;
}

size_t overhead_count_launches(bench_cuda *cuda, const overhead_product *product) {
    bench_cuda_graph graph;
    overhead_product copy = *product;
    size_t count = 0;
    if (!driver.nodes || !bench_cuda_record(cuda, run_once, &copy, 1, &graph)) return 0;
    if (driver.nodes(graph.graph, NULL, &count) != 0) count = 0;
    bench_cuda_forget(cuda, &graph);
    return count;
}
