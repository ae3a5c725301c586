/* The fake drivers of NVIDIA and AMD GPUs (tests/fake_cuda, tests/fake_hip) share this code. Device
 * memory is on the heap, launches are counted, and any function can be made to fail. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct fake_driver {
    int devices; /* `devices` is the number of fake GPUs. */
    /* `failing` is the name of the function that fails, for example "cuMemAlloc_v2". NULL means
     * that none fails. */
    const char *failing;
    int failure; /* `failure` is the error that the failing call returns. */
    /* `free_bytes` is the free device memory in bytes that the fake driver reports. */
    size_t free_bytes;
    int allocations; /* `allocations` counts the allocations that were not freed. */
    int loads, launches, waits;
    char image[16]; /* `image` holds the first bytes of the last module that was loaded. */
    /* `owner` is the number of the device that owns memory. The fake driver reports it for all
     * memory. */
    int owner;
    /* A test may declare a range of addresses as device memory, so that it can run products that
     * are too large to be allocated. No launch reads or writes this memory. */
    uintptr_t first_address, address_count;
    /* If `record` is not NULL, the fake driver calls it with everything that the host tells the
     * device: names of kernels, configurations and parameters of launches, and copies. */
    void (*record)(const void *bytes, size_t count);
} fake_driver;

bool fake_is_told_to_fail(const fake_driver *driver, const char *function);

#define FAKE_FAIL_IF_TOLD(driver)                                                                  \
    do {                                                                                           \
        if (fake_is_told_to_fail(&(driver), __func__)) return (driver).failure;                    \
    } while (0)

/* Allocates memory. Returns NULL if `bytes` is more than the free memory. */
void *fake_allocate(fake_driver *driver, size_t bytes);

/* Frees memory. Returns false if no allocation begins at the address. */
bool fake_release(fake_driver *driver, const void *begin);

bool fake_is_device_memory(const fake_driver *driver, const void *address);

/* Calls driver->record, if it is set. */
void fake_record(const fake_driver *driver, const void *bytes, size_t count);

/* Counts a loaded module and copies its image of `bytes` bytes. Returns the copy, which is the
 * handle of the module. The caller may free the image afterwards. */
void *fake_load(fake_driver *driver, const void *image, size_t bytes);

#endif
