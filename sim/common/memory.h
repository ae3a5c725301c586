/* Declares the device memory of the simulators. */
#ifndef SIM_COMMON_MEMORY_H
#define SIM_COMMON_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates device memory. Returns NULL if there is not enough. */
void *sim_memory_alloc(size_t bytes);
bool sim_memory_free(void *pointer);
/* Finds the allocation that contains `address`. Writes the address of its first byte and its size
 * in bytes. Returns false if there is no such allocation. */
bool sim_memory_find(uint64_t address, uint64_t *begin, uint64_t *size);
/* sim_memory_mark attaches two numbers to an allocation, its kind of memory and its device.
 * sim_memory_marked returns these numbers. */
void sim_memory_mark(void *pointer, int type, int device);
void sim_memory_marked(uint64_t address, int *type, int *device);
#endif
