/* This test program uses only functions of HIP, like any other HIP program. It reads the
 * properties of the devices, makes a graph by adding nodes, and runs the graph. usage: client
 * CODE_OBJECT ARCH */
#ifdef AMD_HEADERS
#    include <hip/hip_runtime_api.h>
#else
#    include "hip.h"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, WIDTH = 64, PITCH = 80, COUNT = ROWS * WIDTH };

static void require(int holds, const char *what, int line) {
    if (holds) return;
    fprintf(stderr, "client.c:%d: %s\n", line, what);
    exit(1);
}
#define REQUIRE(what) require(what, #what, __LINE__)
#define CALL(call)    require((call) == hipSuccess, #call, __LINE__)

static void check_properties(const char *arch) {
    struct {
        hipDeviceProp_t prop;
        unsigned char guard[64];
    } p;
    int devices = 0;
    memset(&p, 0xa5, sizeof p);
    CALL(hipInit(0));
    CALL(hipGetDeviceCount(&devices));
    CALL(hipGetDeviceProperties(&p.prop, 0));
    for (size_t i = 0; i < sizeof p.guard; i++)
        REQUIRE(p.guard[i] == 0xa5);
    const int is_942 = strcmp(arch, "gfx942") == 0;
    const size_t lds = is_942 ? 65536 : 163840;
    REQUIRE(strncmp(p.prop.gcnArchName, arch, strlen(arch)) == 0);
    REQUIRE(p.prop.gcnArchName[strlen(arch)] == ':');
    REQUIRE(strstr(p.prop.name, arch) != NULL);
    REQUIRE(p.prop.totalGlobalMem == (size_t)128 << 30);
    REQUIRE(p.prop.sharedMemPerBlock == lds && p.prop.maxSharedMemoryPerMultiProcessor == lds);
    REQUIRE(p.prop.sharedMemPerBlockOptin == lds && p.prop.sharedMemPerMultiprocessor == lds);
    REQUIRE(p.prop.multiProcessorCount == (is_942 ? 304 : 256));
    REQUIRE(p.prop.clockRate == (is_942 ? 2100000 : 2400000));
    REQUIRE(p.prop.major == 9 && p.prop.minor == (is_942 ? 4 : 5));
    REQUIRE(p.prop.warpSize == 64 && p.prop.maxThreadsPerBlock == 1024);
    REQUIRE(p.prop.maxThreadsDim[2] == 1024 && p.prop.maxGridSize[0] == 2147483647);
    REQUIRE(p.prop.l2CacheSize == 4 << 20 && p.prop.maxThreadsPerMultiProcessor == 2048);
    REQUIRE(p.prop.concurrentKernels && p.prop.unifiedAddressing && p.prop.managedMemory);
    REQUIRE(p.prop.arch.hasDoubles && p.prop.arch.has3dGrid && p.prop.arch.hasWarpShuffle);
    REQUIRE(!p.prop.arch.hasSurfaceFuncs && !p.prop.arch.hasDynamicParallelism);
    REQUIRE(p.prop.isLargeBar == 0 && p.prop.asicRevision == 0 && !p.prop.integrated);
    REQUIRE(hipGetDeviceProperties(&p.prop, devices) == hipErrorInvalidDevice);
    REQUIRE(hipGetDeviceProperties(NULL, 0) == hipErrorInvalidValue);
}

/* Programs compiled for HIP 5 or older call hipGetDeviceProperties without a suffix. They expect an
 * older struct of properties, which has 792 bytes. The offsets below are from AMD's
 * hip_deprecated.h. */
#undef hipGetDeviceProperties
hipError_t hipGetDeviceProperties(void *prop, int device);
static void check_old_properties(const char *arch) {
    unsigned char p[800];
    int cus, warp;
    memset(p, 0xa5, sizeof p);
    CALL(hipGetDeviceProperties(p, 0));
    memcpy(&warp, p + 276, sizeof warp), memcpy(&cus, p + 336, sizeof cus);
    REQUIRE(warp == 64 && cus == (strcmp(arch, "gfx942") == 0 ? 304 : 256));
    REQUIRE(strncmp((const char *)p + 396, arch, strlen(arch)) == 0);
    REQUIRE(p[791] == 0 && p[792] == 0xa5);
}

/* The nodes of the graph use this memory. Rows of `in` have WIDTH elements, and rows of `pitched`
 * have PITCH elements. */
typedef struct {
    unsigned *in, *pitched, *out;
    unsigned from[ROWS][PITCH], to[COUNT], filled[ROWS][PITCH];
} buffers;

/* Adds four nodes that run one after another. Node 0 copies the first WIDTH columns of `from` to
 * `in`. Node 1 does nothing. Node 2 runs the kernel, which reads `in` and writes `out`. Node 3
 * copies `out` to `to`. The nodes are added in another order, because only their dependencies may
 * matter. */
