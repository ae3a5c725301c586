/* Fuzzes the simulator of AMD GPUs: the reader of code objects, the parser of LLVM's disassembly,
 * and the execution of damaged instructions. If a damaged code object still contains kernels of the
 * seed inputs, these kernels run with one workgroup. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Declares the functions of HIP that the fuzzer calls, and one function that only the simulator
 * has. */
int hipSetDevice(int device);
int hipMalloc(void **memory, size_t bytes);
int hipMemset(void *memory, int value, size_t bytes);
int hipModuleLoad(void **module, const char *path);
int hipModuleUnload(void *module);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **params, void **extra);
int bsmm_sim_device(const char *arch, unsigned number);

enum { BYTES = 1 << 16, FLAGS_AT = 48, MACH_GFX950 = 0x4f };

/* Launches a kernel whose arguments are all pointers to the same memory. */
static void launch(void *module, const char *name, void *memory) {
    enum { POINTER = 1, SIZE = 2, END = 3 };
    void *function, *arguments[64];
    size_t size = sizeof arguments;
    void *extra[] = {(void *)POINTER, arguments, (void *)SIZE, &size, (void *)END};
    if (hipModuleGetFunction(&function, module, name)) return;
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        arguments[i] = memory;
    hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void *memory;
    char path[32];
    void *module;
    setenv("BSMM_SIM_LIMIT", "2000", 1);
    setenv("BSMM_SIM_THREADS", "1", 1);
    const char *arch = size > FLAGS_AT && data[FLAGS_AT] == MACH_GFX950 ? "gfx950" : "gfx942";
    if (hipSetDevice(bsmm_sim_device(arch, 0))) abort();
    if (!memory && hipMalloc(&memory, BYTES)) abort();
    hipMemset(memory, 0, BYTES);
    const int file = memfd_create("code", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!hipModuleLoad(&module, path)) {
        launch(module, "store_words", memory);
        launch(module, "dequantize_any", memory);
        hipModuleUnload(module);
    }
    close(file);
    return 0;
}
