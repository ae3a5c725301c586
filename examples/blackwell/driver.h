/* Declares functions that call the CUDA driver for the examples. They exit the program after an
 * error. */
#ifndef DRIVER_H
#define DRIVER_H

#include "cuda/runtime/tensor_map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device_kernel {
    void *function;
    uint32_t multiprocessors;
} device_kernel;

/* Opens libcuda.so.1, makes a context on the first device, and loads the kernel `name` of a PTX
 * file. The kernel may use `shared_bytes` bytes of shared memory. */
device_kernel device_open(const char *ptx, const char *name, uint32_t shared_bytes);

/* Describes the last launch by the time model of the simulator of PTX (docs/SIMULATOR.md). `busy`
 * is the fraction of the cycles, from the first to the last matrix product, in which the tensor
 * pipe works. */
typedef struct device_model {
    double seconds, busy;
} device_model;
/* Turns the time model on if the device is simulated. If `complete` is false, a launch executes
 * only the thread blocks that the model needs. */
void device_use_model(bool complete);
/* Writes to *to what the simulator's time model has computed for the last launch. Returns false if
 * the device has no time model or the launch has no matrix products. */
bool device_read_model(device_model *to);

/* Allocates `bytes` bytes of device memory. If `from` is not NULL, copies the bytes at `from` to
 * the new memory. */
void *device_new(const void *from, size_t bytes);
void device_read(void *to, const void *from, size_t bytes);
void device_free(void *memory);

/* Tells how many bytes of shared memory an element takes, and how TMA swizzles them. */
typedef enum device_map_kind {
    MAP_BYTES,
    MAP_SWIZZLED_BYTES,
    MAP_SPREAD_4_BITS,
    MAP_F16
} device_map_kind;

/* Returns the tensor map of a row-major matrix of rows x cols elements. Each TMA copy moves a box
 * of box_rows x box_cols elements. */
CUtensorMap device_map(device_map_kind kind, const void *data, uint64_t rows, uint64_t cols,
                       uint32_t box_rows, uint32_t box_cols);

/* Runs a kernel with one parameter on clusters of `cluster` thread blocks, and waits until the
 * kernel ends. */
void device_launch(const device_kernel *kernel, uint32_t blocks, uint32_t threads, uint32_t cluster,
                   uint32_t shared_bytes, void *parameter);

#endif
