/* Fuzzes the simulator of PTX: the parser of modules, and the execution of damaged instructions. If
 * a damaged module still contains the kernel of the seed inputs, this kernel runs with one warp. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Declares the functions of the CUDA driver that the fuzzer calls. */
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t bytes);
int cuModuleLoadData(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void *stream, void **params, void **extra);

enum { BYTES = 1 << 16 };

/* Makes the simulator's context and memory, and sets the limits of a launch. */
static uint64_t begin(void) {
    static uint64_t memory;
    void *context;
    if (memory) return memory;
    setenv("BSMM_SIM_LIMIT", "2000", 1);
    setenv("BSMM_SIM_THREADS", "1", 1);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAlloc_v2(&memory, BYTES))
        abort();
    return memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t memory = begin();
    /* `arguments` holds the parameters of the kernel in the seed inputs, which are a pointer and 16
     * bytes. If a damaged kernel has fewer bytes of parameters, the launch fails. */
    uint64_t arguments[3] = {memory, 1, 2};
    enum { POINTER = 1, SIZE = 2 };
    size_t bytes = sizeof arguments;
    void *extra[] = {(void *)POINTER, arguments, (void *)SIZE, &bytes, NULL};
    void *module, *function;
    char *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = 0;
    cuMemsetD8_v2(memory, 0, BYTES);
    if (!cuModuleLoadData(&module, text)) {
        if (!cuModuleGetFunction(&function, module, "kernel"))
            cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 64, NULL, NULL, extra);
        cuModuleUnload(module);
    }
    free(text);
    return 0;
}
