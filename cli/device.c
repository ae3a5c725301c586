#include "device.h"
#include <stdlib.h>

static bool no_memory;

const char *cli_device_error(void) {
    return no_memory ? "no memory" : bench_cuda_error();
}

bool cli_device_open(cli_device *device, const char *name) {
    *device = (cli_device){.name = name};
    if (!bench_cuda_is(name)) return true;
    device->cuda = bench_cuda_open(name);
    return device->cuda != NULL;
}

bool cli_device_put(cli_device *device, const bsmm_matrix *host, bool copied, bsmm_matrix *there) {
    *there = *host;
    return !device->cuda || bench_cuda_put(device->cuda, host, copied, there);
}

bool cli_device_get(cli_device *device, const bsmm_matrix *there, const bsmm_matrix *host) {
    return !device->cuda || bench_cuda_get(device->cuda, there, host);
}

bool cli_device_wait(cli_device *device) {
    return !device->cuda || bench_cuda_wait(device->cuda);
}

bool cli_device_allocate(cli_device *device, uint64_t bytes, void **memory) {
    if (device->cuda) return bench_cuda_new(device->cuda, NULL, bytes + 1, memory);
    *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    no_memory = *memory == NULL;
    return !no_memory;
}

void cli_device_release(cli_device *device, void *memory) {
    if (!device->cuda) free(memory);
}

void *cli_device_stream(const cli_device *device) {
    return device->cuda ? bench_cuda_stream(device->cuda) : NULL;
}

void cli_device_clear(cli_device *device) {
    if (device->cuda) bench_cuda_reset(device->cuda);
}

void cli_device_close(cli_device *device) {
    bench_cuda_close(device->cuda);
    device->cuda = NULL;
}