static void add_kernel_chain(hipGraph_t graph, hipFunction_t scale, buffers *b) {
    hipGraphNode_t nodes[4];
    unsigned factor = 3;
    void *params[] = {&b->in, &b->out, &factor};
    hipKernelNodeParams kernel = {0};
    kernel.func = (void *)scale, kernel.kernelParams = params;
    kernel.gridDim.x = COUNT / 64, kernel.gridDim.y = kernel.gridDim.z = 1;
    kernel.blockDim.x = 64, kernel.blockDim.y = kernel.blockDim.z = 1;
    hipMemcpy3DParms rows = {0};
    rows.srcPtr.ptr = b->from, rows.srcPtr.pitch = sizeof b->from[0];
    rows.dstPtr.ptr = b->in, rows.dstPtr.pitch = WIDTH * sizeof(unsigned);
    rows.extent.width = WIDTH * sizeof(unsigned), rows.extent.height = ROWS, rows.extent.depth = 1;
    rows.kind = hipMemcpyHostToDevice;
    CALL(hipGraphAddMemcpyNode1D(&nodes[3], graph, NULL, 0, b->to, b->out, sizeof b->to,
                                 hipMemcpyDeviceToHost));
    CALL(hipGraphAddEmptyNode(&nodes[1], graph, NULL, 0));
    CALL(hipGraphAddKernelNode(&nodes[2], graph, &nodes[1], 1, &kernel));
    CALL(hipGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &rows));
    const hipGraphNode_t from[] = {nodes[0], nodes[2]}, to[] = {nodes[1], nodes[3]};
    CALL(hipGraphAddDependencies(graph, from, to, 2));
    /* Changing the variable `factor` after the node was added must have no effect, because the node
     * keeps the values that the arguments had when it was added. */
    factor = 0;
}

/* Adds three nodes that run one after another. The first fills all of `pitched`, the second fills
 * the first WIDTH columns of `pitched` with another value, and the third copies `pitched` to
 * `filled`. */
static void add_fill_chain(hipGraph_t graph, buffers *b) {
    hipGraphNode_t clear, fill, copy;
    hipMemsetParams all = {0}, part = {0};
    all.dst = b->pitched, all.elementSize = 1, all.width = sizeof b->filled, all.height = 1;
    all.pitch = sizeof b->filled, all.value = 0x11;
    part.dst = b->pitched, part.elementSize = 4, part.width = WIDTH, part.height = ROWS;
    part.pitch = PITCH * sizeof(unsigned), part.value = 0xdeadbeef;
    CALL(hipGraphAddMemsetNode(&clear, graph, NULL, 0, &all));
    CALL(hipGraphAddMemsetNode(&fill, graph, &clear, 1, &part));
    CALL(hipGraphAddMemcpyNode1D(&copy, graph, &fill, 1, b->filled, b->pitched, sizeof b->filled,
                                 hipMemcpyDeviceToHost));
    part.elementSize = 3;
    REQUIRE(hipGraphAddMemsetNode(&copy, graph, NULL, 0, &part) == hipErrorInvalidValue);
    REQUIRE(hipGraphAddEmptyNode(&copy, graph, NULL, 1) == hipErrorInvalidValue);
}

static void check_results(const buffers *b) {
    for (unsigned r = 0; r < ROWS; r++)
        for (unsigned c = 0; c < PITCH; c++) {
            const unsigned i = r * WIDTH + c;
            if (c < WIDTH) REQUIRE(b->to[i] == 3 * b->from[r][c] + i);
            REQUIRE(b->filled[r][c] == (c < WIDTH ? 0xdeadbeef : 0x11111111));
        }
}

static void refuse_cycle(void) {
    hipGraph_t graph;
    hipGraphExec_t executable = NULL;
    hipGraphNode_t a, b;
    CALL(hipGraphCreate(&graph, 0));
    CALL(hipGraphAddEmptyNode(&a, graph, NULL, 0));
    CALL(hipGraphAddEmptyNode(&b, graph, &a, 1));
    CALL(hipGraphAddDependencies(graph, &b, &a, 1));
    REQUIRE(hipGraphInstantiate(&executable, graph, NULL, NULL, 0) == hipErrorInvalidValue);
    REQUIRE(executable == NULL);
    CALL(hipGraphDestroy(graph));
}

static void run_graph(hipFunction_t scale) {
    static buffers b;
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipStream_t stream;
    size_t nodes = 0;
    CALL(hipMalloc((void **)&b.in, sizeof b.to));
    CALL(hipMalloc((void **)&b.out, sizeof b.to));
    CALL(hipMalloc((void **)&b.pitched, sizeof b.filled));
    CALL(hipStreamCreate(&stream));
    CALL(hipGraphCreate(&graph, 0));
    add_kernel_chain(graph, scale, &b);
    add_fill_chain(graph, &b);
    CALL(hipGraphGetNodes(graph, NULL, &nodes));
    REQUIRE(nodes == 7);
    CALL(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    CALL(hipGraphDestroy(graph));
    for (unsigned launch = 0; launch < 2; launch++) {
        for (unsigned i = 0; i < ROWS * PITCH; i++)
            b.from[i / PITCH][i % PITCH] = 1000 * launch + 7 * i;
        memset(b.to, 0xa5, sizeof b.to), memset(b.filled, 0xa5, sizeof b.filled);
        CALL(hipGraphLaunch(executable, stream));
        CALL(hipStreamSynchronize(stream));
        check_results(&b);
    }
    CALL(hipGraphExecDestroy(executable));
    CALL(hipStreamDestroy(stream));
    CALL(hipFree(b.in));
    CALL(hipFree(b.out));
    CALL(hipFree(b.pitched));
}

int main(int count, char **words) {
    hipModule_t module;
    hipFunction_t scale;
    REQUIRE(count == 3);
    check_properties(words[2]);
    check_old_properties(words[2]);
    CALL(hipModuleLoad(&module, words[1]));
    CALL(hipModuleGetFunction(&scale, module, "scale"));
    run_graph(scale);
    refuse_cycle();
    CALL(hipModuleUnload(module));
    printf("client on %s: passed\n", words[2]);
}
